"""Moves as they happen, tick by tick with the settings as shipped: who is told of what, and who is left in peace."""

from __future__ import annotations

import json
from collections.abc import Sequence
from itertools import chain, repeat
from typing import Any

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import OutOfSyncReplica, ThrottleStatus
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import ClusterSettings, Settings
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import MB, TICK_MS, partition, status

LEADER, FOLLOWER = Role.LEADER, Role.FOLLOWER
INTERVAL_S = 5
Tick = Sequence[ThrottleStatus]

MOVING = [
    status(1, LEADER, 9, 4, partition(), eta_s=600.0, throttle_source="broker"),
    status(3, FOLLOWER, 9, 2, partition(), eta_s=600.0, throttle_source="broker"),
]
UNKNOWN = [status(s.broker, s.role, 9, None, partition(write_bytes_per_s=None)) for s in MOVING]
# Done, or cancelled with its throttle kept.
OVER = [
    status(s.broker, s.role, 9, 4, partition(moving=False, in_sync_followers=2), limited=0, throttle_source="broker")
    for s in MOVING
]
CLEARED = [status(s.broker, s.role, None, 0, limited=0, throttle_source="none") for s in MOVING]


def down(**more: Any) -> Tick:
    """Broker 3 is away, to which a partition moves, and which had replicas in sync before."""
    lost = (OutOfSyncReplica("t", 7, 1, True), OutOfSyncReplica("u", 0, 2, False))
    away = {"throttle_known": False, "reason": "the broker is down", "alive": False, "stall": "offline"}
    counts = {"lost": lost, "lost_replicas": 2, "lost_moving_replicas": 1}
    return [MOVING[0], status(3, FOLLOWER, None, 0, partition(stalled=True), **{**away, **counts, **more})]


def fired(*stretches: tuple[float, Tick]) -> list[tuple[float, AlertEvent]]:
    """Second and event of all that fires in stretches of so many seconds of the same tick."""
    engine = AlertEngine(Settings(cluster=ClusterSettings(name="c")), lambda: TICK_MS)
    ticks = chain.from_iterable(repeat(statuses, round(s / INTERVAL_S)) for s, statuses in stretches)
    return [
        (number * INTERVAL_S, event)
        for number, statuses in enumerate(ticks)
        for event in engine.evaluate("c", TICK_MS + number * INTERVAL_S * 1000, statuses)
        if event.state == "firing"
    ]


NEW_TOPIC = status(4, FOLLOWER, None, 0, limited=0, lost=(OutOfSyncReplica("n", 0, 1, False),), lost_replicas=1)


@pytest.mark.parametrize(
    "stretches",
    [
        pytest.param([(10, UNKNOWN), (60, MOVING)], id="the first ticks know no rates"),
        pytest.param([(60, MOVING), (280, OVER), (600, CLEARED)], id="a throttle that --verify clears in time"),
        pytest.param([(60, MOVING), (200, OVER)] * 4, id="batches with pauses between them"),
        pytest.param([(60, MOVING), (25, down()), (60, MOVING)], id="a broker that restarts"),
        pytest.param([(60, MOVING), (10, UNKNOWN), (60, MOVING)], id="readings that fail now and then"),
        pytest.param([(60, MOVING), (50, [*MOVING, NEW_TOPIC]), (60, MOVING)], id="a topic whose ISR is not full yet"),
    ],
)
def test_a_healthy_move_raises_no_alert(stretches: list[tuple[float, Tick]]) -> None:
    assert fired(*stretches) == []


def test_a_throttle_that_is_not_cleared_is_reported_once_after_five_minutes() -> None:
    ((second, event),) = fired((60, MOVING), (3600, OVER))
    assert (second, event.kind, event.severity) == (360, "throttle_left_behind", "warning")


def test_a_broker_that_stays_down_raises_one_alert_that_names_all_consequences() -> None:
    ((second, event),) = fired((60, MOVING), (600, down()))
    assert (second, event.kind, event.subject) == (90, "reassignment_stalled", "broker 3 as destination")
    also = {one["kind"] for one in json.loads(event.evidence)["also"]}
    assert also == {"isr_shrink_during_move", "under_replicated", "no_data"}


def leads(throttle_mb: float, required_mb: float, down_mb: float) -> Tick:
    """Broker 1 leads, and needs so much more once broker 3 is back, which is down."""
    own = status(1, LEADER, throttle_mb, required_mb, partition(), in_sync_mb=0, down_required_bytes_per_s=down_mb * MB)
    return [own, status(3, FOLLOWER, None, 0, limited=0, alive=not down_mb)]


# Leader 1 at 5 MB/s sends 6 to broker 3 and 2 to broker 4. While 3 is down it needs 2, and then 8 again.
def test_a_throttle_too_low_for_two_destinations_raises_one_alert_though_one_goes_down() -> None:
    both, one = leads(5, 8, 0), leads(5, 2, 6)
    assert [second for second, _ in fired((60, both), (120, one), (120, both))] == [INTERVAL_S]


# Broker 3 was down before: 2.40 MB/s would be enough for the others, 9.6 are enough for its return too.
def test_advice_for_the_return_of_a_dead_broker_is_not_given_twice() -> None:
    ((second, event),) = fired((60, leads(1, 2, 6)), (60, leads(9.6, 2, 6)), (60, leads(9.6, 8, 0)))
    assert second == INTERVAL_S
    assert json.loads(event.recommendation)["throttle_bytes_per_s"] == 9_600_000
    assert event.summary.endswith("; once broker 3 is back, its leaders must send 8.00 MB/s")
    evidence = json.loads(event.evidence)
    assert (evidence["down_required_bytes_per_s"], evidence["lasting_required_bytes_per_s"]) == (6 * MB, 8 * MB)
    assert evidence["down_brokers"] == [3]


# It asked for 4.80 MB/s. Broker 3 dies before these are in force, and the broker takes over what that one led.
def test_advice_overtaken_by_a_death_says_what_is_missing_for_the_return() -> None:
    events = fired((60, leads(3, 4, 0)), (60, leads(4.8, 4.2, 2)), (60, leads(7.44, 4.2, 2)), (60, leads(7.44, 6.2, 0)))
    assert [second for second, _ in events] == [INTERVAL_S, 60]
    assert events[1][1].summary == (
        "The throttle is enough only until broker 3 is back: broker 1 as leader is throttled to 4.80 MB/s, but then "
        "its leaders must send 6.20 MB/s"
    )
    assert json.loads(events[1][1].recommendation)["throttle_bytes_per_s"] == 7_440_000


# Nobody is called for a throttle that is enough as long as a broker is down.
def test_a_throttle_that_is_enough_while_a_broker_is_down_raises_no_alert() -> None:
    assert fired((60, leads(3, 2, 0)), (120, leads(3, 2, 6))) == []


# Who reads "must send 8.03 MB/s" may set 8.2 by hand: the alert ends from 8.43 on, and must not name 5.6 until then.
@pytest.mark.parametrize("first_mb", [5.6, 7.9])
def test_a_rate_that_is_only_just_enough_is_reported_with_the_rate_that_ends_the_alert(first_mb: float) -> None:
    low, barely, enough = (leads(throttle_mb, 8.03, 0) for throttle_mb in (first_mb, 8.2, 8.5))
    events = fired((30, low), (300, barely), (60, enough))
    assert [(second, event.severity) for second, event in events] == [(INTERVAL_S, "warning"), (35, "info")]
    assert events[1][1].summary == (
        "The throttle is only just enough: broker 1 as leader is throttled to 8.20 MB/s, and its leaders must send "
        "8.03 MB/s; the alert ends from 8.43 MB/s on"
    )
    assert json.loads(events[1][1].recommendation)["throttle_bytes_per_s"] == 9_636_000
    # At the edge it neither begins nor alternates.
    assert fired((300, barely)) == []
    assert len(fired((30, low), *[(30, barely), (30, leads(8.2, 8.21, 0))] * 5)) == 3


def test_a_rate_only_just_enough_for_a_returning_broker_is_reported_as_such() -> None:
    _, (_, event) = fired((30, leads(1, 2, 6)), (60, leads(8.2, 2, 6)))
    assert event.summary.endswith(
        "throttled to 8.20 MB/s, and its leaders must send 8.00 MB/s once broker 3 is back; "
        "the alert ends from 8.40 MB/s on"
    )


# As after --cancel of another move: the lists stay, and the rates of all brokers are gone.
def test_a_move_whose_rates_were_removed_is_without_a_throttle() -> None:
    without = [
        status(s.broker, s.role, None, required_mb, partition(), throttle_source="none")
        for s, required_mb in zip(MOVING, (4, 2), strict=True)
    ]
    ((second, event),) = fired((60, MOVING), (600, without))
    assert (second, event.kind, event.severity) == (65, "reassignment_without_throttle", "info")
    assert event.summary == (
        "1 partition(s) move without a throttle, as fast as brokers and network go: throttled replica lists name them, "
        "but no broker of theirs has a rate; to limit it, take more than 4.00 MB/s"
    )


def test_a_throttle_too_low_for_all_brokers_raises_one_alert() -> None:
    low = [status(broker, LEADER, 3, 4 + broker, partition(broker, leader=broker)) for broker in (1, 2, 4)]
    ((second, event),) = fired((60, low))
    assert (second, event.subject) == (INTERVAL_S, "broker 4 as leader")
    assert [one["subject"] for one in json.loads(event.evidence)["also"]] == [
        "broker 2 as leader",
        "broker 1 as leader",
    ]
