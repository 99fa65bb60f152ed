"""A run on a cluster in memory: killed at every single step, it ends as if it had not been, and leaves nothing."""

from __future__ import annotations

from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import dataclass, field, replace

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.reassignment.execution.cleaning import clean_run
from headroom.cluster.reassignment.execution.control import IfCleared, RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.executor import RunOutcome
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.record import RunState
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRate, BrokerRole, Role, TopicPartition
from tests.unit.builders.run_stage import RunStage
from tests.unit.fakes.reassigned_cluster import Crash, FakeReassignedCluster, Killed

MB = 1_000_000
RATE = 10 * MB
LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
BEFORE = {("a", 0): (1, 2), ("a", 1): (2, 3), ("a", 2): (3, 1), ("b", 0): (3, 2, 1), ("b", 1): (1, 2), ("c", 0): (2,)}
# Moves, a new factor, another order only, and a smaller factor.
AFTER = {("a", 0): (4, 2), ("a", 1): (2, 4), ("a", 2): (1, 3), ("b", 0): (4, 2, 1), ("b", 1): (1,), ("c", 0): (2, 3)}


def placement(name: tuple[str, int], replicas: tuple[int, ...], **values: object) -> PartitionPlacement:
    placed = PartitionPlacement(*name, replicas[0], replicas, replicas)
    return replace(placed, **values)  # type: ignore[arg-type]


def plan(*names: tuple[str, int]) -> ReassignmentPlan:
    return ReassignmentPlan(tuple(TargetAssignment(TopicPartition(*name), AFTER[name]) for name in names))


# The rates of the first batch; where none is set, that of followers has a default.
NEEDED = {BrokerRole(1, LEADER), BrokerRole(2, LEADER), BrokerRole(3, LEADER), BrokerRole(4, FOLLOWER)}
BATCHES = [plan(("a", 0), ("a", 1), ("a", 2)), plan(("b", 0), ("b", 1), ("c", 0))]


def fresh() -> FakeReassignedCluster:
    """A cluster with throttles of others: a list entry of the plan, a lower rate, a higher one, and a whole topic."""
    return FakeReassignedCluster(
        {TopicPartition(*name): placement(name, replicas) for name, replicas in BEFORE.items()},
        {1, 2, 3, 4},
        rates={
            BrokerRole(1, LEADER): 4 * MB,
            BrokerRole(2, LEADER): 40 * MB,
            BrokerRole(4, LEADER): 3 * MB,
        },
        defaults={"follower": 5 * MB},
        lists={ThrottledList("a", LEADER): "0:1,7:7", ThrottledList("c", FOLLOWER): "*"},
    )


@dataclass
class Stage(RunStage):
    """The cluster of this file with both batches."""

    cluster: FakeReassignedCluster = field(default_factory=fresh)
    batches: list[ReassignmentPlan] = field(default_factory=lambda: list(BATCHES))
    policy: RunPolicy = field(default_factory=lambda: RunPolicy(RATE, pause_s=0))


STEPS = Stage().steps()


def assert_as_without_a_crash(stage: Stage) -> None:
    assert stage.replicas() == AFTER
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert stage.left_behind() == []
    (record,) = stage.journal.records()
    assert record.state is RunState.DONE
    # What a rollback restores, in its order.
    assert {tuple(name): move.before for name, move in record.submitted.items()} == BEFORE
    assert [p.leader for p in stage.cluster.partitions.values()] == [AFTER[name][0] for name in AFTER]


def test_a_run_moves_the_plan_and_leaves_the_throttles_as_they_were() -> None:
    stage = Stage()
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused, outcome.batches) == (None, {}, 2)
    assert_as_without_a_crash(stage)


def test_the_throttle_of_a_batch_is_that_of_kafkas_tool_without_partitions_that_gain_nothing() -> None:
    seen: list[tuple[dict[ThrottledList, str], dict[BrokerRole, int]]] = []
    stage = Stage(batches=[BATCHES[0]])
    stage.cluster.on_look = lambda cluster: seen.append((dict(cluster.lists), dict(cluster.rates)))
    stage.run()
    lists, rates = next(found for found in seen if ThrottledList("a", FOLLOWER) in found[0])
    # a-2 only changes its order. 0:1 and 7:7 are of others.
    assert lists[ThrottledList("a", LEADER)] == "0:1,0:2,1:2,1:3,7:7"
    assert lists[ThrottledList("a", FOLLOWER)] == "0:4,1:4"
    # Leaders 1 to 3, destination 4; broker 2 has a higher rate already, and 4 as leader takes no part.
    assert rates == {
        BrokerRole(1, LEADER): RATE,
        BrokerRole(2, LEADER): 40 * MB,
        BrokerRole(3, LEADER): RATE,
        BrokerRole(4, LEADER): 3 * MB,
        BrokerRole(4, FOLLOWER): RATE,
    }


@pytest.mark.parametrize("step", range(1, STEPS + 1, 3))
@pytest.mark.parametrize("rate", [RATE // 4, 2 * RATE])
def test_rates_of_a_run_follow_the_command_that_resumes_it(step: int, rate: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    own = {name for record in stage.left_behind() for name in record.rates}
    before = fresh().rates
    wrong: list[tuple[BrokerRole, int]] = []
    looks: list[int] = []

    def look(cluster: FakeReassignedCluster) -> None:
        # The first two come before the current batch gets its throttle. A higher rate of others stays.
        looks.append(len(looks))
        if cluster.left and len(looks) > 2:
            moving = [cluster.partitions[name] for name in cluster.left]
            copying = {BrokerRole(b, FOLLOWER) for p in moving for b in p.adding}
            copying |= {BrokerRole(b, LEADER) for p in moving if p.adding for b in p.before}
            now = {name: cluster.rates[name] for name in own & copying if name in cluster.rates}
            wrong.extend((name, r) for name, r in now.items() if r != max(rate, before.get(name, 0)))

    stage.cluster.on_look = look
    stage.go_on(policy=replace(stage.policy, throttle_bytes_per_s=rate))
    assert wrong == []
    assert_as_without_a_crash(stage)


def test_a_rate_that_others_lower_while_partitions_move_stays_as_they_set_it() -> None:
    # 40 MB/s were enough, and so not set by the run.
    name, low = BrokerRole(2, LEADER), RATE // 2
    stage = Stage(batches=[BATCHES[0]])

    def lower(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.rates[name] = low

    stage.cluster.on_look = lower
    stage.run()
    assert stage.cluster.rates[name] == low
    assert ("rate", (name, RATE)) not in stage.cluster.requests


def setting_once(stage: Stage, name: BrokerRate, rate: int) -> list[int]:
    """Let others set a rate in the first batch, once its throttle is in force; return the number of requests then."""
    requests: list[int] = []

    def look(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 0) in cluster.left and not requests:
            cluster.rates[name] = rate
            requests.append(len(cluster.requests))

    stage.cluster.on_look = look
    return requests


def rates_requested(cluster: FakeReassignedCluster, name: BrokerRate, since: int = 0) -> list[object]:
    """Return the requests of a rate, except for the first ones of all requests."""
    found = [what for kind, what in cluster.requests[since:] if kind == "rate"]
    return [what for what in found if isinstance(what, tuple) and what[0] == name]


# A rate of others that was enough and that they lower, and one of the run that they set back to what it was before.
LOWERED = [(BrokerRole(2, LEADER), 2 * MB), (BrokerRole(1, LEADER), 4 * MB)]


@pytest.mark.parametrize(("name", "low"), LOWERED)
def test_a_rate_that_others_lower_in_one_batch_stays_so_in_the_next_also_after_a_crash(
    name: BrokerRate, low: int
) -> None:
    for step in range(STEPS + 1):
        stage = Stage()
        requests = setting_once(stage, name, low)
        with suppress(Killed):
            stage.run(step)
        stage.go_on()
        assert rates_requested(stage.cluster, name, requests[0]) == []
        assert stage.cluster.rates == {**fresh().rates, name: low}
        line = f"The rate of broker {name.broker} as leader stays at {low // MB}.00 MB/s: others have changed it"
        assert [found for found in stage.lines if found.startswith(line)] != []
        assert stage.replicas() == AFTER
        assert stage.left_behind() == []


def test_a_rate_that_others_lower_is_named_once() -> None:
    stage = Stage()
    stage.cluster.looks = 8
    setting_once(stage, BrokerRole(2, LEADER), 2 * MB)
    stage.run()
    line = "The rate of broker 2 as leader stays at 2.00 MB/s: others have changed it during the run."
    assert stage.lines.count(line) == 1


def test_a_rate_that_others_lower_is_not_raised_with_the_throttle_of_the_run() -> None:
    # a-1 is written with 8 MB/s, so broker 2 sends 16 MB/s once broker 4 copies it too. Its 40 MB/s were enough.
    name, policy = BrokerRole(2, LEADER), RunPolicy(RATE, pause_s=0, auto_up_to_bytes_per_s=30 * MB)
    stage = Stage(batches=[plan(("a", 1)), BATCHES[1]])
    for partition in BEFORE:
        written(stage.cluster, partition, 8.0 * MB if partition == ("a", 1) else 0.0)

    def lower(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 1) in cluster.left:
            written(cluster, ("a", 1), 8.0 * MB)
            cluster.rates[name] = 2 * MB

    stage.cluster.looks = 4
    stage.cluster.on_look = lower
    stage.run(policy=policy)
    assert rates_requested(stage.cluster, name) == []
    assert stage.cluster.rates == {**fresh().rates, name: 2 * MB}
    assert [line for line in stage.lines if line.startswith("The throttle of broker 2 as leader has become too low")]


def test_a_batch_under_a_rate_of_others_that_is_too_low_does_not_begin_and_the_same_command_sets_it() -> None:
    name, policy = BrokerRole(2, LEADER), RunPolicy(RATE, pause_s=0, auto_up_to_bytes_per_s=30 * MB)
    stage = Stage(batches=[plan(("c", 0)), plan(("a", 1))])
    for partition in BEFORE:
        written(stage.cluster, partition, 8.0 * MB if partition == ("a", 1) else 0.0)

    def lower(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("c", 0) in cluster.left:
            cluster.rates[name] = 2 * MB

    stage.cluster.on_look = lower
    with pytest.raises(HeadroomError, match=r"2\.00 MB/s is too low: broker 2 as leader must exceed 16\.00 MB/s"):
        stage.run(policy=policy)
    assert stage.cluster.rates == {**fresh().rates, name: 2 * MB}
    # Given again, the command has seen that rate.
    assert stage.run(policy=policy).stopped is None
    assert ("rate", (name, 19_200_000)) in stage.cluster.requests
    assert stage.cluster.rates == {**fresh().rates, name: 2 * MB}


# A rate of others that was enough, and one of the run, whose own batch copies from broker 1 to broker 3.
CLEARED = [
    (BrokerRole(2, LEADER), TargetAssignment(TopicPartition("c", 0), (2, 3)), ("a", 1)),
    (BrokerRole(1, LEADER), TargetAssignment(TopicPartition("b", 1), (1, 2, 3)), ("a", 0)),
]


@pytest.mark.parametrize(("name", "first", "second"), CLEARED)
def test_a_rate_that_others_clear_in_one_batch_is_raised_for_the_next_with_the_throttle_of_the_run(
    name: BrokerRole, first: TargetAssignment, second: tuple[str, int]
) -> None:
    stage = Stage(batches=[ReassignmentPlan((first,)), plan(second)])
    for partition in BEFORE:
        written(stage.cluster, partition, 8.0 * MB if partition == second else 0.0)

    def clear(cluster: FakeReassignedCluster) -> None:
        if first.name in cluster.left:
            cluster.rates.pop(name, None)

    stage.cluster.on_look = clear
    assert stage.run(policy=RunPolicy(RATE, pause_s=0, auto_up_to_bytes_per_s=30 * MB)).stopped is None
    # 8 MB/s to each of two followers, and a fifth more.
    assert ("rate", (name, 19_200_000)) in stage.cluster.requests
    assert stage.cluster.rates == {other: rate for other, rate in fresh().rates.items() if other != name}


def test_killed_while_it_gives_its_rates_back_the_run_sets_them_again_for_the_next_batch() -> None:
    slow: list[int] = []

    def stage() -> Stage:
        made = Stage()

        def look(cluster: FakeReassignedCluster) -> None:
            moving = [cluster.partitions[name] for name in cluster.left if cluster.partitions[name].adding]
            rates = [cluster.rates.get(BrokerRole(b, LEADER), 0) for partition in moving for b in partition.before]
            slow.extend(rate for rate in rates if rate < RATE)
            if TopicPartition("a", 0) in cluster.left and not stopped:
                stopped.append(True)
                made.stop.set()

        stopped: list[bool] = []
        made.cluster.on_look = look
        return made

    for step in range(1, stage().steps() + 1):
        one = stage()
        with pytest.raises(Killed):
            one.run(step)
        one.stop.clear()
        one.go_on()
        if one.replicas() != AFTER:
            # It was stopped in the meantime.
            one.stop.clear()
            one.run()
        assert slow == []
        assert_as_without_a_crash(one)


def clearing(stage: Stage, at: Collection[int], cleared: Callable[[FakeReassignedCluster], None]) -> None:
    """Let others clear the throttle at some looks while partitions move, the first of which is 1."""
    looks: list[int] = []

    def look(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            looks.append(0)
            if len(looks) in at:
                cleared(cluster)

    stage.cluster.on_look = look


def clear_all(cluster: FakeReassignedCluster) -> None:
    cluster.rates.clear()
    cluster.lists.clear()


# Others clear either all of it, the rates alone, or the lists alone, as Kafka's tool and operators do.
CLEARINGS = (clear_all, lambda cluster: cluster.rates.clear(), lambda cluster: cluster.lists.clear())


@pytest.mark.parametrize("cleared", CLEARINGS)
def test_a_throttle_that_others_clear_is_set_again_while_partitions_move(
    cleared: Callable[[FakeReassignedCluster], None],
) -> None:
    stage = Stage(batches=[BATCHES[0]])
    stage.cluster.looks = 12
    clearing(stage, {2, 8}, cleared)
    in_force: list[bool] = []
    clear = stage.cluster.on_look

    def look(cluster: FakeReassignedCluster) -> None:
        clear(cluster)
        rates = {name for name in NEEDED if name in cluster.rates or name.role.value in cluster.defaults}
        in_force.append(rates == NEEDED and ThrottledList("a", FOLLOWER) in cluster.lists)

    stage.cluster.on_look = look
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused) == (None, {})
    # At its first look a broker may not have heard of the throttle yet: the second one sets it again.
    began = in_force.index(True)
    assert in_force[began : began + 10] == [True, False, False, True, True, True, True, False, False, True]
    assert [line for line in stage.lines if "cleared" in line and line.endswith("It was set again.")] == [
        line for line in stage.lines if "cleared" in line
    ]
    assert len([line for line in stage.lines if "cleared" in line]) == 2
    # Nothing of the run stays, and nothing that others cleared comes back.
    assert stage.left_behind() == []
    assert set(stage.cluster.rates) <= set(fresh().rates)
    assert set(stage.cluster.lists) <= set(fresh().lists)


def test_a_throttle_that_others_clear_ends_the_run_if_it_is_to() -> None:
    stage = Stage(policy=RunPolicy(RATE, pause_s=0, if_cleared=IfCleared.CANCEL))
    stage.cluster.looks = 12
    clearing(stage, {2}, clear_all)
    outcome = stage.run()
    assert outcome.stopped is not None
    assert "Batch 1 of 2: taken back, 3 partitions" in stage.lines
    assert outcome.stopped.startswith("batch 1 was taken back: others cleared the throttle: the rate of broker ")
    # Its third partition only gets another order of its replicas, and had ended.
    assert stage.replicas() == BEFORE | {("a", 2): AFTER["a", 2]}
    assert stage.left_behind() == []


def test_a_throttle_that_others_clear_stays_cleared_until_the_next_batch_if_it_may() -> None:
    stage = Stage(policy=RunPolicy(RATE, pause_s=0, if_cleared=IfCleared.LEAVE))
    stage.cluster.looks = 12
    clearing(stage, {2}, clear_all)
    throttled: list[bool] = []
    clear = stage.cluster.on_look

    def look(cluster: FakeReassignedCluster) -> None:
        clear(cluster)
        if cluster.left:
            throttled.append(bool(cluster.rates))

    stage.cluster.on_look = look
    assert stage.run().stopped is None
    assert throttled[:1] == [True]
    assert throttled[1:10] == [False] * 9
    assert throttled[-1:] == [True]
    assert len([line for line in stage.lines if "(--if-cleared leave)" in line]) == 1
    assert stage.left_behind() == []


def test_a_throttle_that_others_clear_just_before_the_end_is_named() -> None:
    stage = Stage(batches=[BATCHES[0]])
    clearing(stage, {2}, clear_all)
    stage.run()
    (line,) = [line for line in stage.lines if "taken back" in line]
    assert line.startswith("The rate of broker ")
    assert line.endswith(" was taken back before: the last copies may have had no throttle.")
    assert stage.left_behind() == []


@pytest.mark.parametrize("cleared", CLEARINGS)
def test_killed_at_any_step_of_setting_it_again_the_same_command_ends_the_run(
    cleared: Callable[[FakeReassignedCluster], None],
) -> None:
    def stage() -> Stage:
        made = Stage()
        made.cluster.looks = 6
        clearing(made, {2, 9}, cleared)
        return made

    for step in range(1, stage().steps() + 1):
        one = stage()
        with pytest.raises(Killed):
            one.run(step)
        one.go_on()
        assert one.replicas() == AFTER
        assert one.left_behind() == []
        assert set(one.cluster.rates) <= set(fresh().rates)
        assert set(one.cluster.lists) <= set(fresh().lists)


def test_one_look_that_is_older_than_the_throttle_changes_nothing() -> None:
    stage = Stage(batches=[BATCHES[0]])
    stage.cluster.looks = 12
    kept: list[tuple[dict[BrokerRate, int], dict[ThrottledList, str]]] = []
    looks: list[int] = []

    def look(cluster: FakeReassignedCluster) -> None:
        looks.extend([0] * bool(cluster.left))
        if len(looks) == 3:
            kept.append((dict(cluster.rates), dict(cluster.lists)))
            clear_all(cluster)
        elif kept:
            cluster.rates, cluster.lists = kept.pop()

    stage.cluster.on_look = look
    stage.run()
    assert len(looks) > 10
    assert not [line for line in stage.lines if "cleared" in line]
    assert stage.throttles() == (fresh().rates, fresh().lists)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_a_throttle_that_others_clear_while_the_run_is_dead_is_set_by_the_same_command(step: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    clear_all(stage.cluster)
    unlimited: list[BrokerRate] = []
    looks: list[int] = []

    def look(cluster: FakeReassignedCluster) -> None:
        looks.append(0)
        if cluster.left and len(looks) > 2:
            moving = [cluster.partitions[name] for name in cluster.left]
            copying = {BrokerRole(b, FOLLOWER) for p in moving for b in p.adding}
            copying |= {BrokerRole(b, LEADER) for p in moving if p.adding for b in p.before}
            unlimited.extend(name for name in copying if name not in cluster.rates and name.role is LEADER)

    stage.cluster.on_look = look
    stage.go_on()
    assert unlimited == []
    assert stage.replicas() == AFTER
    assert stage.left_behind() == []


@pytest.mark.parametrize("broker", [2, 4])
def test_no_batch_begins_while_a_broker_that_is_up_does_not_report_its_rates(broker: int) -> None:
    # Broker 4 is a destination. Broker 2 has a rate that is high enough, which nobody can know then.
    stage = Stage()
    stage.cluster.silent = {broker: 10**6}
    with pytest.raises(HeadroomError, match=f"the throttle rates of broker {broker}: were not reported"):
        stage.run()
    assert (stage.cluster.requests, stage.journal.kept) == ([], [])
    assert stage.time.now_s >= stage.policy.settle_s

    stage = Stage()
    stage.cluster.silent = {broker: 5}
    stage.run()
    assert_as_without_a_crash(stage)


def test_without_a_throttle_rates_that_are_not_reported_are_not_needed() -> None:
    stage = Stage(policy=RunPolicy(None, pause_s=0))
    stage.cluster.silent = {4: 10**6}
    assert stage.run().stopped is None


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_the_same_command_ends_as_if_it_had_not_been(step: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    stage.go_on()
    assert_as_without_a_crash(stage)


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(1, STEPS), min_size=2, max_size=6))
def test_killed_again_and_again_it_ends_the_same(steps: list[int]) -> None:
    stage = Stage()
    for step in steps:
        if any(record.state is RunState.DONE for record in stage.journal.records()):
            break
        try:
            stage.run(step)
        except Killed:
            continue
    if not any(record.state is RunState.DONE for record in stage.journal.records()):
        stage.run()
    assert_as_without_a_crash(stage)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_clean_removes_exactly_what_was_set(step: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    while (stage.journal.records() and stage.clean().moving) or stage.cluster.left:
        stage.cluster.advance()
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert stage.left_behind() == []
    assert not [record for record in stage.journal.records() if record.state is RunState.UNFINISHED]


@pytest.mark.parametrize("step", range(1, STEPS + 1, 3))
def test_a_clean_that_is_killed_is_finished_by_the_next_one(step: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    while stage.cluster.left:
        stage.cluster.advance()
    for crash_at in range(1, 40):
        if not stage.journal.records():
            return
        try:
            stage.clean(crash_at)
            break
        except Killed:
            continue
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert stage.left_behind() == []


@pytest.mark.parametrize("stale", [0, 2])
def test_nothing_moves_without_its_throttle(stale: int) -> None:
    """At every look and in every state of a crash, what moves is listed, and its brokers have the rate.

    Also if the metadata is older than the submission at first: a move that is not seen yet has not ended.
    """

    def check(cluster: FakeReassignedCluster) -> None:
        for name in cluster.left:
            partition = cluster.partitions[name]
            for broker in partition.adding:
                listed = cluster.lists.get(ThrottledList(name.topic, FOLLOWER), "")
                assert listed == "*" or f"{name.partition}:{broker}" in listed.split(",")
                assert cluster.rates[BrokerRole(broker, FOLLOWER)] == RATE
            if partition.adding:
                before = [broker for broker in partition.replicas if broker not in partition.adding]
                listed = cluster.lists[ThrottledList(name.topic, LEADER)]
                assert {f"{name.partition}:{broker}" for broker in before} <= set(listed.split(","))
                assert min(cluster.rates[BrokerRole(broker, LEADER)] for broker in before) >= RATE

    for step in range(1, STEPS + 1):
        stage = Stage()
        stage.cluster.stale, stage.cluster.looks = stale, 2 + stale
        stage.cluster.on_look = check
        with pytest.raises(Killed):
            stage.run(step)
        check(stage.cluster)
        if not stage.cluster.left:
            continue
        cleaned = stage.clean()
        check(stage.cluster)
        assert cleaned.moving or not stage.cluster.left


def test_a_finished_partition_leaves_the_lists_while_others_still_move() -> None:
    stage = Stage(batches=[plan(("a", 0), ("a", 1))])

    def slow(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 1) in cluster.left and TopicPartition("a", 0) in cluster.left:
            cluster.left[TopicPartition("a", 1)] = 8
        seen.append(cluster.lists.get(ThrottledList("a", FOLLOWER)))

    seen: list[str | None] = []
    stage.cluster.on_look = slow
    stage.run()
    assert "1:4" in seen
    assert stage.throttles() == (fresh().rates, fresh().lists)


def test_a_rate_that_others_have_changed_since_stays_and_is_named() -> None:
    stage = Stage(batches=[BATCHES[0]])

    def change(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.rates[BrokerRole(3, LEADER)] = 77 * MB

    stage.cluster.on_look = change
    outcome = stage.run()
    assert stage.cluster.rates == {**fresh().rates, BrokerRole(3, LEADER): 77 * MB}
    assert [line for line in stage.lines if "stays at 77.00 MB/s: it was changed since" in line] != []
    assert outcome.kept_rates == {BrokerRole(3, LEADER): 77 * MB}
    assert stage.left_behind() == []


def test_partitions_that_the_controller_refuses_are_named_and_the_others_go_on() -> None:
    stage = Stage()
    stage.cluster.refusing = {TopicPartition("a", 1)}
    outcome = stage.run()
    assert outcome.refused == {TopicPartition("a", 1): "InvalidReplicaAssignment"}
    assert stage.replicas() == {**AFTER, ("a", 1): BEFORE["a", 1]}
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert "refused by the controller: a-1 (InvalidReplicaAssignment)" in stage.lines[0]


def test_a_partition_that_does_not_exist_is_named_and_the_others_go_on() -> None:
    stage = Stage()
    del stage.cluster.partitions[TopicPartition("c", 0)]
    assert stage.run().refused == {TopicPartition("c", 0): "does not exist"}
    assert stage.left_behind() == []


def test_a_move_that_others_cancel_is_named_and_the_run_continues() -> None:
    stage = Stage()

    def cancel(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 0) in cluster.left:
            cluster._cancel(TopicPartition("a", 0))

    stage.cluster.on_look = cancel
    outcome = stage.run()
    assert outcome.refused == {TopicPartition("a", 0): "cancelled or changed by others, its replicas are [2,1]"}
    assert (outcome.stopped, stage.left_behind()) == (None, [])
    assert stage.throttles() == (fresh().rates, fresh().lists)


def test_a_stop_ends_the_run_after_the_current_batch_and_the_same_command_resumes_it() -> None:
    stage = Stage()

    def stop(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            stage.stop.set()

    stage.cluster.on_look = stop
    outcome = stage.run()
    assert outcome.stopped == "batch 2 did not begin: stopped by the operator"
    assert stage.replicas() == {**BEFORE, **{name: AFTER[name] for name in AFTER if name[0] == "a"}}
    assert stage.throttles() == (fresh().rates, fresh().lists)
    stage.stop.clear()
    stage.cluster.on_look = lambda cluster: None
    assert stage.run().stopped is None
    assert_as_without_a_crash(stage)


def take_back(stage: Stage, crash_at: int = 0) -> RunOutcome:
    def stop(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("b", 0) in cluster.left:
            stage.stop.set()

    stage.cluster.looks = 4
    stage.cluster.on_look = stop
    return stage.run(crash_at, RunPolicy(RATE, pause_s=0, cancel_on_stop=True))


def test_a_batch_is_taken_back_with_the_order_of_its_replicas() -> None:
    stage = Stage()
    outcome = take_back(stage)
    assert outcome.stopped == "batch 2 was taken back: stopped by the operator"
    # b-1 only lost a replica, and had ended already.
    done = {name: AFTER[name] for name in AFTER if name[0] == "a" or name == ("b", 1)}
    assert stage.replicas() == {**BEFORE, **done}
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert [record.state for record in stage.journal.records()] == [RunState.ENDED]


def test_a_batch_killed_while_it_is_cancelled_is_finished_by_clean_or_the_same_command() -> None:
    counted = Stage()
    take_back(counted)
    last = counted.cluster.crash.steps
    for step in range(1, last + 1):
        for then in ("clean", "run"):
            stage = Stage()
            with pytest.raises(Killed):
                take_back(stage, step)
            stage.stop.clear()
            stage.cluster.on_look = lambda cluster: None
            if then == "run":
                stage.run()
                assert_as_without_a_crash(stage)
                continue
            while stage.journal.records() and stage.clean().moving:
                stage.cluster.advance()
            assert stage.throttles() == (fresh().rates, fresh().lists)
            assert stage.left_behind() == []
            assert stage.replicas()["b", 0] in (BEFORE["b", 0], AFTER["b", 0])


def test_it_refuses_while_anothers_move_runs_unless_it_is_adopted() -> None:
    stage = Stage(batches=[BATCHES[0]])
    stage.cluster._start(TopicPartition("b", 0), (4, 2, 1))
    stage.cluster.left[TopicPartition("b", 0)] = 1000
    with pytest.raises(HeadroomError, match="b-0: is being reassigned, but not by this run"):
        stage.run()
    assert (stage.journal.kept, stage.throttles()) == ([], (fresh().rates, fresh().lists))
    assert stage.run(policy=RunPolicy(RATE, adopt=True)).stopped is None
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert TopicPartition("b", 0) in stage.cluster.left


def test_no_further_batch_begins_after_a_lost_replica_or_outside_the_window() -> None:
    lost, closed = Stage(), Stage()

    def lose(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.partitions[TopicPartition("c", 0)] = placement(("c", 0), (2,), isr=())

    lost.cluster.on_look = lose
    assert lost.run().stopped == "batch 2 did not begin: replicas of c-0 are no longer in sync"

    def blocked(snapshot: RunSnapshot) -> str | None:
        is_at_target = snapshot.partitions[TopicPartition("a", 0)].replicas == AFTER["a", 0]
        return "it is not 22:00-06:00 now" if is_at_target else None

    assert closed.run(policy=RunPolicy(RATE, blocked_reason=blocked, pause_s=0)).stopped == (
        "batch 2 did not begin: it is not 22:00-06:00 now"
    )
    for stage in (lost, closed):
        assert stage.throttles() == (fresh().rates, fresh().lists)
        assert stage.left_behind() == []


def test_a_batch_whose_room_is_gone_meanwhile_does_not_begin_and_nothing_of_it_moves() -> None:
    # Batch 2 puts b-0 on broker 4 and c-0 on broker 3, 1 MB each.
    stage = Stage()

    def fill(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.free_of = {3: 900_000}

    stage.cluster.on_look = fill
    outcome = stage.run()
    assert outcome.stopped == (
        "batch 2 did not begin: broker 3 has 900,000 bytes free in one log directory, and c-0 has 1,000,000"
    )
    assert stage.replicas() == {**BEFORE, **{name: AFTER[name] for name in AFTER if name[0] == "a"}}
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert stage.left_behind() == []
    # Longer than Kafka takes to delete what batch 1 has removed.
    assert stage.time.now_s >= 60
    stage.cluster.free_of, stage.cluster.on_look = {}, lambda cluster: None
    assert stage.run().stopped is None
    assert_as_without_a_crash(stage)


def test_a_batch_waits_until_replicas_that_an_earlier_one_removed_are_deleted() -> None:
    # Kafka deletes them 60 s after the end of their move.
    stage = Stage()

    def delete(cluster: FakeReassignedCluster) -> None:
        if cluster.left and cluster.partitions[TopicPartition("a", 0)].moving:
            cluster.free_of, ended_s[0] = {3: 0}, stage.time.now_s
        if stage.time.now_s - ended_s[0] >= 60:
            cluster.free_of = {}

    ended_s = [0.0]
    stage.cluster.on_look = delete
    assert stage.run().stopped is None
    assert_as_without_a_crash(stage)
    assert 60 <= stage.time.now_s < 100


def waiting_for_room(act: Callable[[FakeReassignedCluster], None]) -> Stage:
    """Return a stage whose batch 2 waits 60 s for room, 20 s after the beginning of which others act."""
    stage = Stage()
    began_s: list[float] = []

    def look(cluster: FakeReassignedCluster) -> None:
        if cluster.left and not began_s:
            cluster.free_of = {3: 0, 4: 0}
        elif cluster.free_of and not began_s:
            began_s.append(stage.time.now_s)
        elif len(began_s) == 1 and stage.time.now_s >= began_s[0] + 20:
            began_s.append(stage.time.now_s)
            act(cluster)
        if began_s and stage.time.now_s >= began_s[0] + 60:
            cluster.free_of = {}

    stage.cluster.on_look = look
    return stage


def test_a_broker_that_dies_while_a_batch_waits_for_room_ends_the_run() -> None:
    def die(cluster: FakeReassignedCluster) -> None:
        cluster.alive.discard(2)
        cluster.offline = {TopicPartition("b", 1)}

    stage = waiting_for_room(die)
    outcome = stage.run()
    assert outcome.stopped is not None
    assert outcome.stopped.startswith("batch 2 did not begin: replicas of b-1 are offline")
    assert {name: replicas for name, replicas in stage.replicas().items() if name[0] != "a"} == {
        name: replicas for name, replicas in BEFORE.items() if name[0] != "a"
    }


def test_a_move_of_others_that_begins_while_a_batch_waits_for_room_is_not_taken_over() -> None:
    # Without --adopt. c-0 is of batch 2, which moves it to brokers 2 and 3.
    name = TopicPartition("c", 0)

    def move(cluster: FakeReassignedCluster) -> None:
        cluster._start(name, (4,))
        cluster.left[name] = 1000

    stage = waiting_for_room(move)
    assert stage.run().stopped == "batch 2 did not begin: c-0 is being reassigned, but not by this run"
    assert stage.cluster.partitions[name].target == (4,)


def test_a_rate_that_others_set_while_a_batch_waits_for_room_is_there_in_the_end() -> None:
    rate = BrokerRole(4, FOLLOWER)

    def limit(cluster: FakeReassignedCluster) -> None:
        cluster.rates[rate] = 2 * MB

    # Only batch 2 copies to broker 4.
    stage = waiting_for_room(limit)
    stage.batches = [plan(("c", 0)), plan(("b", 0))]
    stage.run()
    assert stage.cluster.rates == {**fresh().rates, rate: 2 * MB}


def test_what_others_do_while_a_broker_does_not_report_its_rates_counts_for_the_batch() -> None:
    # The wait for the rates comes last.
    stage = Stage()
    stage.cluster.silent = {4: 15}

    def lose(cluster: FakeReassignedCluster) -> None:
        if cluster.silent.get(4, 0) == 5:
            cluster.partitions[TopicPartition("c", 0)] = placement(("c", 0), (2,), isr=())

    stage.cluster.on_look = lose
    assert stage.run().stopped == "batch 1 did not begin: replicas of c-0 are no longer in sync"
    assert stage.cluster.requests == []


def test_a_stop_ends_the_wait_for_room() -> None:
    stage = Stage()

    def fill(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.free_of = {3: 0}
        if stage.time.now_s > 20:
            stage.stop.set()

    stage.cluster.on_look = fill
    assert stage.run().stopped == "batch 2 did not begin: stopped by the operator"
    assert stage.time.now_s < 60


def test_without_room_for_the_first_batch_nothing_is_written_or_changed() -> None:
    stage = Stage()
    stage.cluster.free_of = {4: 0}
    outcome = stage.run()
    assert outcome.stopped is not None
    assert "batch 1 did not begin: broker 4 has 0 bytes free" in outcome.stopped
    assert (stage.journal.kept, stage.cluster.requests, stage.time.now_s < 10) == ([], [], True)


@pytest.mark.parametrize("step", range(1, STEPS + 1, 3))
def test_a_batch_that_resumes_after_a_crash_needs_no_room_again(step: int) -> None:
    # What its copies take is no longer free.
    stage = Stage()

    def use(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.free_of = dict.fromkeys((3, 4), 0)
        elif all(cluster.partitions[TopicPartition(*name)].replicas == AFTER[name] for name in AFTER if name[0] == "a"):
            cluster.free_of = {}

    stage.cluster.on_look = use
    with pytest.raises(Killed):
        stage.run(step)
    if [record.state for record in stage.journal.records()] != [RunState.DONE]:
        assert stage.run().stopped is None
    assert_as_without_a_crash(stage)


def test_brokers_that_do_not_report_their_directories_before_a_batch_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    stage = Stage()
    silent = LogDirsReading({}, {4: HeadroomError("broker 4", "did not report its log directories", "Look.")})
    monkeypatch.setattr(stage.cluster, "read_logs", lambda brokers, names: silent)
    assert stage.run().stopped is None
    assert "Batch 2: room is not checked on broker 4: no log directories were reported" in stage.lines


def test_metadata_that_is_older_than_the_end_of_a_batch_does_not_end_the_run() -> None:
    stage = Stage()
    stale: list[int] = []

    def answer_late(cluster: FakeReassignedCluster) -> None:
        # The controller lists the move no more, and a broker does not know yet that the new replica is in sync.
        name = TopicPartition("c", 0)
        if cluster.left:
            cluster.partitions[name] = placement(("c", 0), (2,), isr=())
        elif len(stale) < 6:
            stale.append(1)
        else:
            cluster.partitions[name] = placement(("c", 0), (2,))

    stage.cluster.on_look = answer_late
    assert stage.run().stopped is None
    assert len(stale) == 6


def test_outside_the_window_nothing_is_written_or_changed() -> None:
    stage = Stage()
    outcome = stage.run(policy=RunPolicy(RATE, blocked_reason=lambda snapshot: "not now"))
    assert (outcome.stopped, stage.journal.kept) == ("batch 1 did not begin: not now", [])
    assert stage.cluster.requests == []


def test_a_journal_that_cannot_be_written_is_refused_before_the_first_change() -> None:
    stage = Stage()
    stage.journal.failing = 10_000
    with pytest.raises(HeadroomError, match="cannot be written"):
        stage.run()
    assert stage.cluster.requests == []


def test_a_journal_that_fails_for_a_while_only_delays_the_run() -> None:
    stage = Stage()

    def fail(cluster: FakeReassignedCluster) -> None:
        if cluster.left and not failed:
            failed.append(1)
            stage.journal.failing = 3
            cluster.failing = 3

    failed: list[int] = []
    stage.cluster.on_look = fail
    stage.run()
    assert_as_without_a_crash(stage)


def test_a_broker_that_refuses_its_rate_ends_the_run_before_the_batch_moves() -> None:
    stage = Stage()
    stage.cluster.refusing_rates = {3}
    with pytest.raises(HeadroomError, match=r"were not set \(broker 3: refused\)"):
        stage.run()
    assert stage.replicas() == BEFORE
    assert stage.cluster.lists == fresh().lists
    assert stage.cluster.rates == fresh().rates
    assert [record.state for record in stage.journal.records()] == [RunState.ENDED]


def test_a_broker_that_dies_with_the_rate_keeps_it_until_clean() -> None:
    stage = Stage(batches=[BATCHES[0]])

    def die(cluster: FakeReassignedCluster) -> None:
        if cluster.left:
            cluster.alive.discard(1)

    stage.cluster.on_look = die
    stage.run()
    assert stage.cluster.rates[BrokerRole(1, LEADER)] == RATE
    assert [line for line in stage.lines if "headroom reassign clean --execute" in line] != []
    (left,) = stage.left_behind()
    assert (left.state, list(left.rates)) == (RunState.DONE, [BrokerRole(1, LEADER)])
    stage.cluster.on_look = lambda cluster: None
    stage.cluster.alive.add(1)
    stage.cluster.crash = stage.journal.crash = Crash()
    journal = RunJournal(stage.journal, left, "orders", "reassign clean", "anna@host", lambda: 1)
    clean_run(stage.cluster, journal, RunOutput(), 60, stage.time.clock, stage.time.sleep)
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert stage.left_behind() == []


def test_a_broker_that_comes_back_during_a_batch_gets_its_rate() -> None:
    stage = Stage(batches=[plan(("a", 0))])
    stage.cluster.alive.discard(4)
    seen: list[int | None] = []

    def come_back(cluster: FakeReassignedCluster) -> None:
        if cluster.left and stage.time.now_s > 20:
            cluster.alive.add(4)
            cluster.left[TopicPartition("a", 0)] += 1 if stage.time.now_s < 40 else 0
        seen.append(cluster.rates.get(BrokerRole(4, FOLLOWER)))

    stage.cluster.on_look = come_back
    stage.run()
    waiting = "batch 1 of 1: 1 partitions are moving, such as a-0; waiting for broker 4, down: the replica of a-0; "
    assert [note for note in stage.notes if note.startswith(waiting)] != []
    assert RATE in seen
    assert stage.throttles() == (fresh().rates, fresh().lists)


@pytest.mark.parametrize("silent", [1, 2, 6])
def test_a_broker_that_comes_back_without_reporting_its_rates_is_named_once_two_looks_agree(silent: int) -> None:
    stage = Stage(batches=[plan(("a", 0))])
    stage.cluster.looks = 12
    stage.cluster.alive.discard(4)
    came: list[int] = []

    def come_back(cluster: FakeReassignedCluster) -> None:
        if cluster.left and not came and stage.time.now_s > 10:
            came.append(1)
            cluster.alive.add(4)
            # The look that follows counts already.
            cluster.silent = {4: silent}

    stage.cluster.on_look = come_back
    stage.run()
    named = [line for line in stage.lines if line.startswith("The throttle rates of broker 4 were not reported")]
    assert len(named) == (silent > 1)
    # Its rate is set once it is known that none is in force.
    assert ("rate", (BrokerRole(4, FOLLOWER), RATE)) in stage.cluster.requests
    assert stage.throttles() == (fresh().rates, fresh().lists)


@pytest.mark.parametrize("waits", [True, False])
def test_a_run_names_the_kept_replica_on_a_dead_broker_that_its_end_waits_for(waits: bool) -> None:
    """b-0 moves from 3, 2, 1 to 4, 2, 1 while broker 1 is down: before Kafka 4.3 that waits for its return."""
    stage = Stage(batches=[plan(("b", 0))])
    stage.cluster.alive.discard(1)
    stage.cluster.waits_for_kept = waits

    def come_back(cluster: FakeReassignedCluster) -> None:
        if stage.time.now_s > 20:
            cluster.alive.add(1)

    stage.cluster.on_look = come_back
    stage.run()
    named = "batch 1 of 1: 1 partitions are moving, such as b-0; waiting for broker 1, down: the replica of b-0"
    assert any(note.startswith(named) for note in stage.notes) is waits
    assert not any("waiting for" in note for note in stage.notes if not waits)
    assert stage.replicas()["b", 0] == (4, 2, 1)


def test_a_run_that_drops_replicas_alone_names_the_dead_one_that_it_keeps() -> None:
    """b-1 moves from 1, 2 to 1 while broker 1 is down: no release ends that before its return."""
    stage = Stage(batches=[plan(("b", 1))])
    stage.cluster.alive.discard(1)

    def come_back(cluster: FakeReassignedCluster) -> None:
        if stage.time.now_s > 20:
            cluster.alive.add(1)

    stage.cluster.on_look = come_back
    stage.run()
    assert any(note.endswith("waiting for broker 1, down: the replica of b-1") for note in stage.notes)
    assert stage.replicas()["b", 1] == (1,)


def written(cluster: FakeReassignedCluster, name: tuple[str, int], rate: float) -> None:
    found = cluster.partitions[TopicPartition(*name)]
    cluster.partitions[TopicPartition(*name)] = replace(found, write_bytes_per_s=rate)


def test_a_throttle_below_need_is_refused_unless_it_is_forced_or_may_be_raised() -> None:
    # a-0 is written with 8 MB/s, so broker 1 must send 16 MB/s once broker 4 copies it too: more than 10.
    refused, forced, raised = Stage(batches=[plan(("a", 0))]), Stage(batches=[plan(("a", 0))]), Stage()
    for stage in (refused, forced, raised):
        for name in BEFORE:
            written(stage.cluster, name, 8.0 * MB if name == ("a", 0) else 0.0)
    with pytest.raises(HeadroomError, match=r"10\.00 MB/s is too low: broker 1 as leader must exceed 16\.00 MB/s"):
        refused.run()
    assert (refused.journal.kept, refused.cluster.requests) == ([], [])
    assert forced.run(policy=RunPolicy(RATE, force=True)).stopped is None
    raised.batches = [plan(("a", 0))]
    raised.run(policy=RunPolicy(RATE, auto_up_to_bytes_per_s=30 * MB))
    # 16 x 1.2.
    assert ("rate", (BrokerRole(1, LEADER), 19_200_000)) in raised.cluster.requests
    for stage in (refused, forced, raised):
        assert stage.throttles() == (fresh().rates, fresh().lists)


@pytest.mark.parametrize("up_to", [None, 30 * MB])
def test_a_throttle_that_becomes_short_is_reported_with_its_command_or_raised(up_to: int | None) -> None:
    stage = Stage(batches=[plan(("a", 0))])
    for name in BEFORE:
        written(stage.cluster, name, 0.0)

    def busier(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 0) in cluster.left:
            written(cluster, ("a", 0), 8.0 * MB)

    stage.cluster.looks = 4
    stage.cluster.on_look = busier
    stage.run(policy=RunPolicy(RATE, auto_up_to_bytes_per_s=up_to))
    if up_to is None:
        assert [line for line in stage.lines if line.endswith("must exceed 16.00 MB/s. raise 19200000 [1]")] != []
    else:
        assert "Raised the throttle of broker 1 as leader from 10.00 MB/s to 19.20 MB/s." in stage.lines
    assert stage.throttles() == (fresh().rates, fresh().lists)


def test_a_rate_that_was_raised_for_one_batch_is_not_that_of_the_next() -> None:
    # a-0 needs 16 MB/s, and so gets 19.2. c-0 needs nothing; others clear its throttle.
    stage = Stage(batches=[plan(("a", 0)), plan(("c", 0))])
    for name in BEFORE:
        written(stage.cluster, name, 8.0 * MB if name == ("a", 0) else 0.0)
    cleared: list[int] = []

    def clear(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("c", 0) in cluster.left and not cleared:
            clear_all(cluster)
            cleared.append(len(cluster.requests))

    stage.cluster.looks = 8
    stage.cluster.on_look = clear
    stage.run(policy=RunPolicy(RATE, pause_s=0, auto_up_to_bytes_per_s=30 * MB))
    assert ("rate", (BrokerRole(1, LEADER), 19_200_000)) in stage.cluster.requests[: cleared[0]]
    set_again = [what for kind, what in stage.cluster.requests[cleared[0] :] if kind == "rate"]
    assert set_again[0] == (BrokerRole(2, LEADER), RATE)


def test_a_rate_that_is_advised_or_set_is_enough_for_dead_brokers_that_come_back() -> None:
    # a-0 is written with 12 MB/s. Its leader, broker 1, sends it to one live broker now, and to one that is down.
    def busier(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 0) in cluster.left:
            written(cluster, ("a", 0), 12.0 * MB)
            cluster.alive.discard(2)

    reporting, raised = Stage(batches=[plan(("a", 0))]), Stage(batches=[plan(("a", 0))])
    for stage in (reporting, raised):
        for name in BEFORE:
            written(stage.cluster, name, 0.0)
        stage.cluster.looks = 4
        stage.cluster.on_look = busier
    reporting.run()
    line = "must exceed 12.00 MB/s, and 24.00 MB/s once dead brokers are back. raise 28800000 [1, 4]"
    assert [found for found in reporting.lines if found.endswith(line)] != []
    raised.run(policy=RunPolicy(RATE, auto_up_to_bytes_per_s=30 * MB))
    assert "Raised the throttle of broker 1 as leader from 10.00 MB/s to 28.80 MB/s." in raised.lines


def test_a_plan_that_is_in_place_writes_nothing() -> None:
    stage = Stage()
    stage.run()
    kept = len(stage.journal.kept)
    assert stage.run().stopped is None
    assert len(stage.journal.kept) == kept


def test_without_a_throttle_no_list_and_no_rate_is_touched() -> None:
    stage = Stage()
    stage.run(policy=RunPolicy(None, pause_s=0))
    assert {kind for kind, _ in stage.cluster.requests} == {"reassign"}
    assert stage.replicas() == AFTER


def test_a_broker_that_refuses_a_higher_rate_does_not_end_the_watch() -> None:
    stage = Stage(batches=[plan(("a", 0))])
    for name in BEFORE:
        written(stage.cluster, name, 0.0)

    def busier(cluster: FakeReassignedCluster) -> None:
        if TopicPartition("a", 0) in cluster.left:
            written(cluster, ("a", 0), 8.0 * MB)
            cluster.refusing_rates = {1} if stage.time.now_s < 100 else set()
            cluster.left[TopicPartition("a", 0)] = 2 if stage.time.now_s < 120 else 1

    stage.cluster.on_look = busier
    stage.run(policy=RunPolicy(RATE, auto_up_to_bytes_per_s=30 * MB))
    assert stage.throttles() == (fresh().rates, fresh().lists)
    assert "Raised the throttle of broker 1 as leader from 10.00 MB/s to 19.20 MB/s." in stage.lines
