from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import pytest

from headroom.planning.finish.finish_time import Finish
from headroom.planning.reassignments import timing
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState
from headroom.planning.reassignments.estimate import ExpectedSwitch, MoveEstimate, estimate, running_plan, usual_rule
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.timing import TimeEstimate
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.unit.builders.cluster_states import MB, placed, plan_of, state_of


def estimated(
    state: ClusterState, plan: ReassignmentPlan, throttle: int | None = None, policy: ThrottlePolicy | None = None
) -> MoveEstimate:
    return estimate(plan_changes(plan, state), state, policy or ThrottlePolicy(), throttle)


def two_leaders(**fields: object) -> ClusterState:
    """Two partitions of 2 MB/s and 600 MB, led by brokers 1 and 2."""
    placements = [placed(n, r, write_bytes_per_s=2.0 * MB, size_bytes=600 * MB) for n, r in ((0, (1, 2)), (1, (2, 1)))]
    return state_of(placements, **fields)


def test_needs_of_every_broker_and_role() -> None:
    found = estimated(two_leaders(), plan_of({0: (1, 3), 1: (2, 3)}))
    figures = {n.broker_role: (n.in_sync_bytes_per_s, n.required_bytes_per_s, n.copies) for n in found.needs}
    assert figures == {
        BrokerRole(1, Role.LEADER): (2e6, 4e6, 1),
        BrokerRole(2, Role.LEADER): (2e6, 4e6, 1),
        BrokerRole(3, Role.FOLLOWER): (0.0, 4e6, 2),
    }
    # 4 MB/s and the margin of 1.2; the usual rule says 2.
    assert (found.throttle_bytes_per_s, found.usual_rule_bytes_per_s, found.is_enough) == (4_800_000, 2e6, True)
    # 1,200 MB / (4.8 - 4) MB/s at the destination, which both copies share.
    assert found.time is not None
    assert found.time.bottleneck == BrokerRole(3, Role.FOLLOWER)
    assert found.time.bottleneck_s == pytest.approx(1500)
    assert found.time.finish is not None
    assert found.time.finish.middle_s == pytest.approx(1500, rel=0.2)


def test_in_sync_traffic_of_a_partition_that_gains_nothing_stays_out() -> None:
    """4 MB/s at rest beside 1 MB/s that moves: 2 required, not 6 as with the lists of Kafka's tool."""
    state = state_of([placed(0, (1, 2)), placed(1, (1, 2), write_bytes_per_s=4.0 * MB)])
    found = estimated(state, plan_of({0: (1, 3), 1: (1, 2)}))
    assert found.needs[0].required_bytes_per_s == 2e6


def test_a_broker_that_gets_the_throttle_and_limits_replicas_of_others_alone_has_a_need() -> None:
    """Partition 1 is behind on broker 4, listed at its leader 2, which gets the rate because it may lead partition 0.

    Broker 2 sends 3 MB/s to it. Partition 0 needs 2 MB/s at its leader.
    """
    behind = placed(1, (2, 4), isr=(2,), write_bytes_per_s=3.0 * MB)
    lists = {"t": TopicLists("1:2", None)}
    found = estimated(state_of([placed(0, (1, 2)), behind], lists=lists), plan_of({0: (3, 2)}))
    needs = {n.broker_role: (n.required_bytes_per_s, n.copies, n.alone_s) for n in found.needs}
    assert needs[BrokerRole(2, Role.LEADER)] == (3e6, 0, 0.0)
    # 3 MB/s and the margin of 1.2.
    assert found.throttle_bytes_per_s == 3_600_000
    # In the follower list it would be limited by broker 4, which has no part in the plan.
    lists = {"t": TopicLists(None, "1:4")}
    found = estimated(state_of([placed(0, (1, 2)), behind], lists=lists), plan_of({0: (3, 2)}))
    assert {n.broker_role for n in found.needs} == {BrokerRole(1, Role.LEADER), BrokerRole(3, Role.FOLLOWER)}


def test_leaders_before_and_after_the_switch_that_kafka_makes() -> None:
    """Broker 2 is the first target replica of both and in sync: it leads both soon, and requires 8 MB/s then."""
    plan = plan_of({0: (2, 3), 1: (2, 3)})
    found = estimated(two_leaders(auto_leader_rebalance=True), plan)
    assert found.expected_switches == (ExpectedSwitch(TopicPartition("t", 0), 1, 2),)
    needs = {need.broker_role: need.required_bytes_per_s for need in found.needs}
    assert needs[BrokerRole(1, Role.LEADER)] == 4e6
    assert needs[BrokerRole(2, Role.LEADER)] == 8e6
    stays = estimated(two_leaders(auto_leader_rebalance=False), plan)
    assert stays.expected_switches == ()
    assert {need.required_bytes_per_s for need in stays.needs} == {4e6}
    assert estimated(two_leaders(auto_leader_rebalance=None), plan).expected_switches == found.expected_switches


def test_a_short_move_ends_before_kafka_switches() -> None:
    state = two_leaders(auto_leader_rebalance=True)
    found = estimated(state, plan_of({0: (2, 3), 1: (2, 3)}), 40 * MB)
    stays = estimated(two_leaders(auto_leader_rebalance=False), plan_of({0: (2, 3), 1: (2, 3)}), 40 * MB)
    assert found.time is not None
    assert stays.time is not None
    assert found.time.finish == stays.time.finish


def test_a_given_throttle_that_is_too_low() -> None:
    found = estimated(two_leaders(), plan_of({0: (1, 3), 1: (2, 3)}), 3 * MB)
    assert found.is_enough is False
    assert found.recommendation is not None
    assert found.recommendation.throttle_bytes_per_s == 4_800_000
    assert {need.alone_s for need in found.needs} == {math.inf}


def test_unknown_is_never_zero() -> None:
    state = state_of([placed(0, (1, 2), write_bytes_per_s=None), placed(1, (2, 1), size_bytes=None)])
    found = estimated(state, plan_of({0: (1, 3), 1: (2, 3)}), 10 * MB)
    assert found.recommendation is not None
    assert found.recommendation.throttle_bytes_per_s is None
    assert (found.is_enough, found.usual_rule_bytes_per_s, found.copied_bytes) == (None, None, None)
    assert found.time is not None
    assert (found.time.finish, found.time.known) == (None, False)
    assert [name.partition for name in found.unknown_rates] == [0]
    assert [name.partition for name in found.unknown_sizes] == [1]
    assert found.survives_bytes_per_s is None


def test_a_deadline_raises_the_throttle() -> None:
    plan = plan_of({0: (1, 3), 1: (2, 3)})
    found = estimated(two_leaders(), plan, policy=ThrottlePolicy(finish_within_s=600))
    # 1,200 MB in 600 s and 4 MB/s.
    assert found.throttle_bytes_per_s == pytest.approx(6e6, rel=0.15)
    assert found.time is not None
    assert found.time.finish is not None
    assert found.time.finish.middle_s <= 600


def test_a_deadline_just_beyond_the_capacity_gets_the_capacity_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Both copies have 12 MB/s to exceed and 3.94 GB: at 14.4 MB/s they take 3,940 / 2.4 = 1,642 s, at 25 MB/s 303 s.

    The first scenario alone ends before the median of all, so a deadline between both was searched for a long time.
    """
    state = state_of(
        placed(n, r, write_bytes_per_s=6.0 * MB, size_bytes=1970 * MB) for n, r in ((0, (1, 2)), (1, (2, 1)))
    )
    plan = plan_of({0: (1, 3), 1: (2, 3)})
    tried = []
    real = timing.planned_finish

    def counted(*arguments: Any) -> Finish | None:
        tried.append(arguments)
        return real(*arguments)

    monkeypatch.setattr(timing, "planned_finish", counted)
    found = estimated(state, plan, policy=ThrottlePolicy(finish_within_s=300, capacity_bytes_per_s=25.0 * MB))
    assert found.recommendation is not None
    assert (found.throttle_bytes_per_s, found.recommendation.misses_deadline) == (25 * MB, True)
    assert found.time is not None
    assert found.time.finish is not None
    assert found.time.finish.middle_s == pytest.approx(303, rel=0.1)
    assert len(tried) < 50
    # Without a deadline the margin is enough.
    assert estimated(state, plan).throttle_bytes_per_s == 14_400_000


def test_a_move_that_never_ends_with_the_present_leaders_has_no_end_where_they_may_stay() -> None:
    """Broker 1 leads both, and requires 8 MB/s until Kafka, if it does, gives one lead to broker 2."""
    placements = [placed(n, (1, 2), write_bytes_per_s=2.0 * MB, size_bytes=600 * MB) for n in (0, 1)]
    plan = plan_of({0: (1, 3), 1: (2, 3)})

    def time_of(rebalances: bool | None) -> TimeEstimate:
        found = estimated(state_of(placements, auto_leader_rebalance=rebalances), plan, 7 * MB).time
        assert found is not None
        return found

    assert (time_of(None).finish, time_of(None).known) == (None, True)
    assert time_of(False).finish is None
    assert time_of(True).finish is not None


def uneven() -> tuple[ClusterState, ReassignmentPlan]:
    """Ten small partitions of 1 MB/s, and a large one of 0.2 MB/s, all from broker 1 with 2 and 3 to 4."""
    small = [placed(n, (1, 2, 3), size_bytes=10 * MB) for n in range(10)]
    large = placed(10, (1, 2, 3), size_bytes=1_000 * MB, write_bytes_per_s=0.2 * MB)
    return state_of([*small, large]), plan_of(dict.fromkeys(range(11), (1, 2, 4)))


def test_partitions_that_have_moved_no_longer_use_the_throttle_as_in_a_run() -> None:
    """Leader 1 sends 30.6 MB/s to three followers each. While 0.2 MB/s are left, 1,000 MB pass at 36.7 - 0.6 MB/s.

    With the small partitions in the lists, 20 MB/s of in-sync traffic would stay in the quota: 1,000 / 16 s.
    """
    state, plan = uneven()
    time = estimated(state, plan).time
    assert time is not None
    assert time.finish is not None
    assert 28 < time.finish.middle_s < 45
    # The range has the end with Kafka's own tool too, which leaves the partitions in the lists.
    assert time.finish.high_s > 55
    # As do lists of others, which are not the run's.
    listed = replace(state, lists={"t": TopicLists("*", "*")})
    longer = estimated(listed, plan, time.throttle_bytes_per_s).time
    assert longer is not None
    assert longer.finish is None or longer.finish.middle_s > 55


def test_so_they_do_as_sums(monkeypatch: pytest.MonkeyPatch) -> None:
    state, plan = uneven()
    single = estimated(state, plan).time
    monkeypatch.setattr(timing, "_MOST_COPIES", 1)
    summed = estimated(state, plan).time
    assert single is not None
    assert summed is not None
    assert single.finish is not None
    assert summed.finish is not None
    assert summed.finish.middle_s == pytest.approx(single.finish.middle_s, rel=0.25)


def test_a_move_is_never_faster_than_the_capacity() -> None:
    """Broker 3 receives 2 MB/s of a partition that stays, so 6 of its 8 MB/s are left for the move."""
    state = two_leaders()
    rests = placed(2, (4, 3), write_bytes_per_s=2.0 * MB)
    state = state_of([*state.partitions.values(), rests])
    plan = plan_of({0: (1, 3), 1: (2, 3)})
    capped = estimated(state, plan, 100 * MB, ThrottlePolicy(capacity_bytes_per_s=8.0 * MB))
    at_six = estimated(two_leaders(), plan, 6 * MB)
    assert capped.time is not None
    assert at_six.time is not None
    assert capped.time.bottleneck_s == pytest.approx(at_six.time.bottleneck_s or 0)
    assert estimated(state, plan, policy=ThrottlePolicy(capacity_bytes_per_s=4.0 * MB)).throttle_bytes_per_s is None


def test_the_table_has_the_recommended_throttle_and_gets_faster() -> None:
    found = estimated(two_leaders(), plan_of({0: (1, 3), 1: (2, 3)}))
    assert found.throttle_bytes_per_s in [time.throttle_bytes_per_s for time in found.times]
    middles = [time.finish.middle_s for time in found.times if time.finish is not None]
    # A part of the counted bytes is sent twice, so a throttle just above what is required lets a move never end.
    assert [time.finish is None for time in found.times] == [True, True, False, False, False, False, False]
    assert middles == sorted(middles, reverse=True)


def test_many_copies_as_sums_take_as_long_as_one_by_one(monkeypatch: pytest.MonkeyPatch) -> None:
    placements = [placed(n, (1 + n % 3, 1 + (n + 1) % 3), size_bytes=300 * MB) for n in range(30)]
    state = state_of(placements)
    plan = plan_of({n: (p.replicas[0], 4 + n % 2) for n, p in enumerate(placements)})
    single = estimated(state, plan)
    monkeypatch.setattr(timing, "_MOST_COPIES", 1)
    summed = estimated(state, plan)
    assert single.time is not None
    assert summed.time is not None
    assert single.time.finish is not None
    assert summed.time.finish is not None
    assert summed.time.finish.middle_s == pytest.approx(single.time.finish.middle_s, rel=0.25)
    assert summed.needs == single.needs


def test_a_running_move_is_estimated_with_its_own_lists_and_rates() -> None:
    """Partition 0 is at (3, 2, 1), adds 3 and removes 1; 40 of 100 MB are copied, behind 5 MB/s at both ends."""
    moving = placed(0, (3, 2, 1), leader=1, isr=(1, 2), adding=(3,), removing=(1,), copied_bytes={3: 40 * MB})
    brokers = {b: BrokerState(b, leader_bytes_per_s=5 * MB, follower_bytes_per_s=5 * MB) for b in (1, 2, 3)}
    state = state_of([moving, placed(1, (1, 2))], brokers, lists={"t": TopicLists("0:1,0:2", "0:3")})
    plan = running_plan(state)
    assert [(t.name.partition, t.replicas) for t in plan] == [(0, (3, 2))]
    found = estimate(plan_changes(plan, state), state, ThrottlePolicy(), None, True)
    assert (found.throttle_bytes_per_s, found.copied_bytes) == (5 * MB, 60 * MB)
    assert found.lists == {"t": TopicLists("0:1,0:2", "0:3")}
    assert {need.broker_role: need.required_bytes_per_s for need in found.needs} == {
        BrokerRole(1, Role.LEADER): 2e6,
        BrokerRole(3, Role.FOLLOWER): 1e6,
    }


def test_copies_that_nothing_limits_have_no_known_end() -> None:
    moving = placed(0, (3, 2, 1), leader=1, isr=(1, 2), adding=(3,), removing=(1,))
    state = state_of([moving])
    found = estimate(plan_changes(running_plan(state), state), state, ThrottlePolicy(), 5 * MB, True)
    assert found.time is not None
    assert (found.needs, found.time.finish, found.time.known) == ((), None, False)


def test_the_usual_rule_is_the_highest_write_rate_of_a_broker() -> None:
    state = state_of([placed(0, (1, 2)), placed(1, (1, 3)), placed(2, (2, 3))])
    assert usual_rule(state) == 2e6


def test_bytes_and_time_are_those_that_are_not_in_remote_storage() -> None:
    state, plan = two_leaders(), plan_of({0: (1, 3), 1: (2, 3)})
    tiered = replace(state, partitions={n: replace(p, untiered_bytes=60 * MB) for n, p in state.partitions.items()})
    whole, part = estimated(state, plan), estimated(tiered, plan)
    assert (whole.copied_bytes, part.copied_bytes) == (1_200 * MB, 120 * MB)
    assert whole.time is not None
    assert part.time is not None
    assert part.time.bottleneck_s == pytest.approx(whole.time.bottleneck_s / 10)
