"""What the samples of a quota contain now, as far as ticks show it."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

from planning.finish.limits import QuotaWindow
from planning.finish.quota import QuotaSamples, steady, unused
from planning.throttles.load import ThrottleLoad
from schemas.alerts import Role

# The mean of a quota is read some moments before or after the log ends of its tick.
_ERROR_RATIO = 0.03
# A mean so small against the throttle, as ratio, is that of a quota without throttled traffic.
_IDLE_RATIO = 0.02
_HEADERS_BYTES_PER_S = 1.0
# How likely it is beforehand that the samples of an idle quota were reset one after the other, not all at once.
_SPREAD = 0.5
_LEAST = 1e-300


@dataclass(frozen=True)
class Guess:
    """One state that a quota may be in.

    Attributes:
        window: its samples; time 0 is now.
        weight: how well it agrees with the ticks, 0 to 1; those of one quota add up to 1.
    """

    window: QuotaSamples
    weight: float


@dataclass(frozen=True)
class _Seen:
    """A broker and role in several ticks.

    Attributes:
        ticks: oldest first: seconds from now, at most 0, and what was seen.
        began: the ticks between which the move began, in seconds from now; None: before them all, or not yet.
    """

    ticks: Sequence[tuple[float, ThrottleLoad]]
    began: tuple[float, float] | None

    @property
    def now(self) -> ThrottleLoad:
        return self.ticks[-1][1]


def guesses(
    demand: ThrottleLoad,
    earlier: Sequence[tuple[float, ThrottleLoad]],
    phases: Sequence[float],
    places: Sequence[float],
) -> list[Guess]:
    """Return the states that a quota may be in, the likeliest first.

    What in-sync followers took, and by how much the lag fell short of what was written, says what passed between two
    ticks. What came when the move began is not known, nor when the samples begin; so every guess assumes some
    beginning, counts what is known as Kafka would have, and lets so much have come at first that the mean is the one
    measured now. It is the likelier, the nearer its means are to those of the earlier ticks.

    Args:
        demand: a broker and role now.
        earlier: the same in ticks before, youngest first: age in seconds, and demand.
        phases: how much of a sample was over at the oldest tick, 0 to 1.
        places: when between two ticks copies came, 0 to 1.
    """
    ticks = [(-age_s, older) for age_s, older in reversed(earlier)] + [(0.0, demand)]
    seen = _Seen(ticks, _began(ticks))
    found = [
        _guess(seen, window, weight, place)
        for phase in phases
        for window, weight in _beginnings(seen, phase)
        for place in places
    ]
    total = sum(guess.weight for guess in found)
    return sorted((Guess(g.window, g.weight / total) for g in found), key=lambda g: -g.weight)


def at_quantile(found: Sequence[Guess], quantile: float) -> QuotaSamples:
    """Return a copy of the window at a quantile of the guesses, 0 to 1."""
    passed = 0.0
    for guess in found:
        passed += guess.weight
        if passed >= quantile:
            break
    return guess.window.copy()


def steady_bytes_per_s(role: Role, bytes_per_s: float) -> float:
    """Return the traffic that a quota counts all the time, bytes per second.

    Every response of a leader counts, if only with its header: so its samples follow each other also without throttled
    traffic, and those of a destination do not.

    Source: ``KafkaApis.sizeOfThrottledPartitions``, ``ReplicaFetcherThread.processPartitionData``.

    Args:
        role: leader or follower.
        bytes_per_s: throttled traffic.
    """
    return max(_HEADERS_BYTES_PER_S, bytes_per_s) if role is Role.LEADER else bytes_per_s


def _began(ticks: Sequence[tuple[float, ThrottleLoad]]) -> tuple[float, float] | None:
    steps = ((older, newer) for older, newer in pairwise(ticks) if newer[1].limited_replicas)
    return next(((older[0], newer[0]) for older, newer in steps if not older[1].limited_replicas), None)


def _beginnings(seen: _Seen, phase: float) -> Iterator[tuple[QuotaSamples, float]]:
    """Give windows at the oldest tick, and how likely each is beforehand."""
    at_s, first = seen.ticks[0]
    settings = first.quota_window
    made_s = next((s for s, d in seen.ticks if d.used_bytes_per_s is not None), at_s)
    idle = _mean(first) < _IDLE_RATIO * (seen.now.throttle_bytes_per_s or 0.0)
    if made_s > at_s and first.throttle_known:
        # A quota that has never counted has no gauge: its first sample begins with its first amount.
        before_s = max(s for s, _ in seen.ticks if s < made_s)
        yield unused(before_s + phase * (made_s - before_s), at_s, settings), 1.0
    elif idle and first.role is Role.FOLLOWER and not first.limited_replicas:
        yield from _idle(at_s, phase, settings)
    else:
        yield steady(steady_bytes_per_s(first.role, _mean(first)), at_s, settings, phase), 1.0


def _idle(at_s: float, phase: float, settings: QuotaWindow) -> Iterator[tuple[QuotaSamples, float]]:
    """Give windows of a destination without throttled traffic: empty samples are reset when a window is over."""
    kept = settings.samples + 1
    ages_s = [(age + phase) * settings.sample_s for age in reversed(range(kept))]
    for turn in range(kept):
        starts_s = [at_s - age_s for age_s in ages_s[turn:] + ages_s[:turn]]
        yield QuotaSamples(starts_s, [0.0] * kept, at_s, settings), _SPREAD / kept
    at_once = range(settings.samples)
    for age in at_once:
        yield unused(at_s - (age + phase) * settings.sample_s, at_s, settings), (1 - _SPREAD) / len(at_once)


def _guess(seen: _Seen, beginning: QuotaSamples, weight: float, place: float) -> Guess:
    """Return the state that a window at the oldest tick leads to, by what passed since."""
    window, mean = beginning.copy(), _mean(seen.now)
    means = _count(window, seen, place, 0.0)
    missing = mean * means[-1][0] - means[-1][1]
    if seen.began is not None and missing > 0:
        window = beginning.copy()
        means = _count(window, seen, place, missing)
    elapsed_s, total = means[-1]
    if total <= 0 or mean <= 0:
        return Guess(steady(mean, 0.0, window.settings), _LEAST)
    window.scale(mean * elapsed_s / total)
    fits = _agreement(math.log(mean * elapsed_s / total) / _ERROR_RATIO)
    return Guess(window, max(_LEAST, weight * fits * _likelihood(seen, means)))


def _likelihood(seen: _Seen, means: Sequence[tuple[float, float]]) -> float:
    """Return how well means agree with those that were measured since the move began."""
    likely = 1.0
    for (at_s, demand), (elapsed_s, total) in zip(seen.ticks, means, strict=True):
        measured = demand.used_bytes_per_s
        if measured is not None and (seen.began is None or at_s >= seen.began[1]):
            error = _ERROR_RATIO * max(measured, 0.3 * (demand.throttle_bytes_per_s or 0.0), 1.0)
            likely *= _agreement((total / elapsed_s - measured) / error)
    return likely


def _agreement(errors: float) -> float:
    """Return a likelihood that one outlier does not bring to nothing, by the difference in standard errors."""
    return 1 / (1 + errors**2)


def _count(window: QuotaSamples, seen: _Seen, place: float, came_bytes: float) -> list[tuple[float, float]]:
    """Count what passed from tick to tick; return for each tick the seconds that the mean is over, and the total."""
    means = [(window.elapsed_s(seen.ticks[0][0]), window.total_bytes)]
    for (before_s, before), (after_s, after) in pairwise(seen.ticks):
        first = seen.began == (before_s, after_s)
        # Rates of the first ticks of a move are not known yet, and hardly other ones than those that follow.
        rates = next((d for d in (after if first else before, after) if d.in_sync_bytes_per_s is not None), seen.now)
        in_sync = steady_bytes_per_s(before.role, rates.in_sync_bytes_per_s or 0.0)
        at_s = before_s + (after_s - before_s) * place
        window.advance(at_s, in_sync)
        copied = came_bytes if first else _copied_bytes(before, after, rates.behind_bytes_per_s * (after_s - before_s))
        if copied > 0:
            window.record(at_s, copied)
        window.advance(after_s, in_sync)
        # Until the move begins only the collector reads the mean of a destination, with every tick.
        idle = before.role is Role.FOLLOWER and not after.limited_replicas
        means.append((window.elapsed_s(after_s, math.inf) if idle else window.elapsed_s(after_s), window.total_bytes))
    return means


def _copied_bytes(before: ThrottleLoad, after: ThrottleLoad, written_bytes: float) -> float:
    """Return what was copied between two ticks: by how much the lag fell short of what was written."""
    if not before.limited_replicas or before.remaining_bytes is None or after.remaining_bytes is None:
        return 0.0
    return max(0.0, written_bytes + before.remaining_bytes - after.remaining_bytes)


def _mean(demand: ThrottleLoad) -> float:
    """Return the mean that the quota shows, bytes per second; without a gauge, that it has no room."""
    if demand.used_bytes_per_s is None:
        return demand.throttle_bytes_per_s or 0.0
    return demand.used_bytes_per_s
