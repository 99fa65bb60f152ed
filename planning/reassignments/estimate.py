"""Estimate of a move before it begins: the throttle that it needs, the time it takes, and what would break it."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace

import numpy as np

from headroom.planning.quotas.load import ThrottleLoad, worse_loads
from headroom.planning.reassignments.changes import PlanChanges
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.replica_keys import Bools
from headroom.planning.reassignments.timing import MoveTimes, TimeEstimate
from headroom.planning.reassignments.traffic import OtherReplication, PlannedTraffic, planned_traffic
from headroom.planning.reassignments.what_if import WhatIf, what_if
from headroom.planning.throttles.recommendation import (
    ACCURATE_BYTES_PER_S,
    ThrottlePolicy,
    ThrottleRecommendation,
    recommend,
)
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

# Throttles of the table, as multiples of the rate that every broker must exceed.
_TABLE_RATIOS = (1.02, 1.05, 1.1, 1.5, 2.0, 3.0)
# Scenarios that are simulated for each of them.
_TABLE_SCENARIOS = 3


@dataclass(frozen=True)
class ExpectedSwitch:
    """A leader switch that Kafka makes by itself during a move, to the first target replica, which is in sync."""

    partition: TopicPartition
    leader: int
    next_leader: int


@dataclass(frozen=True)
class ThrottleNeed:
    """Need of one broker and role during a move, with the worse of the leaders before and after expected switches.

    Attributes:
        broker_role: broker and role.
        in_sync_bytes_per_s: listed traffic of in-sync followers; None if unknown.
        required_bytes_per_s: listed traffic of all followers, which a throttle has to exceed; None if unknown.
        known_required_bytes_per_s: known part of it.
        recommended_bytes_per_s: throttle that is enough here; None if the capacity is too low, or traffic is unknown.
        copies: number of new replicas that copy; 0 if the throttle limits replicas of others alone.
        remaining_bytes: bytes that they copy; None if unknown.
        alone_s: time for that at the throttle of the estimate, bytes / (throttle - required), seconds; infinite if it
            never ends, None if unknown.
        in_force_bytes_per_s: throttle in force now; None if there is none.
    """

    broker_role: BrokerRole
    in_sync_bytes_per_s: float | None
    required_bytes_per_s: float | None
    known_required_bytes_per_s: float
    recommended_bytes_per_s: int | None
    copies: int
    remaining_bytes: int | None
    alone_s: float | None
    in_force_bytes_per_s: int | None


@dataclass(frozen=True)
class MoveEstimate:
    """Estimate of a move.

    Attributes:
        changes: replicas added and removed, and lists.
        lists: throttled replica lists of the move, by topic: those of the plan, or those in force if it runs already.
        needs: need of every broker and role that gets the throttle and limits replicas, in ascending order.
        recommendation: one rate for all brokers; None if nothing copies behind a throttle.
        throttle_bytes_per_s: the throttle that times and what-ifs hold for; None if none was given or is enough.
        usual_rule_bytes_per_s: highest write rate of a broker, which the usual rule wants a throttle to exceed; None if
            unknown.
        time: time under the throttle; None without one.
        times: times under several throttles, the lowest first.
        expected_switches: leader switches that Kafka makes by itself.
        what_if: effect of any other switch, of any lost broker, and of the return of one that is down.
        survives_bytes_per_s: throttle with margin that is enough after any single one of these; None if the capacity is
            too low, or traffic is unknown.
        copied_bytes: bytes to copy in all; None if unknown.
        unknown_rates: copying partitions whose write rate is unknown.
        unknown_sizes: copying partitions whose size is unknown.
    """

    changes: PlanChanges
    lists: Mapping[str, TopicLists]
    needs: tuple[ThrottleNeed, ...]
    recommendation: ThrottleRecommendation | None
    throttle_bytes_per_s: int | None
    usual_rule_bytes_per_s: float | None
    time: TimeEstimate | None
    times: tuple[TimeEstimate, ...]
    expected_switches: tuple[ExpectedSwitch, ...]
    what_if: WhatIf
    survives_bytes_per_s: int | None
    copied_bytes: int | None
    unknown_rates: tuple[TopicPartition, ...]
    unknown_sizes: tuple[TopicPartition, ...]

    @property
    def is_enough(self) -> bool | None:
        """Whether the throttle exceeds what every broker requires; None if there is none, or traffic is unknown."""
        if self.throttle_bytes_per_s is None:
            return None
        if any(need.known_required_bytes_per_s >= self.throttle_bytes_per_s for need in self.needs):
            return False
        return None if any(need.required_bytes_per_s is None for need in self.needs) else True


def estimate(
    changes: PlanChanges,
    state: ClusterState,
    policy: ThrottlePolicy,
    throttle_bytes_per_s: int | None = None,
    in_flight: bool = False,
) -> MoveEstimate:
    """Return the estimate of a move.

    Args:
        changes: changes of a plan that can be carried out (``validation.require_possible``).
        state: the cluster.
        policy: margin, deadline and capacity.
        throttle_bytes_per_s: throttle of the estimate; the recommended one if None, or for a running move the lowest
            rate in force.
        in_flight: whether the move runs already, with the lists and rates in force.
    """
    lists = _lists_in_force(changes, state) if in_flight else changes.lists
    traffic = planned_traffic(state, changes, {} if in_flight else lists)
    times = MoveTimes(traffic, state, OtherReplication(state, policy.capacity_bytes_per_s).ceilings(traffic), in_flight)
    loads = worse_loads(times.before, times.after)
    loads = sorted([*loads, *_loads_of_others(changes, traffic, state, loads, in_flight)], key=lambda d: d.broker_role)
    recommendation = recommend(
        [replace(load, throttle_bytes_per_s=0.0) for load in loads],
        policy,
        in_time_of=lambda _, within_s, most: times.lowest_in_time(within_s, most),
    )
    throttle = throttle_bytes_per_s
    if throttle is None and in_flight:
        throttle = min((int(load.throttle_bytes_per_s or 0) for load in loads), default=None)
    elif throttle is None and recommendation is not None:
        throttle = recommendation.throttle_bytes_per_s
    effects = what_if(traffic, throttle)
    time = None if throttle is None else times.at(throttle)
    return MoveEstimate(
        changes=changes,
        lists=lists,
        needs=tuple(_need(load, times, state, policy, throttle) for load in loads),
        recommendation=recommendation,
        throttle_bytes_per_s=throttle,
        usual_rule_bytes_per_s=usual_rule(state),
        time=time,
        times=tuple(
            time if time is not None and rate == throttle else times.at(rate, _TABLE_SCENARIOS)
            for rate in _table_rates(recommendation, throttle)
        ),
        expected_switches=expected_switches(changes, state),
        what_if=effects,
        survives_bytes_per_s=_survives(recommendation, effects, policy),
        copied_bytes=_copied_bytes(traffic),
        unknown_rates=_names(traffic, traffic.unknown_write[traffic.partition]),
        unknown_sizes=_names(traffic, np.isnan(traffic.remaining)),
    )


def expected_switches(changes: PlanChanges, state: ClusterState) -> tuple[ExpectedSwitch, ...]:
    """Return the switches that Kafka makes within minutes, because target replicas are preferred from the start.

    Only partitions that gain a replica are considered; none with ``auto.leader.rebalance.enable`` off.
    """
    alive, rebalances = state.alive, state.auto_leader_rebalance
    return tuple(
        ExpectedSwitch(target.name, placement.leader, next_leader)
        for target, placement in zip(changes.gaining, changes.placements, strict=True)
        if placement.leader is not None
        and (next_leader := placement.leader_during(target.replicas, alive, rebalances)) not in (None, placement.leader)
    )


def usual_rule(state: ClusterState) -> float | None:
    """Return the highest write rate of a broker, as the sum over the partitions that it leads; None if unknown."""
    sums: dict[int, float] = defaultdict(float)
    for placement in state.partitions.values():
        if placement.leader is None:
            continue
        if placement.write_bytes_per_s is None:
            return None
        sums[placement.leader] += placement.write_bytes_per_s
    return max(sums.values(), default=0.0)


def running_plan(state: ClusterState) -> ReassignmentPlan:
    """Return the target replicas of the running reassignments, ordered by topic and partition."""
    moving = sorted(name for name, placement in state.partitions.items() if placement.moving)
    return ReassignmentPlan(tuple(TargetAssignment(name, state.partitions[name].target) for name in moving))


def _lists_in_force(changes: PlanChanges, state: ClusterState) -> Mapping[str, TopicLists]:
    topics = sorted({target.name.topic for target in changes.gaining} & state.lists.keys())
    return {topic: state.lists[topic] for topic in topics}


def _need(
    load: ThrottleLoad, times: MoveTimes, state: ClusterState, policy: ThrottlePolicy, throttle: int | None
) -> ThrottleNeed:
    copies = times.copies.get(load.broker_role, 0)
    alone_s = None if throttle is None else times.alone_s(load, throttle)
    in_sync = None if load.in_sync_bytes_per_s is None else load.known_in_sync_bytes_per_s
    return ThrottleNeed(
        broker_role=load.broker_role,
        in_sync_bytes_per_s=in_sync,
        required_bytes_per_s=load.required_bytes_per_s,
        known_required_bytes_per_s=load.known_required_bytes_per_s or 0.0,
        recommended_bytes_per_s=_sufficient_throttle(load, policy),
        copies=copies,
        remaining_bytes=load.remaining_bytes,
        alone_s=alone_s if copies or throttle is None else 0.0,
        in_force_bytes_per_s=_rate_in_force(state, load.broker_role),
    )


def _sufficient_throttle(load: ThrottleLoad, policy: ThrottlePolicy) -> int | None:
    """Return the throttle that is enough for one broker and role, and ends its own copies before the deadline."""
    required = load.required_bytes_per_s
    if required is None:
        return None
    enough = policy.throttle_above(required)
    if enough is None or policy.finish_within_s is None or load.remaining_bytes is None:
        return enough
    in_time = math.ceil(required + load.remaining_bytes / policy.finish_within_s)
    return max(enough, in_time) if in_time <= policy.most_bytes_per_s else None


def _loads_of_others(
    changes: PlanChanges,
    traffic: PlannedTraffic,
    state: ClusterState,
    loads: Collection[ThrottleLoad],
    in_flight: bool,
) -> list[ThrottleLoad]:
    """Return the loads of the brokers and roles that get the throttle and limit replicas of others alone.

    Every replica from before is in the leader list, so its broker gets the rate, although it sends no copy. Other
    replicas that are behind may be in lists in force there, and the rate would hold them back.
    """
    if not state.lists:
        return []
    limiting = {
        BrokerRole(broker, role)
        for target, placement in zip(changes.gaining, changes.placements, strict=True)
        for role, brokers in ((Role.LEADER, placement.before), (Role.FOLLOWER, target.replicas))
        for broker in brokers
        if role is Role.LEADER or broker not in placement.before
    }
    sums, others = traffic.worst, limiting - {load.broker_role for load in loads}
    other_loads = []
    for index in np.flatnonzero(sums.behind > 0).tolist():
        role = traffic.broker_role(index)
        own = _rate_in_force(state, role)
        if role not in others or (in_flight and own is None):
            continue
        known = not sums.unknown[index]
        other_loads.append(
            ThrottleLoad(
                broker=role.broker,
                role=role.role,
                throttle_bytes_per_s=float(own or 0.0) if in_flight else 0.0,
                in_sync_bytes_per_s=float(sums.in_sync[index]) if known else None,
                required_bytes_per_s=float(sums.required[index]) if known else None,
                limited_replicas=int(sums.behind[index]),
                free_replicas=0,
                # Of the plan nothing is copied there.
                remaining_bytes=0,
                known_in_sync_bytes_per_s=float(sums.in_sync[index]),
                known_required_bytes_per_s=float(sums.required[index]),
            )
        )
    return other_loads


def _rate_in_force(state: ClusterState, role: BrokerRole) -> int | None:
    broker = state.brokers[role.broker]
    return broker.leader_bytes_per_s if role.role is Role.LEADER else broker.follower_bytes_per_s


def _table_rates(recommendation: ThrottleRecommendation | None, throttle: int | None) -> list[int]:
    """Return the throttles of the table: multiples of the rate to exceed, the recommended one, and the given one."""
    rates = set() if throttle is None else {throttle}
    if recommendation is not None and recommendation.smallest_bytes_per_s is not None:
        least = max(recommendation.smallest_bytes_per_s, ACCURATE_BYTES_PER_S)
        rates |= {math.ceil(least * ratio) for ratio in _TABLE_RATIOS}
        if recommendation.throttle_bytes_per_s is not None:
            rates.add(recommendation.throttle_bytes_per_s)
    return sorted(rates)


def _survives(recommendation: ThrottleRecommendation | None, effects: WhatIf, policy: ThrottlePolicy) -> int | None:
    if recommendation is None or recommendation.smallest_bytes_per_s is None or effects.unknown_switches:
        return None
    return policy.throttle_above(max(recommendation.smallest_bytes_per_s, effects.required_bytes_per_s))


def _copied_bytes(traffic: PlannedTraffic) -> int | None:
    total = traffic.remaining[traffic.copies & traffic.alive].sum()
    return None if np.isnan(total) else int(total)


def _names(traffic: PlannedTraffic, chosen: Bools) -> tuple[TopicPartition, ...]:
    """Return the partitions with a chosen replica that copies."""
    numbers = np.unique(traffic.partition[traffic.copies & chosen])
    return tuple(traffic.names[number] for number in numbers.tolist())
