"""The numbers of docs/throttle_headroom.md: one move, before and after a leader switch."""

from __future__ import annotations

import pytest

from headroom.planning.quotas.load import PartitionTraffic, ThrottleLoad, throttle_loads
from headroom.planning.quotas.long_run import copy_rate
from headroom.planning.throttles.recommendation import ThrottlePolicy, recommend
from headroom.planning.throttles.replica_lists import Move, TopicLists, lists_of_plan
from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import BrokerRole, Role, TopicPartition

MB = 1e6
BEFORE_SWITCH, AFTER_SWITCH = (1, 2), (2, 2)


def loads(leaders: tuple[int, int], throttle_mb: float) -> dict[BrokerRole, ThrottleLoad]:
    """Return the loads of orders-0 and orders-1 by broker and role, with these leaders."""
    partitions = [
        PartitionTraffic(
            name=TopicPartition("orders", number),
            leader=leader,
            followers=tuple(broker for broker in (1, 2, 3) if broker != leader),
            in_sync=frozenset({1, 2}),
            adding=frozenset({3}),
            leader_listed=frozenset({1, 2}),
            follower_listed=frozenset({3}),
            write_bytes_per_s=2 * MB,
        )
        for number, leader in enumerate(leaders)
    ]
    throttles = {(broker, role): throttle_mb * MB for broker in (1, 2, 3) for role in Role}
    return {(load.broker, load.role): load for load in throttle_loads(partitions, throttles)}


def test_the_lists_are_those_of_kafkas_tool() -> None:
    moves = [Move(TopicPartition("orders", 0), (1, 2), (2, 3)), Move(TopicPartition("orders", 1), (2, 1), (3, 1))]
    assert lists_of_plan(moves) == {"orders": TopicLists("0:1,0:2,1:1,1:2", "0:3,1:3")}


@pytest.mark.parametrize(
    ("leaders", "broker_role", "in_sync_mb", "required_mb", "out_of_sync", "verdict"),
    [
        (BEFORE_SWITCH, (1, Role.LEADER), 2, 4, 1, Verdict.CATCHING_UP),
        (BEFORE_SWITCH, (2, Role.LEADER), 2, 4, 1, Verdict.CATCHING_UP),
        (BEFORE_SWITCH, (3, Role.FOLLOWER), 0, 4, 2, Verdict.CATCHING_UP),
        (BEFORE_SWITCH, (1, Role.FOLLOWER), 0, 0, 0, Verdict.IDLE),
        (BEFORE_SWITCH, (2, Role.FOLLOWER), 0, 0, 0, Verdict.IDLE),
        (AFTER_SWITCH, (2, Role.LEADER), 4, 8, 2, Verdict.LOSING),
        (AFTER_SWITCH, (3, Role.FOLLOWER), 0, 4, 2, Verdict.CATCHING_UP),
    ],
)
def test_the_thresholds_and_verdicts_at_5_6_mb_per_s(
    leaders: tuple[int, int],
    broker_role: BrokerRole,
    in_sync_mb: float,
    required_mb: float,
    out_of_sync: int,
    verdict: Verdict,
) -> None:
    load = loads(leaders, 5.6)[broker_role]
    assert (load.in_sync_bytes_per_s, load.required_bytes_per_s) == (in_sync_mb * MB, required_mb * MB)
    assert (load.limited_replicas, load.free_replicas, load.verdict) == (out_of_sync, 0, verdict)


def test_a_broker_that_leads_nothing_has_no_load_as_leader() -> None:
    assert (3, Role.LEADER) not in loads(BEFORE_SWITCH, 5.6)
    assert (1, Role.LEADER) not in loads(AFTER_SWITCH, 5.6)


def test_broker_3_waits_for_broker_2_after_the_switch() -> None:
    assert not loads(BEFORE_SWITCH, 5.6)[3, Role.FOLLOWER].leader_too_low
    assert loads(AFTER_SWITCH, 5.6)[3, Role.FOLLOWER].leader_too_low


# 9 and 31 responses of 2 x 1,048,576 bytes in 11.5 s, of which 98.5 % are new.
@pytest.mark.parametrize(("throttle_mb", "copied_mb"), [(5.6, 1.62), (9.6, 5.57)])
def test_the_copy_rate_of_broker_2_after_the_switch(throttle_mb: float, copied_mb: float) -> None:
    load = loads(AFTER_SWITCH, throttle_mb)[2, Role.LEADER]
    assert load.burst_bytes == 2 * 1_048_576
    rate = copy_rate(throttle_mb * MB, 4 * MB, load.burst_bytes, load.quota_window)
    assert rate.middle == pytest.approx(copied_mb * MB, abs=0.005 * MB)


def test_the_recommendation_is_9_6_mb_per_s() -> None:
    found = recommend(list(loads(AFTER_SWITCH, 5.6).values()), ThrottlePolicy(margin_ratio=1.2))
    assert found is not None
    assert (found.smallest_bytes_per_s, found.throttle_bytes_per_s) == (8 * MB, 9_600_000)


@pytest.mark.parametrize(
    ("leaders", "throttle_mb", "verdict"),
    [
        (BEFORE_SWITCH, 1.5, Verdict.STARVED),
        (BEFORE_SWITCH, 3, Verdict.LOSING),
        (BEFORE_SWITCH, 5, Verdict.CATCHING_UP),
        (BEFORE_SWITCH, 9, Verdict.CATCHING_UP),
        (AFTER_SWITCH, 5.6, Verdict.LOSING),
        (AFTER_SWITCH, 11, Verdict.CATCHING_UP),
    ],
)
def test_the_verdicts_of_the_measured_throttles(leaders: tuple[int, int], throttle_mb: float, verdict: Verdict) -> None:
    assert loads(leaders, throttle_mb)[2, Role.LEADER].verdict is verdict
