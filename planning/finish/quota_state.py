"""Current samples of a quota, estimated from ticks."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

from headroom.planning.quotas.limits import QuotaWindow
from headroom.planning.quotas.load import ThrottleLoad
from headroom.planning.quotas.samples import QuotaSamples, empty_samples, steady
from headroom.schemas.keys import Role

# The mean of a quota is read shortly before or after the log ends of its tick.
_ERROR_RATIO = 0.03
# Below this ratio of mean to throttle, a quota has no throttled traffic.
_IDLE_RATIO = 0.02
_HEADERS_BYTES_PER_S = 1.0
# Prior probability that the samples of an idle quota were reset one after the other, not all at once.
_SPREAD = 0.5
_LEAST = 1e-300


@dataclass(frozen=True)
class Guess:
    """One possible state of a quota.

    Attributes:
        window: its samples; time 0 is now.
        weight: agreement with the ticks, 0 to 1; the weights of one quota add up to 1.
    """

    window: QuotaSamples
    weight: float


class _Tick(NamedTuple):
    """Load of a broker and role in a tick, ``at_s`` seconds from now (at most 0)."""

    at_s: float
    load: ThrottleLoad


class _Mean(NamedTuple):
    """Bytes in a quota's samples, and the time span over which the broker takes their mean."""

    elapsed_s: float
    total_bytes: float


@dataclass(frozen=True)
class _LoadHistory:
    """Loads of a broker and role in several ticks.

    Attributes:
        ticks: oldest first; the last one is now.
        move_start: times of the two ticks around the start of the move, in seconds from now; None if it started before
            all ticks, or not yet.
    """

    ticks: Sequence[_Tick]
    move_start: tuple[float, float] | None

    @property
    def now(self) -> ThrottleLoad:
        return self.ticks[-1].load


def guesses(
    load: ThrottleLoad,
    earlier: Sequence[tuple[float, ThrottleLoad]],
    phases: Sequence[float],
    copy_times: Sequence[float],
) -> list[Guess]:
    """Return the possible states of a quota, the most likely first.

    The in-sync traffic, and the difference between writes and growth of the lag, give the traffic between two ticks.
    Unknown are the traffic at the start of the move, and the start times of the samples. Every guess therefore assumes
    an initial state and counts the known traffic like Kafka. It sets the traffic at the start so that the mean equals
    the one measured now. A guess is more likely if its means are closer to those of the earlier ticks.

    Args:
        load: current load of a broker and role.
        earlier: loads in earlier ticks, youngest first, with their age in seconds.
        phases: elapsed parts of a sample at the oldest tick, 0 to 1.
        copy_times: times of copies between two ticks, 0 to 1.
    """
    ticks = [*(_Tick(-age_s, older) for age_s, older in reversed(earlier)), _Tick(0.0, load)]
    history = _LoadHistory(ticks, _move_start(ticks))
    candidates = [
        _guess(history, window, weight, copy_time)
        for phase in phases
        for window, weight in _initial_states(history, phase)
        for copy_time in copy_times
    ]
    total = sum(guess.weight for guess in candidates)
    return sorted((Guess(g.window, g.weight / total) for g in candidates), key=lambda g: -g.weight)


def guesses_at_start(load: ThrottleLoad) -> list[Guess]:
    """Return possible states of a quota at the start of a move, from the least to the most room.

    A quota has room for a whole window at once, if its samples are that old and empty. Those of a leader are, because
    every response counts. Those of a destination are reset when the mean is read, for example by a collector, so their
    age is unknown. The samples of a quota that has counted nothing so far begin with the move.

    Args:
        load: load of a broker and role during the move.
    """
    window = load.quota_window
    if load.used_bytes_per_s is None:
        return [Guess(empty_samples(0.0, 0.0, window), 1.0)]
    if load.role is Role.LEADER:
        return [Guess(steady(steady_bytes_per_s(load.role, 0.0), 0.0, window), 1.0)]
    return [Guess(samples, 1 / window.samples) for samples in _reset_at_once(0.0, 0.5, window)]


def at_quantile(candidates: Sequence[Guess], quantile: float) -> QuotaSamples:
    """Return a copy of the samples at a quantile of the guesses, 0 to 1."""
    passed = 0.0
    for guess in candidates:
        passed += guess.weight
        if passed >= quantile:
            break
    return guess.window.copy()


def steady_bytes_per_s(role: Role, bytes_per_s: float) -> float:
    """Return the traffic that a quota counts continuously, bytes per second.

    Every response of a leader counts, at least its header. The samples of a leader therefore continue without throttled
    traffic; those of a destination do not.

    Source: ``KafkaApis.sizeOfThrottledPartitions``, ``ReplicaFetcherThread.processPartitionData``.

    Args:
        role: leader or follower.
        bytes_per_s: throttled traffic.
    """
    return max(_HEADERS_BYTES_PER_S, bytes_per_s) if role is Role.LEADER else bytes_per_s


def _move_start(ticks: Sequence[_Tick]) -> tuple[float, float] | None:
    """Return the times of the last tick without limited replicas and of the first one with some; None if not seen."""
    for older, newer in pairwise(ticks):
        if newer.load.limited_replicas and not older.load.limited_replicas:
            return older.at_s, newer.at_s
    return None


def _initial_states(history: _LoadHistory, phase: float) -> Iterator[tuple[QuotaSamples, float]]:
    """Yield possible samples at the oldest tick, each with its prior probability."""
    at_s, first = history.ticks[0]
    settings = first.quota_window
    made_s = next((s for s, d in history.ticks if d.used_bytes_per_s is not None), at_s)
    idle = _mean(first) < _IDLE_RATIO * (history.now.throttle_bytes_per_s or 0.0)
    if made_s > at_s and first.throttle_known:
        # A quota without any traffic so far has no gauge, and its first sample begins with its first amount.
        before_s = max(s for s, _ in history.ticks if s < made_s)
        yield empty_samples(before_s + phase * (made_s - before_s), at_s, settings), 1.0
    elif idle and first.role is Role.FOLLOWER and not first.limited_replicas:
        yield from _idle(at_s, phase, settings)
    else:
        yield steady(steady_bytes_per_s(first.role, _mean(first)), at_s, settings, phase), 1.0


def _idle(at_s: float, phase: float, settings: QuotaWindow) -> Iterator[tuple[QuotaSamples, float]]:
    """Yield samples of a destination without throttled traffic; empty samples are reset after a window."""
    kept = settings.samples + 1
    ages_s = [(age + phase) * settings.sample_s for age in reversed(range(kept))]
    for turn in range(kept):
        starts_s = [at_s - age_s for age_s in ages_s[turn:] + ages_s[:turn]]
        yield QuotaSamples(starts_s, [0.0] * kept, at_s, settings), _SPREAD / kept
    for samples in _reset_at_once(at_s, phase, settings):
        yield samples, (1 - _SPREAD) / settings.samples


def _reset_at_once(at_s: float, phase: float, settings: QuotaWindow) -> list[QuotaSamples]:
    """Return samples that were reset together within the last window, from the latest to the earliest reset."""
    return [empty_samples(at_s - (age + phase) * settings.sample_s, at_s, settings) for age in range(settings.samples)]


def _guess(history: _LoadHistory, initial: QuotaSamples, weight: float, copy_time: float) -> Guess:
    """Return the state that follows from samples at the oldest tick and the traffic since then."""
    window, mean = initial.copy(), _mean(history.now)
    means = _count(window, history, copy_time, 0.0)
    # What the known traffic does not explain of the mean that is measured now.
    missing = mean * means[-1].elapsed_s - means[-1].total_bytes
    if history.move_start is not None and missing > 0:
        window = initial.copy()
        means = _count(window, history, copy_time, missing)
    elapsed_s, total = means[-1]
    if total <= 0 or mean <= 0:
        return Guess(steady(mean, 0.0, window.settings), _LEAST)
    window.scale(mean * elapsed_s / total)
    fits = _agreement(math.log(mean * elapsed_s / total) / _ERROR_RATIO)
    return Guess(window, max(_LEAST, weight * fits * _likelihood(history, means)))


def _likelihood(history: _LoadHistory, means: Sequence[_Mean]) -> float:
    """Return the agreement of means with those measured since the start of the move."""
    likely = 1.0
    for (at_s, load), (elapsed_s, total) in zip(history.ticks, means, strict=True):
        measured = load.used_bytes_per_s
        if measured is not None and (history.move_start is None or at_s >= history.move_start[1]):
            error = _ERROR_RATIO * max(measured, 0.3 * (load.throttle_bytes_per_s or 0.0), 1.0)
            likely *= _agreement((total / elapsed_s - measured) / error)
    return likely


def _agreement(errors: float) -> float:
    """Return a likelihood from a difference in standard errors; one outlier does not reduce it to 0."""
    return 1 / (1 + errors**2)


def _count(window: QuotaSamples, history: _LoadHistory, copy_time: float, first_bytes: float) -> list[_Mean]:
    """Count the traffic between ticks in the samples, and return the mean at each tick.

    Args:
        window: samples at the oldest tick; they are changed.
        history: the ticks.
        copy_time: time of the copies between two ticks, 0 to 1.
        first_bytes: bytes copied between the two ticks around the start of the move.
    """
    means = [_Mean(window.elapsed_s(history.ticks[0].at_s), window.total_bytes)]
    for (before_s, before), (after_s, after) in pairwise(history.ticks):
        first = history.move_start == (before_s, after_s)
        # In the first ticks of a move rates are still unknown; later ones are almost the same.
        rates = next((d for d in (after if first else before, after) if d.in_sync_bytes_per_s is not None), history.now)
        in_sync = steady_bytes_per_s(before.role, rates.in_sync_bytes_per_s or 0.0)
        at_s = before_s + (after_s - before_s) * copy_time
        window.advance(at_s, in_sync)
        copied = first_bytes if first else _copied_bytes(before, after, rates.behind_bytes_per_s * (after_s - before_s))
        if copied > 0:
            window.record(at_s, copied)
        window.advance(after_s, in_sync)
        # Before the move starts, only the collector reads the mean of a destination, once per tick.
        idle = before.role is Role.FOLLOWER and not after.limited_replicas
        elapsed_s = window.elapsed_s(after_s, math.inf) if idle else window.elapsed_s(after_s)
        means.append(_Mean(elapsed_s, window.total_bytes))
    return means


def _copied_bytes(before: ThrottleLoad, after: ThrottleLoad, written_bytes: float) -> float:
    """Return the bytes copied between two ticks: writes minus the growth of the lag."""
    if not before.limited_replicas or before.remaining_bytes is None or after.remaining_bytes is None:
        return 0.0
    return max(0.0, written_bytes + before.remaining_bytes - after.remaining_bytes)


def _mean(load: ThrottleLoad) -> float:
    """Return the mean reported for the quota, bytes per second; without a gauge, the throttle, so there is no room."""
    if load.used_bytes_per_s is None:
        return load.throttle_bytes_per_s or 0.0
    return load.used_bytes_per_s
