"""What a run asks of a throttle before a batch is what the plan of the batch says."""

from __future__ import annotations

from hypothesis import given

from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.estimate import estimate
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.run.changes import batch_changes
from headroom.planning.reassignments.run.journal import ThrottledList
from headroom.planning.reassignments.run.loads import loads_of_batch
from headroom.planning.reassignments.run.record import RecordedRun
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.keys import BrokerRole, Role
from tests.unit.builders.cluster_states import MB, placed, plan_of, state_of, states_and_plans

Required = dict[BrokerRole, tuple[float | None, float]]


def of_plan(state: ClusterState, plan: ReassignmentPlan) -> Required:
    needs = estimate(plan_changes(plan, state), state, ThrottlePolicy()).needs
    return {n.broker_role: (n.required_bytes_per_s, n.known_required_bytes_per_s) for n in needs}


def of_run(state: ClusterState, plan: ReassignmentPlan) -> Required:
    lists = {
        ThrottledList(topic, role): text
        for topic, of_topic in state.lists.items()
        for role, text in ((Role.LEADER, of_topic.leader), (Role.FOLLOWER, of_topic.follower))
        if text is not None
    }
    snapshot = RunSnapshot(
        state.partitions,
        state.alive,
        {BrokerRole(broker, role): RateInForce() for broker in state.alive for role in Role},
        lists,
        auto_leader_rebalance=state.auto_leader_rebalance,
    )
    changes = batch_changes(plan, snapshot, RecordedRun("run"), 10 * MB)
    loads = loads_of_batch(snapshot, changes.moves, changes.rates)
    return {
        load.broker_role: (load.required_bytes_per_s, load.least_required_bytes_per_s)
        for load in loads
        if load.limited_replicas
    }


@given(states_and_plans())
def test_a_run_needs_what_its_plan_says(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    by_plan, by_run = of_plan(state, plan), of_run(state, plan)
    # Without traffic there is nothing to exceed.
    assert {k: v for k, v in by_run.items() if v != (0.0, 0.0)} == {k: v for k, v in by_plan.items() if v != (0.0, 0.0)}


def test_leads_that_kafka_gives_to_preferred_leaders_during_the_move_count() -> None:
    """Both partitions get broker 2 as their preferred leader, which then sends 2 MB/s to each of two followers."""
    placements = [placed(n, (n, 2), write_bytes_per_s=2.0 * MB) for n in (1, 3)]
    plan = plan_of({1: (2, 4), 3: (2, 4)})
    needs = {
        balances: of_run(state_of(placements, auto_leader_rebalance=balances), plan) for balances in (True, None, False)
    }
    assert max(known for _, known in needs[False].values()) == 4 * MB
    assert max(known for _, known in needs[True].values()) == 8 * MB
    assert needs[None] == needs[True]
