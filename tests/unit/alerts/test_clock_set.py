"""A clock that is set while alerts are pending, firing or gone: they go on as if it had not been."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.cluster_inputs import Dated, fresh
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, ClusterSettings, CollectSettings, Settings
from headroom.schemas.keys import Role
from tests.unit.builders.leader_balance import PLAN_SUMMARY, balance
from tests.unit.builders.throttle_status import partition, status

START_MS = 1_800_000_000_000
TOO_LOW = [status(1, Role.LEADER, 3, 4, partition())]
GOOD = [status(1, Role.LEADER, 9, 4, partition())]
HOLD_S, RESOLVE_S, NO_DATA_S = 3.0, 4.0, 15.0


class SetClock:
    """One machine that collects and judges, a tick a second, whose clock is set."""

    def __init__(self) -> None:
        self.elapsed_ms, self.set_ms = 0, START_MS
        self.events: list[AlertEvent] = []
        self.engine = self.start()

    def start(self) -> AlertEngine:
        """Return an alert engine after a start."""
        alerts = AlertSettings(hold_s=HOLD_S, resolve_s=RESOLVE_S, no_data_s=NO_DATA_S)
        settings = Settings(cluster=ClusterSettings(name="c"), collect=CollectSettings(interval_s=1), alerts=alerts)
        engine = AlertEngine(settings, self.wall_ms, elapsed_ms=lambda: self.elapsed_ms)
        engine.restore(last_of_each(self.events))
        return engine

    def away(self, seconds: int) -> list[str]:
        """The states of the events of so many seconds without ticks."""
        found: list[AlertEvent] = []
        for _ in range(seconds):
            self.elapsed_ms += 1000
            found += self.engine.check_missing_ticks()
        self.events += found
        return [event.state for event in found]

    def wall_ms(self) -> int:
        return self.set_ms + self.elapsed_ms

    def tick(self, statuses: Sequence[ThrottleStatus], seconds: int = 1) -> list[str]:
        """The states of the events of so many seconds."""
        found: list[AlertEvent] = []
        for _ in range(seconds):
            self.elapsed_ms += 1000
            found += self.engine.check_missing_ticks()
            found += self.engine.evaluate("c", self.wall_ms(), statuses)
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
def test_an_alert_that_is_pending_when_the_clock_is_set_fires_and_resolves_in_time(by_s: int) -> None:
    machine = SetClock()
    assert machine.tick(GOOD, 5) == []
    assert machine.tick(TOO_LOW) == ["pending"]
    machine.set_ms += by_s * 1000
    assert machine.tick(TOO_LOW, int(HOLD_S) + 2) == ["firing"]
    assert machine.tick(GOOD, int(RESOLVE_S) + 2) == ["resolved"]


@pytest.mark.parametrize("by_s", [-600, -5, 600])
def test_an_alert_that_fires_when_the_clock_is_set_resolves_in_its_time_and_may_come_back(by_s: int) -> None:
    machine = SetClock()
    machine.tick(TOO_LOW, 6)
    machine.set_ms += by_s * 1000
    assert machine.tick(GOOD, int(RESOLVE_S) + 2) == ["resolved"]
    assert machine.tick(TOO_LOW, int(HOLD_S) + 2) == ["pending", "firing"]


@pytest.mark.parametrize("by_s", [-600, 600])
def test_no_tick_is_missed_when_the_clock_is_set(by_s: int) -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    machine.set_ms += by_s * 1000
    assert machine.engine.check_missing_ticks() == []
    assert machine.tick(GOOD, 30) == []


def test_missing_ticks_are_reported_in_time_though_the_clock_was_set_back() -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    machine.set_ms -= 600_000
    machine.elapsed_ms += 19_000
    assert machine.engine.check_missing_ticks() == []
    machine.elapsed_ms += 1000
    assert [event.state for event in machine.engine.check_missing_ticks()] == ["pending", "firing"]


def test_events_of_an_alert_are_in_order_whatever_the_clock_did() -> None:
    machine = SetClock()
    machine.tick(TOO_LOW, 6)
    machine.set_ms -= 600_000
    machine.tick(GOOD, 10)
    assert [event.state for event in machine.events] == ["pending", "firing", "resolved"]
    times = [event.tick_ms for event in machine.events]
    assert times == sorted(times)
    assert times[1] < times[2]


def test_a_restart_after_the_clock_was_set_back_knows_what_is_over_and_what_is_not() -> None:
    machine = SetClock()
    machine.tick(TOO_LOW, 6)
    machine.set_ms -= 600_000
    machine.engine = machine.start()
    assert machine.tick(TOO_LOW, 10) == []
    assert machine.tick(GOOD, int(RESOLVE_S) + 2) == ["resolved"]
    machine.engine = machine.start()
    assert machine.engine.active() == []
    assert machine.tick(TOO_LOW, int(HOLD_S) + 2) == ["pending", "firing"]


def test_a_second_collector_whose_clock_is_behind_sets_nothing_back() -> None:
    machine = SetClock()
    machine.tick(TOO_LOW, 6)
    before = machine.engine.active()
    for _ in range(20):
        machine.tick(TOO_LOW)
        assert machine.engine.evaluate("c", machine.wall_ms() - 20_000, TOO_LOW) == []
    assert machine.engine.active() == before


def moving(eta_s: float) -> list[ThrottleStatus]:
    return [status(1, Role.LEADER, 9, 4, partition(), eta_s=eta_s)]


def test_nothing_has_lasted_over_a_clock_that_is_set_forward() -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    assert machine.tick(TOO_LOW) == ["pending"]
    machine.set_ms += 600_000
    # Pending since one tick, and as if a second ago: 1 s, 2 s, and 3 s at the third.
    assert [machine.tick(TOO_LOW) for _ in range(3)] == [[], [], ["firing"]]
    # Good for 0 s and 1 s, and then, as if nothing had happened, 2 s, 3 s, 4 s.
    assert machine.tick(GOOD, 2) == []
    machine.set_ms += 600_000
    assert [machine.tick(GOOD) for _ in range(3)] == [[], [], ["resolved"]]


# As the first batch of a start has them: the process was down for ten minutes.
@pytest.mark.parametrize(("set_s", "warnings"), [(0, 0), (3600, 1)])
def test_ticks_of_before_and_after_a_pause_in_one_batch_set_no_clock(
    set_s: int, warnings: int, caplog: pytest.LogCaptureFixture
) -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    before_ms = machine.wall_ms() + 1000
    machine.elapsed_ms += 600_000
    machine.engine = machine.start()
    machine.engine.evaluate("c", before_ms, GOOD)
    machine.set_ms += set_s * 1000
    machine.tick(GOOD)
    assert caplog.text.count("set forward") == warnings


def test_nothing_has_lasted_while_ticks_stayed_away() -> None:
    machine = SetClock()
    assert machine.tick(TOO_LOW) == ["pending"]
    # The silence, of which the last is told in the second of the first tick.
    assert machine.away(600) == ["pending", "firing"]
    # It has lasted for 1 s, 2 s, 3 s; from the second tick on the silence is over, at the sixth for 4 s.
    assert [machine.tick(TOO_LOW) for _ in range(6)] == [[], [], ["firing"], [], [], ["resolved"]]
    assert machine.events[-1].kind == "no_data"


@pytest.mark.parametrize("by_s", [-3600, -600, 600, 3600])
def test_a_clock_that_is_set_makes_no_finish_slip_and_hides_none_that_does(by_s: int) -> None:
    machine = SetClock()
    # Expected at second 101, whatever the clock says then.
    for left_s in range(100, 50, -1):
        assert machine.tick(moving(left_s)) == []
    machine.set_ms += by_s * 1000
    for left_s in range(50, 40, -1):
        assert machine.tick(moving(left_s)) == []
    # 200 s later than was expected; 60 s, or a part of the 100 s that it was to take, would be too little.
    assert machine.tick(moving(240), 5) == ["pending", "firing"]
    late_s = json.loads(machine.events[-1].evidence)["late_s"]
    # It has lasted for 3 s at the fourth tick: 240 s are left then, of which 37 s were expected.
    assert late_s == 203


def test_a_finish_slips_while_ticks_are_missing() -> None:
    machine = SetClock()
    assert machine.tick(moving(100)) == []
    machine.away(600)
    machine.events.clear()
    machine.tick(moving(100), 5)
    # Nothing was copied for 600 s: as late as that, and 1 s for each tick, the fourth of which tells it.
    (slip,) = [e for e in machine.events if (e.kind, e.state) == ("eta_slipping", "firing")]
    assert json.loads(slip.evidence)["late_s"] == 604


def test_leader_balances_from_before_a_clock_step_back_are_not_current() -> None:
    machine = SetClock()
    machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms() + 3_600_000)
    # An hour ahead of every tick: neither wrong nor right.
    assert machine.tick([], 700) == []


def test_a_plan_of_before_the_clock_was_set_back_is_not_taken_for_young() -> None:
    machine = SetClock()
    machine.engine.inputs("c").elections = replace(PLAN_SUMMARY, tick_ms=machine.wall_ms() + 3_600_000)
    machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms())
    machine.tick([])
    assert "batches" not in json.loads(machine.events[0].recommendation)


@pytest.mark.parametrize("by_s", [-3600, 3600])
def test_leader_balances_and_election_plans_shift_with_the_clock_and_expire(by_s: int) -> None:
    machine = SetClock()
    machine.engine.inputs("c").elections = replace(PLAN_SUMMARY, tick_ms=machine.wall_ms())
    machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms())
    assert machine.tick([], 10) == ["pending"]
    machine.set_ms += by_s * 1000
    machine.tick([], 10)
    inputs = machine.engine.inputs("c")
    assert fresh(inputs.balances, machine.wall_ms(), 60.0) is not None
    assert fresh(inputs.elections, machine.wall_ms(), 60.0) is not None
    # Counted 20 s ago by then; 60 s is the most, and the step is told to within an interval.
    machine.tick([], 42)
    assert fresh(inputs.balances, machine.wall_ms(), 60.0) is None


def test_an_imbalance_of_before_a_clock_that_was_set_back_ends_when_new_counts_say_so() -> None:
    machine = SetClock()
    for _ in range(62):
        machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms())
        machine.tick([], 10)
    assert [event.state for event in machine.engine.active()] == ["firing"]
    machine.set_ms -= 3_600_000
    machine.tick([], 10)
    machine.engine.inputs("c").balances = Dated([balance(2, 10)], machine.wall_ms())
    # Well for 4 s.
    assert machine.tick([], 5) == ["resolved"]


@pytest.mark.parametrize("behind_s", [0, 480])
def test_missing_ticks_before_the_first_tick_resolve_with_ticks_whatever_their_clock(behind_s: int) -> None:
    machine = SetClock()
    assert machine.away(100) == ["pending", "firing"]
    machine.engine = machine.start()
    machine.set_ms -= behind_s * 1000
    ticks_ms, machine.set_ms = machine.set_ms, machine.set_ms + behind_s * 1000
    found: list[str] = []
    for _ in range(6):
        machine.elapsed_ms += 1000
        found += [event.state for event in machine.engine.evaluate("c", ticks_ms + machine.elapsed_ms, GOOD)]
    # At the first tick, or, where that seems old, at the second, it begins to be over: 4 s later it is.
    assert found == ["resolved"]


UNCOUNTED_S = 900


def test_alerts_about_leaders_that_nobody_counts_any_more_end_and_say_so() -> None:
    machine = SetClock()
    machine.engine.inputs("c").balances = Dated([balance(2, 10, 3), balance(3, 10, unavailable=2)], machine.wall_ms())
    machine.tick([])
    assert {e.kind for e in machine.engine.active()} == {"leader_imbalance", "preferred_leader_unavailable"}
    # Counted at second 0: young up to second 300, and not at second 301, from which on it is 900 s to second 1201.
    assert machine.tick([], 1199) == []
    assert machine.tick([]) == ["resolved", "resolved"]
    why = "; ended: the balance of leaders has been unknown for 15 min"
    assert all(event.summary.endswith(why) for event in machine.events[-2:])
    assert machine.tick([], 100) == []
    machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms())
    assert machine.tick([]) == ["pending"]


def test_counts_that_come_again_in_time_end_nothing() -> None:
    machine = SetClock()
    for _ in range(3):
        machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms())
        machine.tick([], 900)
    assert "resolved" not in {event.state for event in machine.events}


def test_an_alert_that_is_taken_up_where_nobody_counts_ends_too() -> None:
    machine = SetClock()
    machine.engine.inputs("c").balances = Dated([balance(2, 10, 3)], machine.wall_ms())
    machine.tick([])
    machine.engine = machine.start()
    # From the first tick at second 2 on: at second 902.
    assert machine.tick([], UNCOUNTED_S) == []
    assert machine.tick([]) == ["resolved"]


# One batch has both ticks, and comes again after a crash: the stored events already have what the gap made of them.
def test_ticks_on_both_ends_of_a_gap_that_come_again_after_a_restart_do_not_keep_later_ones_from_counting() -> None:
    machine = SetClock()
    assert machine.tick(TOO_LOW, 5) == ["pending", "firing"]
    before_ms = machine.wall_ms()
    machine.elapsed_ms += 600_000
    machine.engine.update_store_trouble("/data cannot be written")
    assert machine.tick(TOO_LOW)[-2:] == ["pending", "firing"]
    after_ms = machine.wall_ms()
    machine.engine = machine.start()
    machine.engine.update_store_trouble("/data cannot be written")
    for tick_ms in (before_ms, after_ms):
        assert machine.engine.evaluate("c", tick_ms, TOO_LOW) == []
    machine.engine.update_store_trouble(None)
    assert machine.tick(GOOD, 20).count("resolved") >= 2


# The tick is 20 s old, whatever the clock says: a time by the new clock would blame the process that evaluates ticks.
@pytest.mark.parametrize("by_s", [-3600, 3600])
def test_ticks_that_stay_away_are_as_old_as_they_are_though_the_clock_was_set_since(by_s: int) -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    machine.away(10)
    machine.set_ms += by_s * 1000
    assert machine.away(10) == ["pending", "firing"]
    assert machine.events[-1].summary.endswith(" UTC, 20 s ago")


def test_missing_ticks_are_over_when_ticks_are_back_though_their_clock_was_set_back_meanwhile() -> None:
    machine = SetClock()
    machine.tick(GOOD, 5)
    machine.away(600)
    machine.set_ms -= 3_600_000
    # Two ticks show that the clock was set back.
    assert machine.tick(GOOD, 2 + int(RESOLVE_S) + 1) == ["resolved"]


# It was pending when the process ended. A process that ran would have fired it, or found it gone, hours ago.
def test_downtime_of_the_watch_does_not_count_towards_a_hold() -> None:
    machine = SetClock()
    assert machine.tick(TOO_LOW, 2) == ["pending"]
    machine.elapsed_ms += 3 * 3_600_000
    machine.engine = machine.start()
    assert machine.tick(TOO_LOW, int(HOLD_S)) == []
    assert machine.tick(TOO_LOW) == ["firing"]


# The first ticks after a start know no write rate yet.
def test_downtime_does_not_count_towards_a_hold_even_if_the_first_verdict_comes_later() -> None:
    machine = SetClock()
    assert machine.tick(TOO_LOW, 2) == ["pending"]
    machine.elapsed_ms += 3 * 3_600_000
    machine.engine = machine.start()
    machine.tick([status(1, Role.LEADER, 3, None, partition())], 3)
    assert "firing" not in machine.tick(TOO_LOW, int(HOLD_S))
    assert "firing" in machine.tick(TOO_LOW)


def test_a_short_restart_does_not_start_a_pending_time_again() -> None:
    machine = SetClock()
    assert machine.tick(TOO_LOW, 2) == ["pending"]
    machine.elapsed_ms += 20_000
    machine.engine = machine.start()
    assert machine.tick(TOO_LOW) == ["firing"]
