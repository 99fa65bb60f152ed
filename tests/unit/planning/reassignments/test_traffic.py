"""The sums over arrays equal those of the scalar rule in ``planning.quotas.load``."""

from __future__ import annotations

import math
from dataclasses import replace

from hypothesis import given

from headroom.planning.quotas.load import ThrottleLoads
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.traffic import PlannedTraffic, RoleSums
from headroom.planning.throttles.replica_lists import TopicLists
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

Figures = tuple[float, float, bool, bool, int]


def figures(traffic: PlannedTraffic, sums: RoleSums) -> dict[BrokerRole, Figures]:
    found = {
        traffic.broker_role(at): (
            float(sums.required[at]),
            float(sums.in_sync[at]),
            sums.unknown[at] > 0,
            sums.unknown_in_sync[at] > 0,
            int(sums.behind[at]),
        )
        for at in range(len(sums.required))
    }
    return {role: values for role, values in found.items() if any(values)}


def expected_figures(state: ClusterState, plan: ReassignmentPlan, leaders: dict[int, int]) -> dict[BrokerRole, Figures]:
    loads = ThrottleLoads(reference_traffic(state, plan_changes(plan, state), leaders), {})
    found = {}
    for role in loads:
        load = loads.load_of(role)
        found[role] = (
            load.known_required_bytes_per_s or 0.0,
            load.known_in_sync_bytes_per_s or 0.0,
            load.required_bytes_per_s is None,
            load.in_sync_bytes_per_s is None,
            load.limited_replicas,
        )
    return {role: values for role, values in found.items() if any(values)}


@given(states_and_plans())
def test_sums_are_those_of_the_scalar_rule(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    traffic = traffic_of(state, plan)
    assert figures(traffic, traffic.before) == expected_figures(state, plan, {})


@given(states_and_plans())
def test_sums_with_preferred_leaders_are_those_of_the_scalar_rule(drawn: tuple[ClusterState, ReassignmentPlan]) -> None:
    state, plan = drawn
    traffic = traffic_of(state, plan)
    preferred = {}
    if state.auto_leader_rebalance is not False:
        for target in plan_changes(plan, state).gaining:
            placement, first = state.partitions[target.name], target.replicas[0]
            if placement.leader is not None and first in placement.isr and first in state.alive:
                preferred[target.name.partition] = first
    assert figures(traffic, traffic.after) == expected_figures(state, plan, preferred)


def test_the_worked_example() -> None:
    """RF 2, 2 MB/s, one new replica: two followers of 2 MB/s at the leader, one of them in sync; 2 MB/s to the new."""
    state = state_of([placed(0, (1, 2), write_bytes_per_s=2.0 * MB)])
    traffic = traffic_of(state, plan_of({0: (3, 2)}))
    assert figures(traffic, traffic.before) == {
        BrokerRole(1, Role.LEADER): (4e6, 2e6, False, False, 1),
        BrokerRole(3, Role.FOLLOWER): (2e6, 0.0, False, False, 1),
    }


def test_lists_in_force_count_beside_those_of_the_plan() -> None:
    """Partition 1 rests, but is in the list of an earlier move: its 1 MB/s to broker 2 uses the quota of broker 1."""
    state = state_of([placed(0, (1, 2)), placed(1, (1, 2))], lists={"t": TopicLists("1:1", None)})
    traffic = traffic_of(state, plan_of({0: (3, 2)}))
    assert figures(traffic, traffic.before)[BrokerRole(1, Role.LEADER)] == (3e6, 2e6, False, False, 1)


def test_a_follower_whose_broker_is_down_does_not_fetch() -> None:
    state = state_of([placed(0, (1, 2), isr=(1,))], {2: BrokerState(2, alive=False)})
    traffic = traffic_of(state, plan_of({0: (3, 2)}))
    assert figures(traffic, traffic.before)[BrokerRole(1, Role.LEADER)] == (1e6, 0.0, False, False, 1)


def test_a_list_of_every_replica_counts_all_of_its_topic_and_one_that_kafka_cannot_read_none() -> None:
    partitions = [placed(0, (1, 2)), placed(1, (1, 2))]
    every = traffic_of(state_of(partitions, lists={"t": TopicLists("*", "*")}), plan_of({0: (3, 2)}))
    assert figures(every, every.before)[BrokerRole(1, Role.LEADER)] == (3e6, 2e6, False, False, 1)
    # Broker 2 follows in both.
    assert figures(every, every.before)[BrokerRole(2, Role.FOLLOWER)] == (2e6, 2e6, False, False, 0)
    torn = traffic_of(state_of(partitions, lists={"t": TopicLists("1-1", "1:77")}), plan_of({0: (3, 2)}))
    assert figures(torn, torn.before)[BrokerRole(1, Role.LEADER)] == (2e6, 1e6, False, False, 1)


def test_a_copy_that_has_begun_has_the_rest_to_copy_and_an_unknown_size_stays_unknown() -> None:
    begun = replace(placed(0, (1, 2, 3), isr=(1, 2)), adding=(3,), size_bytes=100, copied_bytes={3: 30})
    state = state_of([begun, replace(begun, partition=1, size_bytes=None), replace(begun, partition=2, size_bytes=20)])
    traffic = traffic_of(state, plan_of(dict.fromkeys(range(3), (1, 3))))
    left = traffic.remaining[traffic.copies].tolist()
    assert (left[0], left[2]) == (70, 0)
    assert math.isnan(left[1])
    # Nothing is left of a replica that stays.
    assert traffic.remaining[~traffic.copies].tolist() == [0.0] * 6
