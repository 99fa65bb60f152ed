"""Alerts on load over time: one per cause, what continues, and what stale figures do."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, BalanceSettings, ClusterSettings, Settings
from headroom.schemas.keys import Role
from tests.unit.builders.broker_load import loads
from tests.unit.builders.throttle_status import MB, partition, status

START_MS = 1_800_000_000_000
UNEVEN = {1: 30.0, 2: 20.0, 3: 10.0}
EVEN = {1: 20.0, 2: 20.0, 3: 20.0}
Change = tuple[int, str, str, str]


class Watched:
    """An engine that gets the loads of each minute and a tick every 10 s."""

    def __init__(self, **balance: Any) -> None:
        self.now_ms = START_MS
        self.balance = balance
        settings = Settings(
            cluster=ClusterSettings(name="c"),
            alerts=AlertSettings(out_of_band_s=900, hot_broker_s=300),
            balance=BalanceSettings(**balance),
        )
        self.engine = AlertEngine(settings, lambda: self.now_ms, elapsed_ms=lambda: self.now_ms)
        self.events: list[AlertEvent] = []

    def minutes(
        self, count: int, mb_in: Mapping[int, float | None] | None, statuses: tuple[ThrottleStatus, ...] = ()
    ) -> list[Change]:
        """Let minutes with these loads pass (None: no new ones), and return minute, kind, subject and state."""
        changes = []
        for _ in range(count):
            if mb_in is not None:
                limits = {k: v for k, v in self.balance.items() if k.endswith("_capacity")}
                self.engine.inputs("c").loads = loads(mb_in, tick_ms=self.now_ms, **limits)
            for _ in range(6):
                minute = (self.now_ms - START_MS) // 60_000
                events = self.engine.evaluate("c", self.now_ms, statuses)
                self.events += events
                changes += [(minute, event.kind, event.subject, event.state) for event in events]
                self.now_ms += 10_000
        return changes


# The broker does not answer for some minutes: its load is unknown, and not in band.
def test_an_alert_on_an_unknown_load_neither_resolves_nor_starts_again() -> None:
    unread = {1: None, 2: 20.0, 3: 20.0}
    watched = Watched()
    watched.minutes(16, {1: 40.0, 2: 20.0, 3: 20.0})
    assert watched.minutes(5, unread) == []
    assert watched.minutes(2, EVEN) == [(21, "load_out_of_band", "broker 1", "resolved")]
    # Nor does one minute without a reading start the pending time again.
    assert watched.minutes(10, {1: 40.0, 2: 20.0, 3: 20.0}) == [(23, "load_out_of_band", "broker 1", "pending")]
    assert watched.minutes(1, unread) == []
    assert watched.minutes(6, {1: 40.0, 2: 20.0, 3: 20.0}) == [(38, "load_out_of_band", "broker 1", "firing")]


def test_a_hot_broker_whose_load_cannot_be_read_stays_hot() -> None:
    watched = Watched(network_in_capacity=40 * MB)
    watched.minutes(8, {1: 38.0, 2: 20.0, 3: 20.0})
    assert "hot_broker" in {event.kind for event in watched.engine.active() if event.state == "firing"}
    assert [c for c in watched.minutes(5, {1: None, 2: 20.0, 3: 20.0}) if c[1] == "hot_broker"] == []
    assert [c[1:] for c in watched.minutes(3, EVEN) if c[1] == "hot_broker"] == [("hot_broker", "broker 1", "resolved")]


def test_uneven_loads_are_one_alert_after_a_quarter_of_an_hour() -> None:
    watched = Watched()
    assert watched.minutes(14, UNEVEN) == [(0, "load_out_of_band", "broker 1", "pending")]
    assert watched.minutes(5, UNEVEN) == [(15, "load_out_of_band", "broker 1", "firing")]
    (event,) = watched.engine.active()
    assert [also["subject"] for also in json.loads(event.evidence)["also"]] == ["broker 3"]
    assert watched.minutes(2, EVEN) == [(19, "load_out_of_band", "broker 1", "resolved")]


def test_a_short_peak_raises_nothing() -> None:
    watched = Watched()
    watched.minutes(10, UNEVEN)
    assert [change[3] for change in watched.minutes(1, EVEN)] == ["resolved"]
    assert [change[3] for change in watched.minutes(14, UNEVEN)] == ["pending"]


def test_an_alert_on_uneven_load_continues_as_hot_broker_with_the_severity_of_that() -> None:
    watched = Watched(network_in_capacity=40 * MB)
    watched.minutes(16, UNEVEN)
    assert watched.events[-1].severity == "warning"
    # Limit 32 MB/s.
    changes = watched.minutes(10, {1: 36.0, 2: 20.0, 3: 10.0})
    assert {change[2] for change in changes} == {"broker 1"}
    assert "resolved" not in {change[3] for change in changes}
    (event,) = watched.engine.active()
    evidence = json.loads(event.evidence)
    assert evidence["goes_on_with"] == {"kind": "hot_broker", "subject": "broker 1"}
    assert "above its limit of 32.00 MB/s" in event.summary


def test_a_hot_broker_has_an_alert_of_its_own_beside_one_that_is_only_uneven() -> None:
    watched = Watched(network_in_capacity=200 * MB)
    watched.minutes(16, {1: 20.0, 2: 20.0, 3: 10.0, 4: 20.0})
    assert [event.subject for event in watched.engine.active()] == ["broker 3"]
    watched.minutes(6, {1: 20.0, 2: 170.0, 3: 10.0, 4: 20.0})
    active = {(event.kind, event.subject) for event in watched.engine.active() if event.state == "firing"}
    assert ("hot_broker", "broker 2") in active


def test_a_move_of_the_broker_starts_no_alert_and_ends_none() -> None:
    moving = (status(1, Role.LEADER, 9, 4, partition(), moving_partitions=1),)
    watched = Watched()
    assert not any(change[2] == "broker 1" for change in watched.minutes(20, UNEVEN, moving))
    fired = Watched()
    fired.minutes(16, UNEVEN)
    assert [c for c in fired.minutes(5, EVEN, moving) if c[1] == "load_out_of_band"] == []
    assert [c[3] for c in fired.minutes(2, EVEN) if c[1] == "load_out_of_band"] == ["resolved"]


def test_without_new_minutes_alerts_stay_and_end_with_a_reason_after_a_quarter_of_an_hour() -> None:
    watched = Watched()
    watched.minutes(16, UNEVEN)
    assert watched.minutes(10, None) == []
    changes = watched.minutes(15, None)
    assert [change[1:] for change in changes] == [("load_out_of_band", "broker 1", "resolved")]
    assert "the load of brokers has been unknown" in watched.events[-1].summary


def test_capacity_at_risk_lasts_as_long_as_its_estimate() -> None:
    watched = Watched(propose_every_s=600)
    risk = CapacityRisk("broker 2", 3, "network_out", 118 * MB, 100 * MB)
    watched.engine.update_capacity_risks("c", [risk])
    assert [c[1:] for c in watched.minutes(6, EVEN)] == [
        ("capacity_at_risk", "loss of broker 2", "pending"),
        ("capacity_at_risk", "loss of broker 2", "firing"),
    ]
    # Three estimates are missing: nothing is known, and the alert stays.
    assert watched.minutes(30, EVEN) == []
    watched.engine.update_capacity_risks("c", [])
    assert [c[3] for c in watched.minutes(1, EVEN)] == ["resolved"]


def test_the_same_ticks_bring_the_same_events() -> None:
    first, second = Watched(network_in_capacity=40 * MB), Watched(network_in_capacity=40 * MB)
    for watched in (first, second):
        watched.minutes(16, UNEVEN)
        watched.minutes(6, {1: 36.0, 2: 20.0, 3: 10.0})
        watched.minutes(3, EVEN)
    assert first.events == second.events
    assert first.events[-1].state == "resolved"
