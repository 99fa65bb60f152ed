"""Columnar history of counters and log end offsets: one array per broker and tick.

The rules are those of ``cluster.collector.samples.history``. All values of a broker are read at about the same time, so
a sample takes 16 bytes instead of some hundred, and adding one costs only the write into an array.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import lt
from typing import Generic, TypeVar

from headroom.cluster.collector.samples.history import STALE_WINDOWS, EarlierSample
from headroom.cluster.model import LogReading, Reading

_Key = TypeVar("_Key", bound=Hashable)
# Counts, offsets and times are never below zero.
_NONE = -1


@dataclass(slots=True)
class _Slice:
    """The readings of one broker in one tick; ``at_ms`` is the time of the first one."""

    at_ms: int
    read_ms: array[int]
    values: array[int]

    def drop(self, row: int) -> None:
        self.read_ms[row] = self.values[row] = _NONE

    def shift(self, step_ms: int) -> None:
        self.at_ms += step_ms
        self.read_ms = array("q", [at if at == _NONE else at + step_ms for at in self.read_ms])

    def sample(self, row: int) -> EarlierSample | None:
        read_ms = self.read_ms[row]
        return EarlierSample(read_ms, (self.values[row],)) if read_ms != _NONE else None


@dataclass(frozen=True, slots=True)
class Samples(Generic[_Key]):
    """Values of one broker in this tick and about one rate window before.

    Attributes:
        row_index: index of each key in the columns.
        now: values of this tick.
        before: earlier values; None if there are none.
    """

    row_index: Mapping[_Key, int]
    now: _Slice
    before: _Slice | None

    def of(self, key: _Key) -> tuple[EarlierSample, EarlierSample | None] | None:
        """Return the sample of a key and its earlier sample; None if the key was not read."""
        row = self.row_index.get(key)
        now = self.now.sample(row) if row is not None else None
        if row is None or now is None:
            return None
        return now, self.before.sample(row) if self.before is not None else None

    def columns(self) -> tuple[list[int], list[int], list[int | None], list[int | None]]:
        """Return time, value, earlier time and earlier value of every key in order; None without an earlier sample."""
        if self.before is None:
            none: list[int | None] = [None] * len(self.row_index)
            return self.now.read_ms.tolist(), self.now.values.tolist(), none, none
        earlier = (_or_none(self.before.read_ms), _or_none(self.before.values))
        return self.now.read_ms.tolist(), self.now.values.tolist(), *earlier


class SampleColumns(Generic[_Key]):
    """Samples of monotonic counters per broker, as far back as the rate window needs.

    Args:
        window_ms: minimum age of the earlier sample of a rate, milliseconds.
        interval_ms: time from tick to tick, milliseconds.
    """

    def __init__(self, window_ms: int, interval_ms: int) -> None:
        self._window_ms = window_ms
        self._stale_ms = STALE_WINDOWS * max(window_ms, interval_ms)
        self._by_broker: dict[int, _BrokerSamples[_Key]] = {}

    def add(self, broker: int, readings: Mapping[_Key, Reading | LogReading]) -> Samples[_Key]:
        """Add a broker's readings and return them with their earlier samples; keys that are missing now are dropped.

        The earlier sample is the newest that is at least one window older, otherwise the oldest. A value that fell was
        reset and has no earlier sample.
        """
        samples = self._by_broker.setdefault(broker, _BrokerSamples())
        return samples.add(readings, self._window_ms, self._stale_ms)

    def latest(self, broker: int) -> Samples[_Key]:
        """Return the last readings of a broker with their earlier samples.

        Raises:
            KeyError: the broker has no samples.
        """
        return self._by_broker[broker].latest()

    def samples(self, broker: int, key: _Key) -> list[EarlierSample]:
        """Return the kept samples of a key, oldest first."""
        samples = self._by_broker.get(broker)
        return samples.samples(key) if samples is not None else []

    def forget(self, broker: int) -> None:
        """Drop all samples of a broker."""
        self._by_broker.pop(broker, None)

    def forget_keys(self, keys: Collection[_Key]) -> None:
        """Drop the given keys on every broker."""
        for samples in self._by_broker.values():
            for key in keys:
                samples.drop(key)

    def keep_brokers(self, brokers: Collection[int]) -> None:
        """Drop the brokers that are not among the given ones."""
        for broker in [broker for broker in self._by_broker if broker not in brokers]:
            del self._by_broker[broker]

    def shift(self, step_ms: int) -> None:
        """Shift the times of all samples after a clock step."""
        for samples in self._by_broker.values():
            samples.shift(step_ms)

    def __len__(self) -> int:
        return sum(len(samples) for samples in self._by_broker.values())


class _BrokerSamples(Generic[_Key]):
    def __init__(self) -> None:
        self._row_index: dict[_Key, int] = {}
        self._slices: deque[_Slice] = deque()

    def add(self, readings: Mapping[_Key, Reading | LogReading], window_ms: int, stale_ms: int) -> Samples[_Key]:
        if readings.keys() != self._row_index.keys():
            self._follow(readings)
        ordered = [readings[key] for key in self._row_index]
        read_ms = array("q", [reading[0] for reading in ordered])
        values = array("q", [int(reading[1]) for reading in ordered])
        now = _Slice(read_ms[0] if read_ms else 0, read_ms, values)
        self._drop_fallen(now)
        slices = self._slices
        while len(slices) > 1 and now.at_ms - slices[1].at_ms >= window_ms:
            slices.popleft()
        while slices and now.at_ms - slices[0].at_ms > stale_ms:
            slices.popleft()
        slices.append(now)
        return self.latest()

    def latest(self) -> Samples[_Key]:
        *earlier, now = self._slices
        return Samples(self._row_index, now, _oldest(earlier))

    def shift(self, step_ms: int) -> None:
        for part in self._slices:
            part.shift(step_ms)

    def samples(self, key: _Key) -> list[EarlierSample]:
        row = self._row_index.get(key)
        samples = [part.sample(row) for part in self._slices] if row is not None else []
        return [sample for sample in samples if sample is not None]

    def drop(self, key: _Key) -> None:
        row = self._row_index.get(key)
        if row is not None:
            for part in self._slices:
                part.drop(row)

    def __len__(self) -> int:
        return len(self._row_index) * len(self._slices)

    def _follow(self, keys: Collection[_Key]) -> None:
        """Reorder the slices to the new keys; added keys have no samples."""
        old = [self._row_index.get(key, len(self._row_index)) for key in keys]
        self._row_index = {key: row for row, key in enumerate(keys)}
        for part in self._slices:
            for column in ("read_ms", "values"):
                padded = [*getattr(part, column), _NONE]
                setattr(part, column, array("q", [padded[row] for row in old]))

    def _drop_fallen(self, now: _Slice) -> None:
        if self._slices and any(map(lt, now.values, self._slices[-1].values)):
            for row, (value, last) in enumerate(zip(now.values, self._slices[-1].values, strict=True)):
                if value < last:
                    for part in self._slices:
                        part.drop(row)


def _oldest(slices: Sequence[_Slice]) -> _Slice | None:
    """Return the oldest sample of every key; a key that was added later has its own first one."""
    if not slices or _NONE not in slices[0].read_ms:
        return slices[0] if slices else None
    oldest = slices[0]
    read_ms, values = array("q", oldest.read_ms), array("q", oldest.values)
    for row in [row for row, at in enumerate(read_ms) if at == _NONE]:
        first = next((part for part in slices if part.read_ms[row] != _NONE), oldest)
        read_ms[row], values[row] = first.read_ms[row], first.values[row]
    return _Slice(oldest.at_ms, read_ms, values)


def _or_none(column: array[int]) -> list[int | None]:
    return [value if value != _NONE else None for value in column] if _NONE in column else list(column)
