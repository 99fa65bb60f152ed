"""Earlier samples of what there is very much of: counters and log ends, a tick's values of a broker side by side.

The same rules as in ``cluster.collector.samples.history``, for values that a whole broker has read at about the same
time: 16 bytes a sample instead of some hundred, and no work per value but to put it in its place.
"""

from __future__ import annotations

from array import array
from collections import deque
from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from operator import lt
from typing import Generic, TypeVar

from cluster.collector.samples.history import STALE_WINDOWS, EarlierSample
from cluster.model import LogReading, Reading

_Key = TypeVar("_Key", bound=Hashable)
# Counts, offsets and times are never below zero.
_NONE = -1


@dataclass(slots=True)
class _Frame:
    """What one tick read; ``at_ms`` is the time of the first of the readings."""

    at_ms: int
    read_ms: array[int]
    values: array[int]

    def drop(self, place: int) -> None:
        self.read_ms[place] = self.values[place] = _NONE

    def shift(self, step_ms: int) -> None:
        self.at_ms += step_ms
        self.read_ms = array("q", [at if at == _NONE else at + step_ms for at in self.read_ms])

    def sample(self, place: int) -> EarlierSample | None:
        read_ms = self.read_ms[place]
        return EarlierSample(read_ms, (self.values[place],)) if read_ms != _NONE else None


@dataclass(frozen=True, slots=True)
class Samples(Generic[_Key]):
    """What one broker's counters say now, and said about one window before.

    Attributes:
        places: where each key stands in the columns.
        now: this tick's.
        before: the earlier ones; None: there are none.
    """

    places: Mapping[_Key, int]
    now: _Frame
    before: _Frame | None

    def of(self, key: _Key) -> tuple[EarlierSample, EarlierSample | None] | None:
        """Return the sample of a key and its earlier one; None: it was not read."""
        place = self.places.get(key)
        now = self.now.sample(place) if place is not None else None
        if place is None or now is None:
            return None
        return now, self.before.sample(place) if self.before is not None else None

    def columns(self) -> tuple[list[int], list[int], list[int | None], list[int | None]]:
        """Return time, value, earlier time and earlier value of every key in order; None: there is no earlier one."""
        if self.before is None:
            none: list[int | None] = [None] * len(self.places)
            return self.now.read_ms.tolist(), self.now.values.tolist(), none, none
        earlier = (_or_none(self.before.read_ms), _or_none(self.before.values))
        return self.now.read_ms.tolist(), self.now.values.tolist(), *earlier


class SampleColumns(Generic[_Key]):
    """Samples of rising values per broker, as far back as the rate window needs.

    Args:
        window_ms: least age of the samples that rates are taken against.
        interval_ms: time from tick to tick.
    """

    def __init__(self, window_ms: int, interval_ms: int) -> None:
        self._window_ms = window_ms
        self._stale_ms = STALE_WINDOWS * max(window_ms, interval_ms)
        self._tracks: dict[int, _Track[_Key]] = {}

    def add(self, broker: int, readings: Mapping[_Key, Reading | LogReading]) -> Samples[_Key]:
        """Keep what a broker said and return it with the earlier samples; what it does not say any more is dropped.

        The earlier sample is the newest that is at least one window older, else the oldest there is; there is none
        when a value fell, for then it was reset.
        """
        track = self._tracks.setdefault(broker, _Track())
        return track.add(readings, self._window_ms, self._stale_ms)

    def latest(self, broker: int) -> Samples[_Key]:
        """Return what a broker said last, with the earlier samples.

        Raises:
            KeyError: nothing is known of it.
        """
        return self._tracks[broker].latest()

    def samples(self, broker: int, key: _Key) -> list[EarlierSample]:
        """Return the samples that are kept of a key, oldest first."""
        track = self._tracks.get(broker)
        return track.samples(key) if track is not None else []

    def forget(self, broker: int) -> None:
        """Drop everything of a broker."""
        self._tracks.pop(broker, None)

    def forget_keys(self, keys: Collection[_Key]) -> None:
        """Drop some keys on every broker."""
        for track in self._tracks.values():
            for key in keys:
                track.drop(key)

    def keep_brokers(self, brokers: Collection[int]) -> None:
        """Drop brokers that the cluster does not name any more."""
        for broker in [broker for broker in self._tracks if broker not in brokers]:
            del self._tracks[broker]

    def shift(self, step_ms: int) -> None:
        """Move the times of all samples along with a clock that was set."""
        for track in self._tracks.values():
            track.shift(step_ms)

    def __len__(self) -> int:
        return sum(len(track) for track in self._tracks.values())


class _Track(Generic[_Key]):
    def __init__(self) -> None:
        self._places: dict[_Key, int] = {}
        self._frames: deque[_Frame] = deque()

    def add(self, readings: Mapping[_Key, Reading | LogReading], window_ms: int, stale_ms: int) -> Samples[_Key]:
        if readings.keys() != self._places.keys():
            self._follow(readings)
        ordered = [readings[key] for key in self._places]
        read_ms = array("q", [reading[0] for reading in ordered])
        values = array("q", [int(reading[1]) for reading in ordered])
        now = _Frame(read_ms[0] if read_ms else 0, read_ms, values)
        self._drop_fallen(now)
        frames = self._frames
        while len(frames) > 1 and now.at_ms - frames[1].at_ms >= window_ms:
            frames.popleft()
        while frames and now.at_ms - frames[0].at_ms > stale_ms:
            frames.popleft()
        frames.append(now)
        return self.latest()

    def latest(self) -> Samples[_Key]:
        *earlier, now = self._frames
        return Samples(self._places, now, _oldest(earlier))

    def shift(self, step_ms: int) -> None:
        for frame in self._frames:
            frame.shift(step_ms)

    def samples(self, key: _Key) -> list[EarlierSample]:
        place = self._places.get(key)
        found = [frame.sample(place) for frame in self._frames] if place is not None else []
        return [sample for sample in found if sample is not None]

    def drop(self, key: _Key) -> None:
        place = self._places.get(key)
        if place is not None:
            for frame in self._frames:
                frame.drop(place)

    def __len__(self) -> int:
        return len(self._places) * len(self._frames)

    def _follow(self, keys: Collection[_Key]) -> None:
        """Put the frames in the order of other keys; those that were not there before have no samples."""
        old = [self._places.get(key, len(self._places)) for key in keys]
        self._places = {key: place for place, key in enumerate(keys)}
        for frame in self._frames:
            for column in ("read_ms", "values"):
                padded = [*getattr(frame, column), _NONE]
                setattr(frame, column, array("q", [padded[place] for place in old]))

    def _drop_fallen(self, now: _Frame) -> None:
        if self._frames and any(map(lt, now.values, self._frames[-1].values)):
            for place, (value, last) in enumerate(zip(now.values, self._frames[-1].values, strict=True)):
                if value < last:
                    for frame in self._frames:
                        frame.drop(place)


def _oldest(frames: Sequence[_Frame]) -> _Frame | None:
    """Return the oldest sample of every key: of one that came later than the others, its first."""
    if not frames or _NONE not in frames[0].read_ms:
        return frames[0] if frames else None
    oldest = frames[0]
    read_ms, values = array("q", oldest.read_ms), array("q", oldest.values)
    for place in [place for place, at in enumerate(read_ms) if at == _NONE]:
        found = next((frame for frame in frames if frame.read_ms[place] != _NONE), oldest)
        read_ms[place], values[place] = found.read_ms[place], found.values[place]
    return _Frame(oldest.at_ms, read_ms, values)


def _or_none(column: array[int]) -> list[int | None]:
    return [value if value != _NONE else None for value in column] if _NONE in column else list(column)
