"""Earlier samples of counters and offsets, so that every message contains both samples of a rate."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple, TypeVar

from headroom.cluster.connection.per_broker import PerBroker

_Key = TypeVar("_Key", bound=Hashable)
# Older samples are not used: no rate is better than a rate over a long gap.
STALE_WINDOWS = 3


class EarlierSample(NamedTuple):
    """Values that were read together, with their time in epoch milliseconds."""

    read_ms: int
    values: tuple[int | None, ...]


class SampleHistory(PerBroker[_Key, deque[EarlierSample]]):
    """Samples by broker and key, as far back as the rate window needs.

    Args:
        window_ms: minimum age of the earlier sample of a rate, milliseconds.
        interval_ms: time from tick to tick, milliseconds.
        rising: number of leading values that never fall; if one does, the key was reset and its history restarts.
    """

    def __init__(self, window_ms: int, interval_ms: int, rising: int = 1) -> None:
        super().__init__()
        self._window_ms = window_ms
        self._stale_ms = STALE_WINDOWS * max(window_ms, interval_ms)
        self._rising = rising

    def add(self, broker: int, key: _Key, sample: EarlierSample) -> EarlierSample | None:
        """Add a sample and return the earlier one for its rate; None if there is none.

        The earlier sample is the newest that is at least one window older, otherwise the oldest.
        """
        samples = self._kept.setdefault(broker, {}).setdefault(key, deque())
        if samples and self._fell(samples[-1], sample):
            samples.clear()
        while len(samples) > 1 and sample.read_ms - samples[1].read_ms >= self._window_ms:
            samples.popleft()
        while samples and sample.read_ms - samples[0].read_ms > self._stale_ms:
            samples.popleft()
        earlier = samples[0] if samples else None
        samples.append(sample)
        return earlier

    def knows(self, broker: int, key: _Key) -> bool:
        """Return whether a key has samples."""
        return key in self._kept.get(broker, {})

    def shift(self, step_ms: int) -> None:
        """Shift the times of all samples after a clock step."""
        for of_broker in self._kept.values():
            for key, samples in of_broker.items():
                of_broker[key] = deque(sample._replace(read_ms=sample.read_ms + step_ms) for sample in samples)

    def __len__(self) -> int:
        return sum(len(samples) for keys in self._kept.values() for samples in keys.values())

    def _fell(self, last: EarlierSample, sample: EarlierSample) -> bool:
        pairs = zip(last.values[: self._rising], sample.values[: self._rising], strict=True)
        return any(before is not None and now is not None and now < before for before, now in pairs)
