"""Batches of a plan: as few as fit the throttle and the time, and what fewer or more of them would cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import NamedTuple

import numpy as np

from headroom.planning.reassignments.batches.batch import ReassignmentBatch, batches_of, copy_time_s
from headroom.planning.reassignments.batches.copy_need import CopyNeeds, copy_needs
from headroom.planning.reassignments.batches.packing import Packer, Packing
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from headroom.schemas.text.amounts import rate_text

Duration = Callable[[ReassignmentBatch], float | None]

_SUBJECT = "batches"
# Search for the number of batches: one by one at first, then in growing steps.
_ONE_BY_ONE, _GROWTH_RATIO = 12, 1.25
# Search for the throttle that meets a deadline: doublings and halvings, which are precise to about 1 %.
_DOUBLINGS, _HALVINGS = 30, 7


@dataclass(frozen=True)
class BatchPolicy:
    """Limits of batches.

    Attributes:
        batches: number of batches that copy; None for the fewest that keep the limits.
        max_throttle_bytes_per_s: largest throttle, in force in every batch; None if there is no limit.
        finish_within_s: longest time for all batches together, seconds; None if there is no limit.
        window_s: length of the daily window in which batches run, so the longest time for one batch, seconds; None if
            there is no limit.
        margin_ratio: factor between the required rate and the throttle.
        capacity_bytes_per_s: replication traffic that a broker can carry, whole bytes per second: no higher throttle
            makes a batch faster. None if unknown.
    """

    batches: int | None = None
    max_throttle_bytes_per_s: float | None = None
    finish_within_s: float | None = None
    window_s: float | None = None
    margin_ratio: float = 1.2
    capacity_bytes_per_s: float | None = None

    @property
    def limit_bytes_per_s(self) -> float:
        """The largest required rate that leaves the margin; infinity if there is no limit."""
        if self.max_throttle_bytes_per_s is None:
            return math.inf
        return self.max_throttle_bytes_per_s / self.margin_ratio


@dataclass(frozen=True)
class BatchOption:
    """Cost of a plan in a number of batches.

    Attributes:
        batches: number of batches that copy.
        needed_bytes_per_s: largest required rate of a batch, with the margin.
        throttle_bytes_per_s: largest throttle of a batch; None if nothing is copied.
        total_s: time of all batches together, seconds; infinity: never; None if unknown.
        longest_s: time of the longest batch, in the same way.
        windows: number of daily windows that they take; None without a window, or if the time is unknown.
        fits: whether the throttle, the time and the window are kept; false if that is unknown.
    """

    batches: int
    needed_bytes_per_s: float
    throttle_bytes_per_s: int | None
    total_s: float | None
    longest_s: float | None
    windows: int | None
    fits: bool


@dataclass(frozen=True)
class BatchedPlan:
    """A plan in batches.

    Attributes:
        batches: batches in their order. The first one copies nothing if leads are given up first.
        durations_s: time of each batch, seconds; infinity: never; None if unknown.
        leads_first: whether the first batch gives up leads; its partitions are then in a later batch too.
        chosen: cost of the chosen number of batches.
        options: costs of fewer and of more batches, and of the chosen number, in ascending order.
        in_time_bytes_per_s: throttle with which the chosen batches would keep the time, if they do not; None if they
            do, or if no throttle is known to be enough.
    """

    batches: tuple[ReassignmentBatch, ...]
    durations_s: tuple[float | None, ...]
    leads_first: bool
    chosen: BatchOption
    options: tuple[BatchOption, ...]
    in_time_bytes_per_s: int | None = None


def cut_into_batches(
    state: ClusterState,
    plan: ReassignmentPlan,
    policy: BatchPolicy,
    leads_first: Sequence[TargetAssignment] = (),
    duration_s: Duration = copy_time_s,
) -> BatchedPlan:
    """Return a plan in batches, each of which fits the throttle, with its margin.

    The batches that follow ``leads_first`` are exactly the plan: each partition is in one of them. Partitions that gain
    no replica are in the first of them, or in the batch of ``leads_first``.

    Without a number of batches these are the fewest that keep the limits. If no number keeps the time, the batches
    are those that miss it least.

    Args:
        state: the cluster before the plan.
        plan: target replicas.
        policy: limits.
        leads_first: orders of present replicas that give up leads before anything is copied, as a batch of their own.
        duration_s: time of a batch with its throttle, in seconds; infinity: never; None if unknown.

    Raises:
        HeadroomError: one partition alone exceeds the throttle, the wanted number of batches does, or the write rate of
            a copied partition is unknown while the throttle has a limit.
    """
    ordered = sorted(plan, key=lambda a: a.name)
    needs = copy_needs(state, ordered, {a.name: a.replicas[0] for a in leads_first})
    _check(needs, policy)
    cutter = _Cutter(needs, policy, duration_s)
    division = cutter.choose()
    late = len(needs) and not division.option.fits
    return BatchedPlan(
        *_with_uncopied(division, needs.others, leads_first),
        leads_first=bool(leads_first),
        chosen=division.option,
        options=tuple(cutter.around(division.option.batches)),
        in_time_bytes_per_s=cutter.in_time_bytes_per_s(division.batches) if late else None,
    )


class _Division(NamedTuple):
    batches: tuple[ReassignmentBatch, ...]
    durations_s: tuple[float | None, ...]
    option: BatchOption


class _Cutter:
    """Divisions of the same copies into different numbers of batches."""

    def __init__(self, needs: CopyNeeds, policy: BatchPolicy, duration_s: Duration) -> None:
        self._needs = needs
        self._policy = policy
        self._duration_s = duration_s
        self._packer = Packer(needs)
        self._divisions: dict[int, _Division] = {}

    def choose(self) -> _Division:
        """Return the wanted number of batches, or the fewest that keep the limits, or those that miss them least."""
        policy, most = self._policy, len(self._needs)
        if policy.batches is not None or not most:
            division = self._division(min(policy.batches or 0, most))
            if not _keeps_throttle(division.batches, policy):
                raise self._too_few(division.option)
            return division
        tried: list[_Division] = []
        for number in self._numbers():
            division = self._division(number)
            if division.option.fits:
                return division
            if _keeps_throttle(division.batches, policy):
                tried.append(division)
                if division.option.total_s is None or self._gets_worse(tried):
                    break
        return min(tried, key=lambda d: (_lateness(d.option, policy), d.option.batches))

    def around(self, chosen: int) -> Iterator[BatchOption]:
        """Yield the costs of fewer and of more batches than a number, and its own, in ascending order."""
        for number in sorted({1, chosen // 2, chosen - 1, chosen, chosen + 1, 2 * chosen}):
            if 1 <= number <= len(self._needs) or number == chosen:
                yield self._division(number).option

    def in_time_bytes_per_s(self, batches: Sequence[ReassignmentBatch]) -> int | None:
        """Return the smallest throttle with which batches keep the time; None if none is found."""

        def in_time(throttle: float) -> bool:
            durations = self._durations(self._with_throttle(batches, throttle))
            return _keeps_time(_total(durations), _longest(durations), self._policy)

        low = high = max(self._with_margin(batch) for batch in batches)
        capacity = self._policy.capacity_bytes_per_s
        most = low * 2**_DOUBLINGS if capacity is None else max(low, capacity)
        while not in_time(high):
            if high >= most:
                return None
            low, high = high, min(2 * high, most)
        for _ in range(_HALVINGS if high > low else 0):
            middle = (low + high) / 2
            low, high = (low, middle) if in_time(middle) else (middle, high)
        return math.ceil(high)

    def _numbers(self) -> Iterator[int]:
        """Yield the numbers of batches to try, in ascending order; the last one is the number of copies."""
        number, most = min(self._packer.fewest(self._policy.limit_bytes_per_s), len(self._needs)), len(self._needs)
        tried = 0
        while number < most:
            yield number
            tried += 1
            number = number + 1 if tried < _ONE_BY_ONE else math.ceil(number * _GROWTH_RATIO)
        yield most

    def _gets_worse(self, tried: Sequence[_Division]) -> bool:
        """Return whether none of the last divisions is better than those before."""
        lateness = [_lateness(division.option, self._policy) for division in tried]
        return len(tried) > _ONE_BY_ONE and min(lateness[-_ONE_BY_ONE:]) >= min(lateness[:-_ONE_BY_ONE])

    def _division(self, number: int) -> _Division:
        if number not in self._divisions:
            batches = self._in_force(self._fitting(number) or self._even(number))
            durations = self._durations(batches)
            self._divisions[number] = _Division(batches, durations, self._option(batches, durations))
        return self._divisions[number]

    def _fitting(self, number: int) -> list[ReassignmentBatch] | None:
        if number == len(self._needs):
            return batches_of(self._needs, np.arange(number))
        if number < self._packer.fewest(self._policy.limit_bytes_per_s):
            return None
        for packing in Packing:
            batch = self._packer.divide(number, packing, self._policy.limit_bytes_per_s)
            # Checked again: blocks of copies do not see each other, and sums in another order may differ a little.
            if batch is not None and _keeps_throttle(batches := batches_of(self._needs, batch), self._policy):
                return batches
        return None

    def _even(self, number: int) -> list[ReassignmentBatch]:
        batch = self._packer.divide(number, Packing.EVEN_RATES, math.inf)
        assert batch is not None, "there is no limit"
        return batches_of(self._needs, batch)

    def _in_force(self, batches: Sequence[ReassignmentBatch]) -> tuple[ReassignmentBatch, ...]:
        """Return batches with their throttles: the largest one if there is a limit, otherwise what they need."""
        policy = self._policy
        if policy.max_throttle_bytes_per_s is not None:
            return self._with_throttle(batches, policy.max_throttle_bytes_per_s)
        return self._with_throttle(batches, self._for_time(batches) if batches else 0.0)

    def _for_time(self, batches: Sequence[ReassignmentBatch]) -> float:
        """Return the throttle for the time, bytes per second; 0 if none is asked for, or what it takes is unknown."""
        policy = self._policy
        if policy.finish_within_s is None and policy.window_s is None:
            return 0.0
        if (enough := self.in_time_bytes_per_s(batches)) is not None:
            return enough
        # The capacity misses the time by least.
        known = not any(batch.unknown_rates or batch.unknown_sizes for batch in batches)
        return policy.capacity_bytes_per_s or 0.0 if known else 0.0

    def _with_throttle(self, batches: Sequence[ReassignmentBatch], throttle: float) -> tuple[ReassignmentBatch, ...]:
        """Return batches with a throttle, or with that which they need, if it is larger and there is no limit."""
        limit = self._policy.max_throttle_bytes_per_s
        needed = (throttle if limit is not None else max(throttle, self._with_margin(batch)) for batch in batches)
        return tuple(
            replace(batch, throttle_bytes_per_s=math.ceil(rate)) for batch, rate in zip(batches, needed, strict=True)
        )

    def _with_margin(self, batch: ReassignmentBatch) -> float:
        smallest, policy = batch.smallest_bytes_per_s, self._policy
        throttles = ThrottlePolicy(policy.margin_ratio, capacity_bytes_per_s=policy.capacity_bytes_per_s)
        return throttles.throttle_above(smallest) or throttles.with_margin(smallest)

    def _durations(self, batches: Sequence[ReassignmentBatch]) -> tuple[float | None, ...]:
        return tuple(self._duration_s(batch) for batch in batches)

    def _option(self, batches: Sequence[ReassignmentBatch], durations: Sequence[float | None]) -> BatchOption:
        policy = self._policy
        needed = max((batch.smallest_bytes_per_s for batch in batches), default=0.0) * policy.margin_ratio
        total, longest = _total(durations), _longest(durations)
        return BatchOption(
            batches=len(batches),
            needed_bytes_per_s=needed,
            throttle_bytes_per_s=max((batch.throttle_bytes_per_s or 0 for batch in batches), default=None),
            total_s=total,
            longest_s=longest,
            windows=_windows(durations, policy.window_s),
            fits=_keeps_throttle(batches, policy) and _keeps_time(total, longest, policy),
        )

    def _too_few(self, option: BatchOption) -> HeadroomError:
        return HeadroomError(
            f"{option.batches} batches",
            f"need a throttle of {rate_text(option.needed_bytes_per_s)}, more than --max-throttle allows",
            "Use more of them, or --batches auto.",
        )


def _with_uncopied(
    division: _Division, uncopied: Sequence[TargetAssignment], leads_first: Sequence[TargetAssignment]
) -> tuple[tuple[ReassignmentBatch, ...], tuple[float | None, ...]]:
    """Return the batches and their times, with the partitions that gain no replica in the first one."""
    batches, durations = division.batches, division.durations_s
    if batches and not leads_first:
        together = sorted((*uncopied, *batches[0].assignments), key=lambda a: a.name)
        return (replace(batches[0], assignments=tuple(together)), *batches[1:]), durations
    # The final order of a partition that copies nothing is as good as one that gives up its lead.
    final = {a.name for a in uncopied}
    first = sorted((*uncopied, *(a for a in leads_first if a.name not in final)), key=lambda a: a.name)
    return ((ReassignmentBatch(tuple(first)), *batches), (0.0, *durations)) if first else (batches, durations)


def _check(needs: CopyNeeds, policy: BatchPolicy) -> None:
    if policy.batches is not None and policy.batches < 1:
        raise HeadroomError(_SUBJECT, "must be at least 1", "Use a greater number, or auto.")
    if policy.max_throttle_bytes_per_s is None or not len(needs):
        return
    unknown = int((~needs.rate_known).sum())
    if unknown:
        rule = f"cannot be fitted to --max-throttle, because the write rate of {unknown} partitions is unknown"
        raise HeadroomError(_SUBJECT, rule, "Wait until it is known, or use --batches with a number.")
    of_entries = np.where(needs.limits, needs.most_bytes_per_s + needs.besides_bytes_per_s[needs.role], 0.0)
    largest = int(of_entries.argmax())
    alone = float(of_entries[largest])
    if alone > policy.limit_bytes_per_s:
        needed = rate_text(alone * policy.margin_ratio)
        rule = f"needs a throttle of {needed} in a batch of its own, more than --max-throttle allows"
        name = needs.assignments[needs.copy[largest]].name
        raise HeadroomError(str(name), rule, "Allow more, or move it when less is written.")


def _total(durations: Sequence[float | None]) -> float | None:
    known = [duration for duration in durations if duration is not None]
    return math.fsum(known) if len(known) == len(durations) else None


def _longest(durations: Sequence[float | None]) -> float | None:
    known = [duration for duration in durations if duration is not None]
    return max(known, default=0.0) if len(known) == len(durations) else None


def _keeps_throttle(batches: Sequence[ReassignmentBatch], policy: BatchPolicy) -> bool:
    return all(batch.smallest_bytes_per_s <= policy.limit_bytes_per_s for batch in batches)


def _keeps_time(total_s: float | None, longest_s: float | None, policy: BatchPolicy) -> bool:
    """Return whether times are within the limits, and every batch ends; false if what is limited is unknown."""
    kept = [(total_s, policy.finish_within_s), (longest_s, policy.window_s)]
    return total_s != math.inf and all(limit is None or (time is not None and time <= limit) for time, limit in kept)


def _lateness(option: BatchOption, policy: BatchPolicy) -> float:
    """Return the ratio between times and their limits, for the limit that is missed most; infinity if unknown, or if a
    batch never ends.
    """
    if option.total_s == math.inf:
        return math.inf
    kept = [(option.total_s, policy.finish_within_s), (option.longest_s, policy.window_s)]
    return max((math.inf if time is None else time / limit for time, limit in kept if limit is not None), default=0.0)


def _windows(durations: Sequence[float | None], window_s: float | None) -> int | None:
    """Return the number of daily windows that batches take; one that does not fit into the rest waits for the next."""
    if window_s is None or any(duration is None or duration > window_s for duration in durations):
        return None
    windows, left = 0, 0.0
    for duration in durations:
        assert duration is not None, "checked above"
        if windows == 0 or duration > left:
            windows, left = windows + 1, window_s
        left -= duration
    return windows
