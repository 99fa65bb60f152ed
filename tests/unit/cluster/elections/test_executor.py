"""Execution of election plans on a cluster that deviates from the plan."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from headroom.cluster.elections.executor import BatchResult, ElectionExecutor, ExecutionPolicy, when_quiet
from headroom.cluster.elections.leadership import LeadershipSnapshot
from headroom.cluster.elections.traffic import Traffic
from headroom.planning.elections.planner import BatchLimits, ElectionPlan, plan_elections
from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role, TopicPartition
from tests.unit.builders.leadership import FakeCluster, away, home

LIMITS = BatchLimits(partitions=2, capacity_bytes_per_s=120)


class Time:
    """Monotonic clock that sleeping advances."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.then: Callable[[], None] = lambda: None

    def __call__(self) -> float:
        return self.now_s

    def sleep(self, seconds: float) -> None:
        self.now_s += seconds
        self.then()


class Waiting(threading.Event):
    """An event that does something in place of waiting."""

    def __init__(self, then: Callable[[], None]) -> None:
        super().__init__()
        self._then = then

    def wait(self, timeout: float | None = None) -> bool:
        self._then()
        return self.is_set()


def plan(leadership: LeadershipSnapshot, limits: BatchLimits = LIMITS) -> ElectionPlan:
    return plan_elections(leadership.partitions.values(), limits, leadership.cluster_constraints())


def policy(
    blocked_reason: Callable[[LeadershipSnapshot], str | None] = lambda leadership: None,
    wait: bool = False,
    limits: BatchLimits = LIMITS,
) -> ExecutionPolicy:
    return ExecutionPolicy(limits, blocked_reason, wait, settle_s=5.0, pause_s=0.0)


class Running:
    """A plan for a cluster, and its execution.

    Attributes:
        outcomes: results of the started batches.
        steps: texts of the steps.
    """

    def __init__(self, cluster: FakeCluster, on: ExecutionPolicy | None = None, limits: BatchLimits = LIMITS) -> None:
        self.start = cluster.leadership_with_traffic()
        self.plan = plan(self.start, limits)
        self.outcomes: list[BatchResult] = []
        self.steps: list[str] = []
        self.stop = threading.Event()
        self.time = Time()
        self._execution = ElectionExecutor(
            cluster,
            self.plan.batches,
            self.start,
            on or policy(limits=limits),
            self.stop,
            self.steps.append,
            self.time,
            self.time.sleep,
        )

    def outcomes_one_by_one(self) -> Iterator[BatchResult]:
        return self._execution.run()

    def run(self) -> list[BatchResult]:
        for outcome in self.outcomes_one_by_one():
            self.outcomes.append(outcome)
        return self.outcomes

    def fails(self, match: str) -> list[BatchResult]:
        """Run to an error and return what was yielded before it."""
        with pytest.raises(HeadroomError, match=match):
            self.run()
        return self.outcomes


def three_away() -> FakeCluster:
    """Broker 1 leads one of the four partitions that prefer it: two batches, of two and of one."""
    return FakeCluster(away("t", 0), away("t", 1), away("t", 2), home("t", 3), home("u", 0, 2))


def test_batches_are_elected_one_after_the_other_as_predicted() -> None:
    cluster = three_away()
    running = Running(cluster)
    outcomes = running.run()
    assert [len(asked) for asked in cluster.asked] == [2, 1]
    assert {cluster.leader("t", n) for n in range(4)} == {1}
    # 1 of the 4 that prefer broker 1 is led by another after the first batch, none after the second.
    assert [outcome.imbalance_ratios for outcome in outcomes] == [{1: 0.25, 2: 0.0}, {1: 0.0, 2: 0.0}]
    assert [outcome.imbalance_ratios for outcome in outcomes] == [b.imbalance_ratios for b in running.plan.batches]


def test_partitions_that_have_their_preferred_leader_by_then_are_skipped_without_a_request() -> None:
    cluster = three_away()
    running = Running(cluster)
    for partition in range(3):
        cluster.set("t", partition, leader=1)
    outcomes = running.run()
    assert cluster.asked == []
    assert [len(outcome.answers.not_needed) for outcome in outcomes] == [2, 1]


def test_a_replica_out_of_sync_anywhere_stops_before_the_next_batch() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.set("u", 0, isr=(2, 1))
    assert running.fails(r"u-0: have out-of-sync replicas.*run the same command again") == []
    assert cluster.asked == []


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"moving": True}, "a reassignment of it is running"),
        ({"replicas": (3, 2, 1)}, "its replicas are others"),
        ({"leader": None}, "it has no leader"),
    ],
)
def test_a_partition_that_changed_since_the_plan_stops_its_batch(change: dict[str, object], reason: str) -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.set(*running.plan.batches[0].partitions[0], **change)
    running.fails(f"cannot be elected as planned: {reason}")
    assert cluster.asked == []


def test_a_further_out_of_sync_replica_is_named_by_its_broker() -> None:
    cluster = three_away()
    cluster.set("t", 0, isr=(1, 2))
    running = Running(cluster)
    cluster.set("t", 0, isr=(2,))
    running.fails("t-0: cannot be elected as planned: no longer in sync: broker 1")


def test_a_partition_that_is_gone_stops_its_batch() -> None:
    cluster = three_away()
    running = Running(cluster)
    del cluster.partitions[running.plan.batches[0].partitions[0]]
    running.fails("it is not there any more")


def test_a_broker_that_died_since_the_plan_stops_the_batch() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.alive = frozenset({2, 3})
    running.fails("its preferred broker is not alive")


def test_a_refusal_stops_and_is_reported_with_the_elected_ones() -> None:
    cluster = three_away()
    running = Running(cluster)
    refused = running.plan.batches[0].partitions[1]
    cluster.refused = {refused: "PREFERRED_LEADER_NOT_AVAILABLE"}
    (outcome,) = running.fails("not elected: Kafka answered PREFERRED_LEADER_NOT_AVAILABLE")
    assert (len(outcome.answers.elected), dict(outcome.answers.refused)) == (1, cluster.refused)
    assert outcome.settled_s is None


def test_leaders_that_do_not_move_in_time_stop() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.stuck = {running.plan.batches[0].partitions[0]}
    (outcome,) = running.fails("batch 1: has not settled within 5 s: 1 of 2 are not led by their preferred broker")
    assert outcome.settled_s is None
    assert running.time.now_s == pytest.approx(5.0)


def test_followers_are_waited_for() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.then = lambda: cluster.set("t", 3, isr=(1, 2))
    running.time.then = lambda: cluster.set("t", 3, isr=(1, 2, 3))
    assert [outcome.settled_s for outcome in running.run()] == [0.5, 0.5]
    assert any("replicas of 1 partitions are not in sync: t-3" in step for step in running.steps)


def test_a_preferred_leader_lost_meanwhile_stops_at_once() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.then = lambda: cluster.set("u", 0, leader=3)
    (outcome,) = running.fails("u-0: went from broker 2 to broker 3, which no election did")
    assert outcome.settled_s is None
    assert running.time.now_s == 0


@pytest.mark.parametrize("done", [0, 1])
def test_a_preferred_leader_lost_before_a_batch_stops_it_though_all_are_in_sync_again(done: int) -> None:
    cluster = three_away()
    running = Running(cluster)
    outcomes = running.outcomes_one_by_one()
    for _ in range(done):
        next(outcomes)
    cluster.set("u", 0, leader=3)
    with pytest.raises(HeadroomError, match="u-0: went from broker 2 to broker 3, which no election did"):
        next(outcomes)
    assert len(cluster.asked) == done


def test_a_throttle_that_would_be_too_low_by_now_stops() -> None:
    cluster = three_away()
    running = Running(cluster)
    assert ("t", 0) in running.plan.batches[0].partitions
    # Once broker 1 led it, it would have to send 10 bytes a second to each of two, one of which is out of sync.
    listed = frozenset({1, 2, 3})
    of_move = PartitionTraffic(
        TopicPartition("t", 0), 2, (1, 3), frozenset({1, 2}), frozenset(), listed, frozenset(), 10.0
    )
    cluster.throttled, cluster.throttles = (of_move,), {(b, role): 15.0 for b in (1, 2, 3) for role in Role}
    running.fails("t-0: cannot be elected as planned: a throttle of the running move would be too low")
    assert cluster.asked == []


def two_in_one_out() -> FakeCluster:
    """Broker 1 leads 60 bytes a second and can carry 120; it is to get 30 + 30, and then to give 30."""
    at_home = [home("t", 2, write=30), *(home("u", partition, 3) for partition in range(1, 5))]
    return FakeCluster(away("t", 0, write=30), away("t", 1, write=30), away("u", 0, 3, 1, write=30), *at_home)


def test_a_batch_that_would_be_too_much_for_a_broker_by_now_stops_though_each_of_it_would_not() -> None:
    cluster = two_in_one_out()
    running = Running(cluster)
    assert [set(batch.partitions) for batch in running.plan.batches] == [{("t", 0), ("t", 1)}, {("u", 0)}]
    # 60 + 40 + 40 is too much; a new plan has room for the second of them once u-0 is gone.
    for partition in (0, 1):
        cluster.set("t", partition, write_bytes_per_s=40.0)
    assert not plan(cluster.leadership_with_traffic()).left_out
    running.fails("t-1: cannot be elected as planned: its preferred broker would have to carry more than it can")
    assert cluster.asked == []


def test_load_given_up_by_a_batch_is_not_available_within_it() -> None:
    cluster = two_in_one_out()
    running = Running(cluster, limits=replace(LIMITS, partitions=3))
    assert len(running.plan.batches) == 1
    for partition in (0, 1):
        cluster.set("t", partition, write_bytes_per_s=40.0)
    running.fails("t-1: cannot be elected as planned: with the others of its batch a broker or a throttle")
    assert cluster.asked == []


def test_more_writes_than_a_batch_was_to_move_do_not_stop_it() -> None:
    cluster = three_away()
    running = Running(cluster, limits=replace(LIMITS, write_bytes_per_s=20))
    cluster.set("t", 0, write_bytes_per_s=11.0)
    assert len(running.run()) == 2


def test_a_batch_waits_for_followers_of_it_and_of_the_one_before_that_are_behind() -> None:
    cluster = three_away()
    running = Running(cluster)
    done = running.plan.batches[0].partitions[0]
    # Still in the ISR.
    cluster.then = lambda: cluster.behind.add(done)
    running.time.then = cluster.behind.clear
    assert len(running.run()) == 2
    assert f"batch 2: followers in sync are behind: {done[0]}-{done[1]}" in running.steps


def test_followers_that_stay_behind_stop_before_the_next_batch() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.then = lambda: cluster.behind.add(running.plan.batches[0].partitions[0])
    assert len(running.fails(r"batch 2: cannot begin: after 5 s followers in sync are behind: t-\d")) == 1
    assert len(cluster.asked) == 1


def test_followers_of_other_partitions_block_nothing() -> None:
    cluster = three_away()
    cluster.behind = {("u", 0)}
    assert len(Running(cluster).run()) == 2


def test_once_it_is_to_stop_no_further_batch_is_begun() -> None:
    cluster = three_away()
    running = Running(cluster)
    cluster.then = running.stop.set
    assert len(running.run()) == 1
    assert len(cluster.asked) == 1


def test_not_quiet_and_not_waiting_stops_before_anything() -> None:
    cluster = three_away()
    Running(cluster, policy(lambda leadership: "producers write too much")).fails("producers write too much.*--wait")
    assert cluster.asked == []


def test_a_quiet_time_is_waited_for_with_new_reads() -> None:
    cluster = three_away()

    def calm_down() -> None:
        cluster.traffic = Traffic(cluster_written=1.0)

    on = policy(lambda leadership: None if leadership.traffic.cluster_written == 1.0 else "too much", wait=True)
    steps: list[str] = []
    now = when_quiet(cluster, on, Waiting(calm_down), steps.append)
    assert now is not None
    assert now.traffic.cluster_written == 1.0
    assert steps == ["waiting for a quiet time: too much"]


def test_a_requested_stop_ends_the_wait_for_a_quiet_time() -> None:
    stop = threading.Event()
    stop.set()
    assert when_quiet(three_away(), policy(lambda leadership: "never", wait=True), stop, lambda text: None) is None
