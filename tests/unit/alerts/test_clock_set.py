"""A clock that is set while alerts are pending, firing or gone: they go on as if it had not been."""

from __future__ import annotations

from collections.abc import Sequence

import pytest

from alerts.engine import AlertDesk
from alerts.inputs.throttle_status import SideState
from schemas.alerts import AlertEvent, Role
from schemas.config import AlertSettings, ClusterSettings, Settings
from tests.unit.builders.throttle_status import partition, side

START_MS = 1_800_000_000_000
SHORT = [side(1, Role.LEADER, 3, 4, partition())]
GOOD = [side(1, Role.LEADER, 9, 4, partition())]
HOLD_S, RESOLVE_S, NO_DATA_S = 3.0, 4.0, 15.0


class SetClock:
    """One machine that collects and judges, a tick a second, whose clock is set."""

    def __init__(self) -> None:
        self.elapsed_ms, self.set_ms = 0, START_MS
        self.events: list[AlertEvent] = []
        self.desk = self.start()

    def start(self) -> AlertDesk:
        """A desk as it is after a start."""
        alerts = AlertSettings(hold_s=HOLD_S, resolve_s=RESOLVE_S, no_data_s=NO_DATA_S)
        settings = Settings(cluster=ClusterSettings(name="c"), alerts=alerts)
        desk = AlertDesk(settings, self.wall_ms, elapsed_ms=lambda: self.elapsed_ms)
        desk.restore(last_of_each(self.events))
        return desk

    def wall_ms(self) -> int:
        return self.set_ms + self.elapsed_ms

    def tick(self, sides: Sequence[SideState], seconds: int = 1) -> list[str]:
        """The states of the events of so many seconds."""
        found: list[AlertEvent] = []
        for _ in range(seconds):
            self.elapsed_ms += 1000
            found += self.desk.silence()
            found += self.desk.observe("c", self.wall_ms(), sides)
        self.events += found
        return [event.state for event in found]


def last_of_each(events: Sequence[AlertEvent]) -> list[AlertEvent]:
    """Of each alert the first and the last event by their times, as they are read back from the table."""
    kept: list[AlertEvent] = []
    for alert_id in {event.alert_id for event in events}:
        of_alert = sorted((e for e in events if e.alert_id == alert_id), key=lambda e: (e.tick_ms, e.state == "firing"))
        kept += [of_alert[0], of_alert[-1]]
    return kept


@pytest.mark.parametrize("by_s", [-600, -5, 5, 600])
def test_what_begins_before_the_clock_is_set_fires_and_resolves_in_its_time(by_s: int) -> None:
    machine = SetClock()
    assert machine.tick(GOOD, 5) == []
    assert machine.tick(SHORT) == ["pending"]
    machine.set_ms += by_s * 1000
    assert machine.tick(SHORT, int(HOLD_S) + 2) == ["firing"]
    assert machine.tick(GOOD, int(RESOLVE_S) + 2) == ["resolved"]


@pytest.mark.parametrize("by_s", [-600, -5, 600])
def test_an_alert_that_fires_when_the_clock_is_set_resolves_in_its_time_and_may_come_back(by_s: int) -> None:
    machine = SetClock()
    machine.tick(SHORT, 6)
    machine.set_ms += by_s * 1000
    assert machine.tick(GOOD, int(RESOLVE_S) + 2) == ["resolved"]
    assert machine.tick(SHORT, int(HOLD_S) + 2) == ["pending", "firing"]


@pytest.mark.parametrize("by_s", [-600, 600])
def test_no_tick_is_missed_when_the_clock_is_set(by_s: int) -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    machine.set_ms += by_s * 1000
    assert machine.desk.silence() == []
    assert machine.tick(GOOD, 30) == []


def test_ticks_that_stay_away_are_told_in_time_though_the_clock_was_set_back() -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    machine.set_ms -= 600_000
    machine.elapsed_ms += 19_000
    assert machine.desk.silence() == []
    machine.elapsed_ms += 1000
    assert [event.state for event in machine.desk.silence()] == ["pending", "firing"]


def test_events_of_an_alert_are_in_order_whatever_the_clock_did() -> None:
    machine = SetClock()
    machine.tick(SHORT, 6)
    machine.set_ms -= 600_000
    machine.tick(GOOD, 10)
    assert [event.state for event in machine.events] == ["pending", "firing", "resolved"]
    times = [event.tick_ms for event in machine.events]
    assert times == sorted(times)
    assert times[1] < times[2]


def test_a_restart_after_the_clock_was_set_back_knows_what_is_over_and_what_is_not() -> None:
    machine = SetClock()
    machine.tick(SHORT, 6)
    machine.set_ms -= 600_000
    machine.desk = machine.start()
    assert machine.tick(SHORT, 10) == []
    assert machine.tick(GOOD, int(RESOLVE_S) + 2) == ["resolved"]
    machine.desk = machine.start()
    assert machine.desk.active() == []
    assert machine.tick(SHORT, int(HOLD_S) + 2) == ["pending", "firing"]


def test_a_second_collector_whose_clock_is_behind_sets_nothing_back() -> None:
    machine = SetClock()
    machine.tick(SHORT, 6)
    before = machine.desk.active()
    for _ in range(20):
        machine.tick(SHORT)
        assert machine.desk.observe("c", machine.wall_ms() - 20_000, SHORT) == []
    assert machine.desk.active() == before
