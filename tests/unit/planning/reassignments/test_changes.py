from __future__ import annotations

from hypothesis import given

from headroom.planning.reassignments.changes import Exemption, plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.replica_lists import Move, TopicLists, lists_of_plan
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.cluster_states import placed, plan_of, state_of, states_and_plans


def test_only_partitions_that_gain_a_replica_are_listed() -> None:
    state = state_of([placed(0, (1, 2)), placed(1, (1, 2)), placed(2, (1, 2)), placed(3, (1, 2))])
    changes = plan_changes(plan_of({0: (3, 2), 1: (2, 1), 2: (1,), 3: (1, 2)}), state)
    assert changes.lists == {"t": TopicLists("0:1,0:2", "0:3")}
    assert [target.name.partition for target in changes.gaining] == [0]
    assert {reason: [n.partition for n in names] for reason, names in changes.exempt.items()} == {
        Exemption.UNCHANGED: [3],
        Exemption.REORDERED: [1],
        Exemption.REDUCED: [2],
    }
    assert (changes.added, changes.removed, changes.factor_changes) == ({3: 1}, {1: 1, 2: 1}, 1)


def test_another_directory_on_the_same_broker_copies_nothing_between_brokers() -> None:
    state = state_of([placed(0, (1,), log_dirs={1: "/a"})])
    plan = ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), (1,), ("/b",)),))
    assert set(plan_changes(plan, state).exempt) == {Exemption.OTHER_DIRECTORY}
    same = ReassignmentPlan((TargetAssignment(TopicPartition("t", 0), (1,), ("any",)),))
    assert set(plan_changes(same, state).exempt) == {Exemption.UNCHANGED}


@given(states_and_plans())
def test_lists_are_those_of_kafkas_tool_for_partitions_that_gain_a_replica(
    drawn: tuple[ClusterState, ReassignmentPlan],
) -> None:
    state, plan = drawn
    changes = plan_changes(plan, state)
    moves = [Move(t.name, state.partitions[t.name].replicas, t.replicas) for t in plan]
    gaining = [move for move in moves if set(move.after) - set(move.before)]
    assert changes.lists == lists_of_plan(gaining)
    assert len(gaining) + sum(map(len, changes.exempt.values())) == len(plan)


@given(states_and_plans())
def test_the_rollback_is_the_present_assignment(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    rollback = plan_changes(plan, state).rollback
    assert {t.name: t.replicas for t in rollback} == {t.name: state.partitions[t.name].replicas for t in plan}


def test_the_rollback_of_a_partition_with_named_directories_names_the_present_ones() -> None:
    state = state_of([placed(0, (1, 2), log_dirs={1: "/a", 2: "/b"}), placed(1, (1, 2), log_dirs={1: "/a", 2: "/b"})])
    # The directory on broker 2 is lost with its replica, unless the rollback names it.
    named = TargetAssignment(TopicPartition("t", 0), (1, 3), ("/b", "any"))
    rollback = plan_changes(
        ReassignmentPlan((named, TargetAssignment(TopicPartition("t", 1), (1, 3), ("any", "any")))), state
    ).rollback
    assert [(a.replicas, a.log_dirs) for a in rollback] == [((1, 2), ("/a", "/b")), ((1, 2), None)]
    unread = plan_changes(ReassignmentPlan((named,)), state_of([placed(0, (1, 2), log_dirs={1: "/a"})])).rollback
    assert unread.assignments[0].log_dirs == ("/a", "any")
