"""Log directories of a run on a cluster in memory: followed through a crash at every step, cancelled, restored."""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import pytest

from headroom.cluster.reassignment.execution.control import RunPolicy
from headroom.cluster.reassignment.execution.placement import RunPlacement
from headroom.operations.reassignments.plan_back import plan_back
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.journal import StepKind
from headroom.planning.reassignments.run.record import DirectoryPlacement, RunState
from headroom.schemas.keys import BrokerRate, BrokerRole, LogDirsRate, ReplicaKey, Role, TopicPartition
from tests.unit.builders.run_stage import RunStage
from tests.unit.fakes.reassigned_cluster import Answer, Disturbance, FakeReassignedCluster, Killed


def name(number: int) -> TopicPartition:
    return TopicPartition("t", number)


MB = 1_000_000
RATE, LOG_DIRS_RATE = 10 * MB, 2 * MB
BEFORE = {0: (1, 2), 1: (2, 3), 2: (3, 1)}
# Only its directory changes; a new replica in a named directory, and one that leaves another; both, in another order.
TARGETS = {0: ((1, 2), ("/b", "any")), 1: ((2, 4), ("/a", "/b")), 2: ((1, 3), ("/b", "/a"))}
AFTER = {number: replicas for number, (replicas, _) in TARGETS.items()}
# Replicas that are not in /a.
PATHS_BEFORE = {ReplicaKey(name(1), 3): "/b"}
PATHS_AFTER = {ReplicaKey(name(0), 1): "/b", ReplicaKey(name(1), 4): "/b", ReplicaKey(name(2), 1): "/b"}
# Of others: lower than the rate of the run, and higher.
OTHERS: dict[BrokerRate, int] = {LogDirsRate(1): 1 * MB, LogDirsRate(3): 50 * MB, BrokerRole(2, Role.LEADER): 90 * MB}


def fresh() -> FakeReassignedCluster:
    placed = {name(n): PartitionPlacement("t", n, r[0], r, r) for n, r in BEFORE.items()}
    return FakeReassignedCluster(placed, {1, 2, 3, 4}, rates=dict(OTHERS), paths=dict(PATHS_BEFORE))


def plan(*numbers: int) -> ReassignmentPlan:
    return ReassignmentPlan(tuple(TargetAssignment(name(n), *TARGETS[n]) for n in numbers))


@dataclass
class Stage(RunStage):
    """The cluster of this file; the first batch changes a directory only."""

    cluster: FakeReassignedCluster = field(default_factory=fresh)
    batches: list[ReassignmentPlan] = field(default_factory=lambda: [plan(0), plan(1, 2)])
    policy: RunPolicy = field(default_factory=lambda: RunPolicy(RATE, pause_s=0, log_dirs_bytes_per_s=LOG_DIRS_RATE))

    def paths(self) -> dict[ReplicaKey, str]:
        """Return the directories that are not /a."""
        return {replica: path for replica, path in self.cluster.paths.items() if path != "/a"}

    def numbers(self) -> dict[int, tuple[int, ...]]:
        return {partition.partition: partition.replicas for partition in self.cluster.partitions.values()}


STEPS = Stage().steps()


def assert_as_planned(stage: Stage) -> None:
    assert (stage.numbers(), stage.paths(), stage.cluster.futures) == (AFTER, PATHS_AFTER, {})
    assert stage.throttles() == (OTHERS, {})
    (record,) = stage.journal.records()
    assert (record.state, record.leaves_behind, record.placing) == (RunState.DONE, False, frozenset())
    # What a rollback restores: the replica that the plan removed returns to its directory.
    assert {a.name.partition: (a.replicas, a.log_dirs) for a in plan_back(record)} == {
        0: ((1, 2), ("/a", "any")),
        1: ((2, 3), ("any", "/b")),
        2: ((3, 1), ("any", "/a")),
    }


def test_replicas_get_the_directories_of_the_plan_and_the_rates_are_as_before() -> None:
    stage = Stage()
    outcome = stage.run()
    assert (outcome.stopped, outcome.refused, outcome.batches) == (None, {}, 2)
    assert_as_planned(stage)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_the_same_command_ends_as_if_it_had_not_been(step: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    stage.go_on()
    assert_as_planned(stage)


@pytest.mark.parametrize("step", range(1, STEPS + 1))
def test_killed_at_any_step_clean_removes_the_rate_too(step: int) -> None:
    stage = Stage()
    with pytest.raises(Killed):
        stage.run(step)
    while stage.journal.records() and stage.clean().moving:
        assert stage.cluster.left or stage.cluster.futures
    assert (stage.throttles(), stage.left_behind()) == ((OTHERS, {}), [])
    assert RunState.UNFINISHED not in [record.state for record in stage.journal.records()]


def test_nothing_is_copied_between_directories_without_the_rate() -> None:
    def check(cluster: FakeReassignedCluster) -> None:
        assert all(cluster.rates.get(LogDirsRate(r.broker), 0) >= LOG_DIRS_RATE for r in cluster.futures)

    for step in range(1, STEPS + 1):
        stage = Stage()
        stage.cluster.on_look = check
        with pytest.raises(Killed):
            stage.run(step)
        check(stage.cluster)
        if stage.journal.records():
            moving = stage.clean().moving
            check(stage.cluster)
            assert {replica.name for replica in stage.cluster.futures} <= set(moving)


def test_a_new_replica_has_its_directory_before_it_exists_and_needs_no_rate_for_it() -> None:
    stage = Stage(batches=[plan(1)])
    stage.run()
    asked = [request for request in stage.cluster.requests if request[0] in ("place", "reassign")]
    assert asked[0] == ("place", (ReplicaKey(name(1), 4), "/b"))
    assert stage.paths() == {ReplicaKey(name(1), 4): "/b"}
    assert not [r for kind, r in stage.cluster.requests if kind == "rate" and isinstance(r[0], LogDirsRate)]  # type: ignore[index]


def test_a_plan_that_changes_directories_only_touches_no_list_and_no_leader() -> None:
    stage = Stage(batches=[plan(0)])
    assert stage.run().refused == {}
    assert stage.paths()[ReplicaKey(name(0), 1)] == "/b"
    rates = [request for kind, request in stage.cluster.requests if kind == "rate"]
    assert rates == [(LogDirsRate(1), LOG_DIRS_RATE), (LogDirsRate(1), 1 * MB)]
    assert not [request for request in stage.cluster.requests if request[0] == "append"]


def test_without_a_rate_for_directories_none_is_set() -> None:
    stage = Stage(policy=RunPolicy(RATE, pause_s=0))
    stage.run()
    assert_as_planned(stage)
    assert not [r for kind, r in stage.cluster.requests if kind == "rate" and isinstance(r[0], LogDirsRate)]  # type: ignore[index]


def test_a_rollback_restores_replicas_and_directories() -> None:
    stage = Stage()
    stage.run()
    back = [plan_back(record) for record in stage.journal.records()]
    again = Stage(cluster=stage.cluster, batches=back)
    again.run()
    assert (again.numbers(), again.paths()) == (BEFORE, PATHS_BEFORE)
    assert again.throttles() == (OTHERS, {})


def test_a_partition_whose_directory_is_refused_is_not_submitted_and_the_others_go_on() -> None:
    stage = Stage(batches=[plan(1, 2)])
    stage.batches.append(ReassignmentPlan((TargetAssignment(name(0), (4, 2), ("/c", "any")),)))
    stage.cluster.refusing_paths = {"/c"}
    outcome = stage.run()
    assert outcome.refused == {name(0): "broker 4: cannot be in /c"}
    assert stage.numbers() == {**AFTER, 0: BEFORE[0]}
    assert "Batch 2: refused by a broker: t-0 (broker 4: cannot be in /c)" in stage.lines
    assert (stage.throttles(), stage.left_behind()) == ((OTHERS, {}), [])


def stop_while_copying(stage: Stage) -> None:
    def stop(cluster: FakeReassignedCluster) -> None:
        if ReplicaKey(name(2), 1) in cluster.futures:
            stage.stop.set()

    stage.cluster.looks = 4
    stage.cluster.on_look = stop


def test_ctrl_c_ends_copies_between_directories_and_the_same_command_resumes_them() -> None:
    stage = Stage()
    stop_while_copying(stage)
    cancelling = RunPolicy(RATE, pause_s=0, cancel_on_stop=True, log_dirs_bytes_per_s=LOG_DIRS_RATE)
    assert stage.run(policy=cancelling).stopped == "batch 2 was taken back: stopped by the operator"
    assert (stage.cluster.futures, stage.throttles()) == ({}, (OTHERS, {}))
    assert ReplicaKey(name(2), 1) not in stage.paths()
    assert stage.numbers()[1] == BEFORE[1]
    stage.stop.clear()
    stage.cluster.on_look = lambda cluster: None
    stage.run()
    assert_as_planned(stage)


def test_a_new_replica_whose_broker_forgot_the_directory_is_moved_there_at_the_rate() -> None:
    stage = Stage(batches=[plan(1)])
    rates: list[int | None] = []

    def restart(cluster: FakeReassignedCluster) -> None:
        replica = ReplicaKey(name(1), 4)
        if name(1) in cluster.left and not forgotten:
            forgotten.append(replica)
            cluster.paths[replica] = "/a"
        if replica in cluster.futures:
            rates.append(cluster.rates.get(LogDirsRate(4)))

    forgotten: list[ReplicaKey] = []
    stage.cluster.on_look = restart
    assert stage.run().refused == {}
    assert stage.paths() == {ReplicaKey(name(1), 4): "/b"}
    assert set(rates) == {LOG_DIRS_RATE}
    assert stage.throttles() == (OTHERS, {})


def test_a_copy_that_others_end_is_named_and_not_begun_again() -> None:
    stage = Stage(batches=[plan(0)])

    def end(cluster: FakeReassignedCluster) -> None:
        cluster.futures.clear()

    stage.cluster.on_look = end
    reason = "its log directory is /a"
    assert stage.run().refused == {name(0): f"broker 1: {reason}, and not that of the plan"}
    assert f"t-0 on broker 1 did not get its log directory: {reason}" in stage.lines
    assert [kind for kind, _ in stage.cluster.requests].count("place") == 1
    assert (stage.throttles(), stage.left_behind()) == ((OTHERS, {}), [])


def test_a_copy_whose_broker_did_not_answer_is_followed_to_its_end_at_the_rate() -> None:
    # Requests of the batch: its rate, and then the directory.
    stage = Stage(batches=[plan(0)])
    stage.cluster.disturbance = Disturbance(Answer.LOST, at=2)
    rates: list[int | None] = []

    def look(cluster: FakeReassignedCluster) -> None:
        if cluster.futures:
            rates.append(cluster.rates.get(LogDirsRate(1)))

    stage.cluster.on_look = look
    outcome = stage.run()
    assert outcome.refused == {name(0): "broker 1: no answer (KafkaTimeoutError)"}
    assert (stage.cluster.futures, stage.paths()) == ({}, {ReplicaKey(name(0), 1): "/b", **PATHS_BEFORE})
    assert (set(rates), stage.throttles()) == ({LOG_DIRS_RATE}, (OTHERS, {}))
    (record,) = stage.journal.records()
    assert (set(record.placed), record.placing) == ({ReplicaKey(name(0), 1)}, frozenset())


def test_a_directory_whose_broker_did_not_answer_and_did_nothing_is_given_up() -> None:
    stage = Stage(batches=[plan(0)])
    stage.cluster.disturbance = Disturbance(Answer.LOST, at=2)
    stage.cluster.on_look = lambda cluster: cluster.futures.clear()
    assert list(stage.run().refused) == [name(0)]
    assert "t-0 on broker 1 did not get its log directory: its log directory is /a" in stage.lines
    assert (stage.paths(), stage.throttles(), stage.left_behind()) == (PATHS_BEFORE, (OTHERS, {}), [])


def died_before_it_answered() -> Stage:
    """A stage whose run has ended, and whose broker took its request before it died."""
    stage = Stage(batches=[plan(0)])
    stage.cluster.disturbance = Disturbance(Answer.LOST, at=2)

    def look(cluster: FakeReassignedCluster) -> None:
        if cluster.futures:
            cluster.alive.discard(1)

    stage.cluster.on_look = look
    assert list(stage.run().refused) == [name(0)]
    assert stage.lines.count("t-0 on broker 1 did not get its log directory: its broker is down") == 1
    (record,) = stage.journal.records()
    assert (record.state, record.placing) == (RunState.ENDED, frozenset({ReplicaKey(name(0), 1)}))
    stage.cluster.on_look = lambda cluster: None
    stage.cluster.futures = {replica: (path, 10) for replica, (path, _) in stage.cluster.futures.items()}
    assert stage.clean().moving == ()
    assert stage.cluster.rates[LogDirsRate(1)] == LOG_DIRS_RATE
    stage.cluster.alive.add(1)
    return stage


def test_a_run_does_not_wait_for_a_broker_that_died_unanswered_and_clean_keeps_its_rate_while_it_copies() -> None:
    stage = died_before_it_answered()
    assert stage.clean().moving == (name(0),)
    assert stage.cluster.rates[LogDirsRate(1)] == LOG_DIRS_RATE
    for _ in range(10):
        stage.cluster.advance()
    assert stage.clean().moving == ()
    assert (stage.throttles(), stage.left_behind()) == ((OTHERS, {}), [])


def test_the_same_command_follows_a_copy_of_a_broker_that_is_back() -> None:
    stage = died_before_it_answered()
    assert stage.run().refused == {}
    assert (stage.cluster.futures, stage.throttles(), stage.left_behind()) == ({}, (OTHERS, {}), [])
    (record,) = stage.journal.records()
    assert (record.state, record.placing) == (RunState.DONE, frozenset())


def test_a_broker_that_answers_a_later_request_is_waited_for_when_it_is_down() -> None:
    stage = Stage(batches=[plan(0)])
    placement = RunPlacement(stage.cluster, stage.run_journal(), patience_s=0.0)
    places = {ReplicaKey(name(0), 1): DirectoryPlacement("/a", "/b")}
    stage.journal.is_strict = False
    stage.cluster.disturbance = Disturbance(Answer.LOST)
    assert placement.request(places)
    assert placement.request(places) == {}
    stage.cluster.alive.discard(1)
    assert placement.note_ended(stage.cluster.read()) == {}


def test_a_broker_that_is_back_and_has_not_reported_its_logs_is_waited_for() -> None:
    stage = Stage(batches=[plan(0)])
    placement = RunPlacement(stage.cluster, stage.run_journal(), patience_s=0.0)
    replica = ReplicaKey(name(0), 1)
    stage.journal.is_strict = False
    stage.cluster.disturbance = Disturbance(Answer.LOST)
    placement.request({replica: DirectoryPlacement("/a", "/b")})
    stage.cluster.alive.discard(1)
    assert placement.note_ended(stage.cluster.read()) == {replica: "its broker is down"}
    assert placement.awaited() == []
    stage.cluster.alive.add(1)
    assert placement.note_ended(replace(stage.cluster.read(), logs={})) == {}
    assert placement.awaited() == [replica]


def test_a_run_names_the_dead_broker_whose_copy_it_waits_for() -> None:
    stage = Stage(batches=[plan(0)])

    def look(cluster: FakeReassignedCluster) -> None:
        if stage.time.now_s > 20:
            cluster.alive.add(1)
        elif cluster.futures:
            cluster.alive.discard(1)

    stage.cluster.on_look = look
    assert stage.run().refused == {}
    text = "1 replicas are on their way to a log directory, such as t-0 on broker 1; waiting for broker 1, down"
    assert f"batch 1 of 1: {text}" in stage.notes


def test_clean_waits_for_a_copy_and_names_its_partition() -> None:
    stage = next(killed for step in range(1, STEPS) if (killed := killed_at(step)).cluster.futures)
    stage.cluster.futures = {replica: (path, 10) for replica, (path, _) in stage.cluster.futures.items()}
    assert stage.clean().moving == (name(0),)
    assert stage.cluster.rates[LogDirsRate(1)] == LOG_DIRS_RATE
    for _ in range(10):
        stage.cluster.advance()
    assert stage.clean().moving == ()
    assert stage.throttles() == (OTHERS, {})


def killed_at(step: int) -> Stage:
    stage = Stage(batches=[plan(0)])
    with pytest.raises(Killed):
        stage.run(step)
    return stage


def test_every_placement_is_in_the_journal_before_it_is_requested() -> None:
    stage = Stage()
    seen: set[str] = set()

    def check(cluster: FakeReassignedCluster) -> None:
        rows = {row.subject for row in stage.journal.kept if row.step == StepKind.PLACE.value}
        for kind, request in cluster.requests:
            if kind == "place":
                assert str(request[0]) in rows  # type: ignore[index]
                seen.add(str(request[0]))  # type: ignore[index]

    stage.cluster.on_look = check
    stage.run()
    assert seen == {"t-0 on broker 1", "t-1 on broker 4", "t-2 on broker 1"}
