"""Carrying out a plan of elections, batch by batch, each only while all is as it was planned."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from cluster.admin.elect_leaders import ElectionResults
from cluster.elections.leadership import LeadershipSnapshot
from cluster.elections.preconditions import RESUME, list_partitions, require_none_lost, to_elect, unsettled
from planning.elections.planner import Batch, BatchLimits, Name, balances
from schemas.errors import HeadroomError

_POLL_S = 0.5
# How often it is looked whether it is quiet by now.
_QUIET_POLL_S = 10.0
_NOT_QUIET = "Run it when it is, or with --wait to wait for it."
OnStep = Callable[[str], None]


class Cluster(Protocol):
    """What is asked of a running cluster; see ``cluster.elections.live_leadership.LiveLeadership``."""

    def look(self, watched: Collection[Name] = ()) -> LeadershipSnapshot:
        """Return who leads what, with throttles and traffic, and of what is watched who falls behind."""
        ...

    def glance(self) -> LeadershipSnapshot:
        """Return who leads what."""
        ...

    def elect(self, names: Collection[Name]) -> ElectionResults:
        """Ask for elections and return what became of them."""
        ...


@dataclass(frozen=True)
class ExecutionPolicy:
    """On what terms a plan is carried out.

    Attributes:
        limits: with which the plan was made.
        hindrance: returns in words why it is not quiet enough now; None: it is.
        wait: whether a time that is quiet is waited for.
        settle_s: longest time for leaders to move and followers to be in sync again.
        pause_s: wait between two batches.
    """

    limits: BatchLimits
    blocked_reason: Callable[[LeadershipSnapshot], str | None] = lambda leads: None
    wait: bool = False
    settle_s: float = 60.0
    pause_s: float = 10.0


@dataclass(frozen=True)
class BatchResult:
    """What became of one batch.

    Attributes:
        number: of the batch, from 1.
        answers: what became of its partitions.
        settled_s: how long its leaders and followers took; None: they did not settle.
        imbalance_ratios: ratio of every broker then; empty if they did not settle.
    """

    number: int
    answers: ElectionResults
    settled_s: float | None = None
    imbalance_ratios: Mapping[int, float] = field(default_factory=dict)


class ElectionExecutor:
    """Carries out the batches of a plan.

    Args:
        cluster: the running cluster.
        batches: of the plan, in order.
        start: the cluster when the plan was made.
        terms: how.
        stop: once it is set, no further batch is begun.
        on_step: told what is being done, in short.
        clock: monotonic seconds.
        sleep: waits for some seconds.
    """

    def __init__(
        self,
        cluster: Cluster,
        batches: Sequence[Batch],
        start: LeadershipSnapshot,
        terms: ExecutionPolicy,
        stop: threading.Event,
        on_step: OnStep = lambda text: None,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._cluster = cluster
        self._batches = batches
        self._start = start
        self._terms = terms
        self._stop = stop
        self._on_step = on_step
        self._clock = clock
        self._sleep = sleep

    def run(self) -> Iterator[BatchResult]:
        """Yield what became of each batch once it is done; the last one yielded may be one that failed.

        Raises:
            HeadroomError: something is not as planned; no further batch was begun.
        """
        last = self._start
        done: tuple[Name, ...] = ()
        for number, batch in enumerate(self._batches, start=1):
            if number > 1:
                self._on_step(f"pause before batch {number}")
                self._stop.wait(self._terms.pause_s)
            now = self._caught_up(number, {*done, *batch.partitions})
            if now is None:
                return
            require_none_lost(last, now)
            last = yield from self._batch(number, batch, now)
            done = batch.partitions

    def _caught_up(self, number: int, watched: Collection[Name]) -> LeadershipSnapshot | None:
        """Return the cluster once it is quiet and no follower of these falls behind; None: it was to stop before."""
        deadline_s: float | None = None
        while True:
            now = when_quiet(self._cluster, self._terms, self._stop, self._on_step, watched)
            if now is None or not now.behind:
                return now
            lacks = f"followers in sync are behind: {list_partitions(now.behind)}"
            if deadline_s is None:
                deadline_s = self._clock() + self._terms.settle_s
            elif self._clock() >= deadline_s:
                rule = f"cannot begin, for after {self._terms.settle_s:g} s {lacks}"
                raise HeadroomError(f"batch {number}", rule, RESUME)
            self._on_step(f"batch {number}: {lacks}")
            self._sleep(_POLL_S)

    def _batch(
        self, number: int, batch: Batch, before: LeadershipSnapshot
    ) -> Generator[BatchResult, None, LeadershipSnapshot]:
        """Yield what became of a batch, and return the cluster once it has settled."""
        names = to_elect(batch, self._start, before, self._terms.limits)
        led = tuple(name for name in batch.partitions if name not in names)
        self._on_step(f"batch {number}: electing {len(names)} leaders")
        answers = self._cluster.elect(names) if names else ElectionResults()
        answers = replace(answers, not_needed=(*led, *answers.not_needed))
        if answers.refused:
            yield BatchResult(number, answers)
            raise _refused(answers.refused)
        began_s = self._clock()
        try:
            now = self._settle(number, batch, before)
        except HeadroomError:
            yield BatchResult(number, answers)
            raise
        ratios = {b.broker: b.imbalance_ratio for b in balances(now.partitions.values(), now.alive)}
        yield BatchResult(number, answers, self._clock() - began_s, ratios)
        return now

    def _settle(self, number: int, batch: Batch, before: LeadershipSnapshot) -> LeadershipSnapshot:
        """Return the cluster once the leaders of a batch have moved and no replica lacks that did not before."""
        deadline_s = self._clock() + self._terms.settle_s
        while True:
            now = self._cluster.glance()
            require_none_lost(before, now)
            lacks = unsettled(batch.partitions, self._start, now)
            if lacks is None:
                return now
            if self._clock() >= deadline_s:
                rule = f"has not settled within {self._terms.settle_s:g} s: {lacks}"
                raise HeadroomError(f"batch {number}", rule, RESUME)
            self._on_step(f"batch {number}: {lacks}")
            self._sleep(_POLL_S)


def when_quiet(
    cluster: Cluster, terms: ExecutionPolicy, stop: threading.Event, on_step: OnStep, watched: Collection[Name] = ()
) -> LeadershipSnapshot | None:
    """Return the cluster as soon as it is quiet enough for elections; None: it was to stop before.

    Args:
        cluster: the running cluster.
        terms: what quiet is, and whether it is waited for.
        stop: once it is set, the wait is over.
        on_step: told what is being waited for.
        watched: partitions whose followers are looked at too.

    Raises:
        HeadroomError: it is not quiet, and that is not to be waited for.
    """
    while not stop.is_set():
        now = cluster.look(watched)
        blocked_reason = terms.blocked_reason(now)
        if blocked_reason is None:
            return None if stop.is_set() else now
        if not terms.wait:
            raise not_quiet(blocked_reason)
        on_step(f"waiting for a quiet time: {blocked_reason}")
        stop.wait(_QUIET_POLL_S)
    return None


def _refused(refused: Mapping[Name, str]) -> HeadroomError:
    reasons = ", ".join(dict.fromkeys(refused.values()))
    return HeadroomError(list_partitions(refused), f"not elected: Kafka answered {reasons}", RESUME)


def not_quiet(blocked_reason: str) -> HeadroomError:
    """Return the error that says that it is not quiet enough now."""
    return HeadroomError("elections", f"wait for a quiet time: {blocked_reason}", _NOT_QUIET)
