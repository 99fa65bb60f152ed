"""Earlier samples of counters and positions, so that every message carries what a rate needs."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable
from typing import NamedTuple, TypeVar

from cluster.connection.per_broker import PerBroker

_Key = TypeVar("_Key", bound=Hashable)
# A sample this many windows old tells of another time: no rate is better than one over a long gap.
STALE_WINDOWS = 3


class EarlierSample(NamedTuple):
    """Values that were read together, and when, epoch milliseconds."""

    read_ms: int
    values: tuple[int | None, ...]


class SampleHistory(PerBroker[_Key, deque[EarlierSample]]):
    """Samples of one kind of thing per broker, as far back as the rate window needs.

    Args:
        window_ms: least age of the sample that rates are taken against.
        interval_ms: time from tick to tick.
        rising: how many of the first values never fall; when one does, the thing was reset and its history restarts.
    """

    def __init__(self, window_ms: int, interval_ms: int, rising: int = 1) -> None:
        super().__init__()
        self._window_ms = window_ms
        self._stale_ms = STALE_WINDOWS * max(window_ms, interval_ms)
        self._rising = rising

    def add(self, broker: int, key: _Key, sample: EarlierSample) -> EarlierSample | None:
        """Keep a sample and return the earlier one to compare it with; None: there is none.

        It is the newest that is at least one window older, else the oldest there is.
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
        """Return whether there is a sample of a key."""
        return key in self._kept.get(broker, {})

    def shift(self, step_ms: int) -> None:
        """Move the times of all samples along with a clock that was set."""
        for of_broker in self._kept.values():
            for key, samples in of_broker.items():
                of_broker[key] = deque(sample._replace(read_ms=sample.read_ms + step_ms) for sample in samples)

    def __len__(self) -> int:
        return sum(len(samples) for keys in self._kept.values() for samples in keys.values())

    def _fell(self, last: EarlierSample, sample: EarlierSample) -> bool:
        pairs = zip(last.values[: self._rising], sample.values[: self._rising], strict=True)
        return any(before is not None and now is not None and now < before for before, now in pairs)
