"""What a batch changes, and what is taken back; the lists are those of Kafka's own tool for what gains a replica."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.log_dirs.broker_logs import BrokerLogs, ReplicaLog
from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.changes import (
    batch_changes,
    entries_of,
    entries_to_remove,
    rate_restoration,
)
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.record import OwnRate, RecordedRun, Submission
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot
from headroom.planning.reassignments.run.verification import AssignmentStatus, verify_plan
from headroom.planning.throttles.replica_lists import Move, format_replica_list, lists_of_plan
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

REPLICAS = st.lists(st.integers(1, 5), min_size=1, max_size=3, unique=True).map(tuple)
NAME = TopicPartition("t", 0)


def snapshot(partition: PartitionPlacement, **values: object) -> RunSnapshot:
    return RunSnapshot({partition.name: partition}, frozenset(range(1, 6)), topic_ids={"t": "id"}, **values)  # type: ignore[arg-type]


def placed(
    replicas: tuple[int, ...], adding: tuple[int, ...] = (), removing: tuple[int, ...] = ()
) -> PartitionPlacement:
    return PartitionPlacement("t", 0, replicas[0], replicas, replicas, adding, removing)


def plan(replicas: tuple[int, ...]) -> ReassignmentPlan:
    return ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), replicas),))


@given(st.lists(st.tuples(REPLICAS, REPLICAS), min_size=1, max_size=8))
def test_entries_are_those_of_kafkas_tool_for_partitions_that_gain_a_replica(
    moves: list[tuple[tuple[int, ...], tuple[int, ...]]],
) -> None:
    submitted = {TopicPartition("t", n): Submission(*move) for n, move in enumerate(moves)}
    gaining = [Move(TopicPartition("t", n), *move) for n, move in enumerate(moves) if set(move[1]) - set(move[0])]
    expected = lists_of_plan(gaining).get("t")
    found = {name.role: format_replica_list(entries) for name, entries in entries_of(submitted).items()}
    assert found.get(Role.LEADER) == (expected.leader if expected else None)
    assert found.get(Role.FOLLOWER) == (expected.follower if expected else None)


def test_after_a_crash_the_original_order_is_that_of_the_journal() -> None:
    # From [3,2,1] to [0,2,1], seen while it moves: Kafka lists the target first.
    moving = placed((0, 2, 1, 3), adding=(0,), removing=(3,))
    record = RecordedRun("run", submitted={NAME: Submission((3, 2, 1), (0, 2, 1))})
    changes = batch_changes(plan((0, 2, 1)), snapshot(moving), record, None)
    assert (changes.moves[NAME].before, changes.submit) == ((3, 2, 1), {})
    # Without a journal only the set is known; another assignment since counts as the original one.
    assert batch_changes(plan((0, 2, 1)), snapshot(moving), RecordedRun("run"), None).moves[NAME].before == (2, 1, 3)
    changed = batch_changes(plan((0, 2, 1)), snapshot(placed((4, 2, 1))), record, None)
    assert changed.submit[NAME].before == (4, 2, 1)


def test_entries_of_a_submitted_partition_stay_until_its_end_is_in_the_journal() -> None:
    listed = {ThrottledList("t", Role.LEADER): frozenset({(0, 1), (0, 2)})}
    still = snapshot(placed((1, 2)))
    record = RecordedRun("run", entries=listed, submitted={NAME: Submission((1, 2), (3, 2))})
    assert entries_to_remove(record, still) == {}
    ended = RecordedRun("run", entries=listed, submitted=record.submitted, finished=frozenset({NAME}))
    assert entries_to_remove(ended, still) == listed
    assert entries_to_remove(ended, snapshot(placed((3, 2, 1), (3,), (1,)))) == {}


def test_rates_go_back_unless_they_were_changed_since() -> None:
    role = BrokerRole(1, Role.LEADER)
    rates = {role: OwnRate(5, frozenset({10, 20}))}

    def restored(now: int | None) -> tuple[object, ...]:
        found = rate_restoration(rates, snapshot(placed((1,)), rates={role: RateInForce(now)}))
        return [r.after for r in found.restore.values()], found.ended, list(found.kept), found.unreachable

    assert restored(10) == restored(20) == ([5], (), [], ())
    assert restored(5) == ([], (role,), [], ())
    assert restored(7) == restored(None) == ([], (), [role], ())
    assert rate_restoration(rates, snapshot(placed((1,)))).unreachable == (role,)


def test_every_status_of_a_partition() -> None:
    def status(partition: PartitionPlacement) -> AssignmentStatus:
        return verify_plan(plan((3, 2)), snapshot(partition))[0].status

    assert status(placed((3, 2))) is AssignmentStatus.DONE
    assert status(placed((2, 3))) is AssignmentStatus.NOT_STARTED
    assert status(placed((3, 2, 1), (3,), (1,))) is AssignmentStatus.MOVING
    assert status(placed((4, 2, 1), (4,), (1,))) is AssignmentStatus.MOVING_ELSEWHERE
    # A run copies between directories before it asks for other replicas.
    copied = BrokerLogs(3, (), {NAME: ReplicaLog("/a", 9, 0)}, {NAME: ReplicaLog("/b", 4, 5)})
    named = ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), (3, 2), ("/b", "any")),))
    for replicas in ((3, 2), (3, 2, 1)):
        (verified,) = verify_plan(named, snapshot(placed(replicas), logs={3: copied}))
        assert verified.status is AssignmentStatus.MOVING
    gone = verify_plan([TargetAssignment(TopicPartition("gone", 0), (1,))], snapshot(placed((1,))))[0]
    assert (gone.status, gone.missing) == (AssignmentStatus.MISSING, (1,))
