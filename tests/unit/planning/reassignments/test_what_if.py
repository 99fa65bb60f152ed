"""What-ifs by small changes of sums equal new sums of the cluster after the event, by the scalar rule."""

from __future__ import annotations

from dataclasses import replace

from hypothesis import given

from headroom.planning.quotas.load import ThrottleLoads
from headroom.planning.reassignments.changes import PlanChanges, plan_changes
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState
from headroom.planning.reassignments.estimate import estimate
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.what_if import what_if
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.keys import BrokerRole, Role
from tests.unit.builders.cluster_states import (
    MB,
    placed,
    plan_of,
    reference_traffic,
    state_of,
    states_and_plans,
    traffic_of,
)


def required(state: ClusterState, changes: PlanChanges, leaders: dict[int, int]) -> dict[BrokerRole, float]:
    """Known required traffic of the brokers and roles that limit a copy."""
    loads = ThrottleLoads(reference_traffic(state, changes, leaders), {})
    found = {role: loads.load_of(role) for role in loads}
    return {role: load.known_required_bytes_per_s or 0.0 for role, load in found.items() if load.limited_replicas}


def leaders_of(state: ClusterState, changes: PlanChanges) -> list[dict[int, int]]:
    """Leaders before and after the switches that Kafka makes by itself."""
    before = {p.partition: p.leader for p in state.partitions.values() if p.leader is not None}
    after = dict(before)
    if state.auto_leader_rebalance is not False:
        for target in changes.gaining:
            first = target.replicas[0]
            if target.name.partition in before and first in state.partitions[target.name].isr and first in state.alive:
                after[target.name.partition] = first
    return [before] if before == after else [before, after]


@given(states_and_plans())
def test_returns_equal_recomputation(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    changes = plan_changes(plan, state)
    back = replace(state, brokers={b: BrokerState(b) for b in state.brokers})
    found = what_if(traffic_of(state, plan), 0)
    worst: dict[int, float] = {}
    for leaders in leaders_of(state, changes):
        after = required(back, changes, leaders)
        for p in reference_traffic(state, changes, leaders):
            replicas = {*state.partitions[p.name].replicas, *p.adding}
            for broker in replicas - state.alive - {p.leader}:
                if p.leader is not None and p.leader in (p.leader_listed or ()):
                    worst[broker] = max(worst.get(broker, 0.0), after[BrokerRole(p.leader, Role.LEADER)])
    assert {case.broker: case.required_bytes_per_s for case in found.returns} == worst
    assert found.required_bytes_per_s >= max(worst.values(), default=0.0)


def test_the_return_of_a_dead_broker_is_survived() -> None:
    """4 MB/s to broker 4, which copies; 4 MB/s to 2, in sync; 2 MB/s more to 3, once it is back: 8, then 10 MB/s."""
    down = {3: BrokerState(3, alive=False)}
    placements = [
        placed(0, (1, 2), write_bytes_per_s=2.0 * MB),
        placed(1, (1, 2, 3), isr=(1, 2), write_bytes_per_s=2.0 * MB),
    ]
    state, plan = state_of(placements, down), plan_of({0: (1, 4), 1: (1, 4)})
    found = estimate(plan_changes(plan, state), state, ThrottlePolicy(), None)
    (case,) = found.what_if.returns
    assert (case.broker, case.broker_role, case.required_bytes_per_s) == (3, BrokerRole(1, Role.LEADER), 10e6)
    assert found.throttle_bytes_per_s == 9_600_000
    assert found.survives_bytes_per_s == 12_000_000


@given(states_and_plans())
def test_switches_equal_recomputation(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    changes = plan_changes(plan, state)
    found = what_if(traffic_of(state, plan), 0)
    # Brokers and roles that gain traffic by a switch: the new leader as leader, the old one as destination.
    highest = 0.0
    for leaders in leaders_of(state, changes):
        for p in reference_traffic(state, changes, leaders):
            if p.name.partition not in leaders:
                continue
            old = leaders[p.name.partition]
            for new in p.in_sync - {old}:
                if new not in p.followers:
                    continue
                then = required(state, changes, {**leaders, p.name.partition: new})
                gaining = [BrokerRole(new, Role.LEADER)] if new in (p.leader_listed or ()) else []
                gaining += [BrokerRole(old, Role.FOLLOWER)] if old in (p.follower_listed or ()) else []
                highest = max([highest, *(then.get(role, 0.0) for role in gaining)])
    assert max((case.required_bytes_per_s for case in found.worst_switches), default=0.0) == highest


@given(states_and_plans())
def test_losses_equal_recomputation(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    changes = plan_changes(plan, state)
    targets = {target.name.partition: target.replicas for target in changes.gaining}
    found = {case.broker: case for case in what_if(traffic_of(state, plan), None).losses}
    for lost, case in found.items():
        highest, leaderless = 0.0, 0
        for leaders in leaders_of(state, changes):
            base = ThrottleLoads(reference_traffic(state, changes, leaders), {})
            brokers = {**state.brokers, lost: replace(state.brokers[lost], alive=False)}
            then, gone = dict(leaders), {}
            for p in reference_traffic(state, changes, leaders):
                if leaders.get(p.name.partition) != lost:
                    continue
                order = [*targets.get(p.name.partition, ()), *state.partitions[p.name].replicas]
                next_leader = next((b for b in order if b in p.in_sync and b != lost and b in state.alive), None)
                gone[p.name] = next_leader
                if next_leader is not None:
                    then[p.name.partition] = next_leader
            down = {name: replace(state.partitions[name], leader=None) for name, to in gone.items() if to is None}
            for name in down:
                del then[name.partition]
            after = replace(state, brokers=brokers, partitions={**state.partitions, **down})
            leaderless = max(leaderless, len(down))
            for role, bytes_per_s in required(after, changes, then).items():
                rises = bytes_per_s > (base.load_of(role).known_required_bytes_per_s or 0.0)
                if role.role is Role.LEADER and role.broker != lost and rises:
                    highest = max(highest, bytes_per_s)
        assert case.required_bytes_per_s == highest
        assert case.leaderless == leaderless


def test_a_switch_that_makes_the_throttle_short() -> None:
    """Each of two leaders needs 2 x 2 MB/s; one leading both needs 8, 2 more than 6."""
    state = state_of([placed(n, r, write_bytes_per_s=2.0 * MB) for n, r in ((0, (1, 2)), (1, (2, 1)))])
    found = what_if(traffic_of(state, plan_of({0: (1, 3), 1: (2, 3)})), 6 * MB)
    assert found.short_switches == 2
    worst = {(c.partition.partition, c.leader, c.next_leader, c.broker_role.broker) for c in found.worst_switches}
    assert worst == {(0, 1, 2, 2), (1, 2, 1, 1)}
    assert found.required_bytes_per_s == 8 * MB


def test_a_lost_broker_hands_its_leads_to_the_next_in_target_order() -> None:
    """Broker 1 is lost: 2 and then 3 hold its partition, and 3 is the earlier target. Its copies stop too."""
    state = state_of([placed(0, (1, 2, 3)), placed(1, (2,))])
    plan = plan_of({0: (3, 2, 4), 1: (1,)})
    lost = {case.broker: case for case in what_if(traffic_of(state, plan), MB).losses}[1]
    # Then broker 3 sends to 2 and 4.
    assert (lost.broker_role, lost.required_bytes_per_s) == (BrokerRole(3, Role.LEADER), 2e6)
    assert (lost.stopped_copies, lost.leaderless) == (1, 0)


def test_partitions_without_another_replica_in_sync_are_left_without_a_leader() -> None:
    state = state_of([placed(0, (1, 2), isr=(1,))], {2: BrokerState(2)})
    lost = {case.broker: case for case in what_if(traffic_of(state, plan_of({0: (1, 3)})), MB).losses}[1]
    assert (lost.leaderless, lost.broker_role) == (1, None)


def test_unknown_rates_are_counted_and_never_zero() -> None:
    state = state_of([placed(0, (1, 2), write_bytes_per_s=None)])
    found = what_if(traffic_of(state, plan_of({0: (1, 3)})), MB)
    assert (found.switches, found.unknown_switches) == (1, 1)
