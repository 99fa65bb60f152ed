"""Executes an election plan batch by batch, each batch only while the cluster matches the plan."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Collection, Generator, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from headroom.cluster.admin.elect_leaders import ElectionResults
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.elections.preconditions import (
    RESUME,
    list_partitions,
    require_preferred_kept,
    still_electable,
    unsettled_reason,
)
from headroom.planning.elections.planner import Batch, BatchLimits, balances
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# Interval between two reads while a batch settles.
_POLL_S = 0.5
# Interval between two checks for a quiet time.
_QUIET_POLL_S = 10.0
_QUIET_REMEDY = "Run it when it is, or with --wait to wait for it."
OnStep = Callable[[str], None]


class Cluster(Protocol):
    """Interface of a running cluster; see ``cluster.live.live_cluster.LiveCluster``."""

    def leadership_with_traffic(self, watched: Collection[TopicPartition] = ()) -> LeadershipSnapshot:
        """Return leaders, throttles and traffic, and the watched partitions whose followers fall behind."""
        ...

    def leadership(self) -> LeadershipSnapshot:
        """Return the leaders by the metadata alone."""
        ...

    def elect(self, names: Collection[TopicPartition]) -> ElectionResults:
        """Request preferred leader elections and return the result of each."""
        ...


@dataclass(frozen=True)
class ExecutionPolicy:
    """Policy for the execution of a plan.

    Attributes:
        limits: limits that the plan was made with.
        blocked_reason: returns why it is not quiet enough for elections; None if it is quiet.
        wait: whether to wait for a quiet time.
        settle_s: longest time until leaders have moved and followers are in sync, seconds.
        pause_s: pause between two batches, seconds.
    """

    limits: BatchLimits
    blocked_reason: Callable[[LeadershipSnapshot], str | None] = lambda leadership: None
    wait: bool = False
    settle_s: float = 60.0
    pause_s: float = 10.0


@dataclass(frozen=True)
class BatchResult:
    """Result of one batch.

    Attributes:
        number: number of the batch, from 1.
        answers: result of each partition.
        settled_s: time until leaders and followers settled, seconds; None if they did not.
        imbalance_ratios: imbalance ratio of every broker after that; empty if they did not settle.
    """

    number: int
    answers: ElectionResults
    settled_s: float | None = None
    imbalance_ratios: Mapping[int, float] = field(default_factory=dict)


@dataclass(frozen=True)
class ElectionExecutor:
    """Executes the batches of a plan.

    Attributes:
        cluster: the running cluster.
        batches: batches of the plan, in order.
        start: the cluster when the plan was made.
        policy: limits, waits and the quiet-time check.
        stop: once it is set, no further batch starts.
        on_step: called with a short text at every step.
        clock: monotonic seconds.
        sleep: waits for the given seconds.
    """

    cluster: Cluster
    batches: Sequence[Batch]
    start: LeadershipSnapshot
    policy: ExecutionPolicy
    stop: threading.Event
    on_step: OnStep = lambda text: None
    clock: Callable[[], float] = time.monotonic
    sleep: Callable[[float], None] = time.sleep

    def run(self) -> Iterator[BatchResult]:
        """Execute the batches and yield the result of each; the last one yielded may have failed.

        Raises:
            HeadroomError: the cluster deviates from the plan; no further batch was started.
        """
        last = self.start
        last_batch: tuple[TopicPartition, ...] = ()
        for number, batch in enumerate(self.batches, start=1):
            if number > 1:
                self.on_step(f"pause before batch {number}")
                self.stop.wait(self.policy.pause_s)
            now = self._wait_until_in_sync(number, {*last_batch, *batch.partitions})
            if now is None:
                return
            require_preferred_kept(last, now)
            last = yield from self._batch(number, batch, now)
            last_batch = batch.partitions

    def _wait_until_in_sync(self, number: int, watched: Collection[TopicPartition]) -> LeadershipSnapshot | None:
        """Return the cluster once it is quiet and the followers of these have caught up; None if stopped before."""
        deadline_s: float | None = None
        while True:
            now = when_quiet(self.cluster, self.policy, self.stop, self.on_step, watched)
            if now is None or not now.behind:
                return now
            problem = f"followers in sync are behind: {list_partitions(now.behind)}"
            if deadline_s is None:
                deadline_s = self.clock() + self.policy.settle_s
            elif self.clock() >= deadline_s:
                rule = f"cannot begin: after {self.policy.settle_s:g} s {problem}"
                raise HeadroomError(f"batch {number}", rule, RESUME)
            self.on_step(f"batch {number}: {problem}")
            self.sleep(_POLL_S)

    def _batch(
        self, number: int, batch: Batch, before: LeadershipSnapshot
    ) -> Generator[BatchResult, None, LeadershipSnapshot]:
        """Elect the leaders of a batch, yield its result, and return the cluster once it has settled."""
        names = still_electable(batch, self.start, before, self.policy.limits)
        already_led = tuple(name for name in batch.partitions if name not in names)
        self.on_step(f"batch {number}: electing {len(names)} leaders")
        results = self.cluster.elect(names) if names else ElectionResults()
        results = replace(results, not_needed=(*already_led, *results.not_needed))
        if results.refused:
            yield BatchResult(number, results)
            reasons = ", ".join(dict.fromkeys(results.refused.values()))
            rule = f"not elected: Kafka answered {reasons}"
            raise HeadroomError(list_partitions(results.refused), rule, RESUME)
        began_s = self.clock()
        try:
            now = self._settle(number, batch, before)
        except HeadroomError:
            yield BatchResult(number, results)
            raise
        ratios = {b.broker: b.imbalance_ratio for b in balances(now.partitions.values(), now.alive)}
        yield BatchResult(number, results, self.clock() - began_s, ratios)
        return now

    def _settle(self, number: int, batch: Batch, before: LeadershipSnapshot) -> LeadershipSnapshot:
        """Return the cluster once the leaders of a batch have moved and no further replica is out of sync."""
        deadline_s = self.clock() + self.policy.settle_s
        while True:
            now = self.cluster.leadership()
            require_preferred_kept(before, now)
            problem = unsettled_reason(batch.partitions, self.start, now)
            if problem is None:
                return now
            if self.clock() >= deadline_s:
                rule = f"has not settled within {self.policy.settle_s:g} s: {problem}"
                raise HeadroomError(f"batch {number}", rule, RESUME)
            self.on_step(f"batch {number}: {problem}")
            self.sleep(_POLL_S)


def when_quiet(
    cluster: Cluster,
    policy: ExecutionPolicy,
    stop: threading.Event,
    on_step: OnStep,
    watched: Collection[TopicPartition] = (),
) -> LeadershipSnapshot | None:
    """Return the cluster as soon as it is quiet enough for elections; None if stopped before.

    Args:
        cluster: the running cluster.
        policy: the quiet-time check, and whether to wait.
        stop: ends the wait.
        on_step: called with the reason for waiting.
        watched: partitions whose followers are checked too.

    Raises:
        HeadroomError: it is not quiet, and the policy does not wait.
    """
    while not stop.is_set():
        now = cluster.leadership_with_traffic(watched)
        blocked_reason = policy.blocked_reason(now)
        if blocked_reason is None:
            return None if stop.is_set() else now
        if not policy.wait:
            raise not_quiet(blocked_reason)
        on_step(f"waiting for a quiet time: {blocked_reason}")
        stop.wait(_QUIET_POLL_S)
    return None


def not_quiet(blocked_reason: str) -> HeadroomError:
    """Return the error for a cluster that is not quiet enough."""
    return HeadroomError("elections", f"wait for a quiet time: {blocked_reason}", _QUIET_REMEDY)
