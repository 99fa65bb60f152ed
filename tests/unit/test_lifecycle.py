"""Pending, firing, resolved: when an alert changes, and that neither a crash nor a repetition changes it otherwise."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from alerts.lifecycle import Lifecycle
from alerts.rules import Assessment
from schemas.findings import AlertEvent, Finding, Kind, Severity

KIND = Kind.THROTTLE_BELOW_LEADER_WRITE
SUBJECT = "broker 1 as leader"
OK = Assessment()
HELD = Assessment(held={(KIND, SUBJECT)})
_RANK = {None: 0, "resolved": 0, "pending": 1, "firing": 2}


def bad(hold_s: float = 3.0, throttle: int | None = 100, subject: str = SUBJECT) -> Assessment:
    recommendation = {"throttle_bytes_per_s": throttle}
    return Assessment([Finding(KIND, subject, Severity.WARNING, "too low", {}, recommendation, hold_s)])


class Clock:
    """A clock that every look moves on by a millisecond, or one that stands still."""

    def __init__(self, step_ms: int = 1) -> None:
        self.now_ms, self.step_ms = 0, step_ms

    def __call__(self) -> int:
        self.now_ms += self.step_ms
        return self.now_ms


def lifecycle(resolve_s: float = 5.0, events: Sequence[AlertEvent] = ()) -> Lifecycle:
    made = Lifecycle(resolve_s, Clock(0))
    made.restore(events)
    return made


def run(alerts: Lifecycle, *ticks: tuple[float, Assessment]) -> list[tuple[float, str]]:
    """Second and new state of each event that ticks, given as second and what they say, bring."""
    return [
        (event.tick_ms / 1000, event.state) for s, said in ticks for event in alerts.observe("c", round(s * 1000), said)
    ]


def test_it_is_pending_at_once_and_fires_when_it_has_lasted() -> None:
    ticks = [(s, bad(hold_s=3)) for s in (10, 11, 12, 13, 14)]
    assert run(lifecycle(), *ticks) == [(10, "pending"), (13, "firing")]


def test_without_a_hold_it_fires_on_the_first_tick() -> None:
    assert run(lifecycle(), (10, bad(hold_s=0)), (11, bad(hold_s=0))) == [(10, "pending"), (10, "firing")]


def test_a_switch_while_it_is_pending_fires_it() -> None:
    assert run(lifecycle(), (10, bad(hold_s=3)), (11, bad(hold_s=0))) == [(10, "pending"), (11, "firing")]


def test_it_resolves_when_nothing_was_wrong_for_long_enough() -> None:
    ticks = [(s, OK) for s in (11, 12, 15, 16, 17)]
    assert run(lifecycle(5), (10, bad(0)), *ticks)[2:] == [(16, "resolved")]


def test_a_relapse_starts_the_time_anew() -> None:
    ticks = [(11, OK), (14, OK), (15, bad(0)), (16, OK), (20, OK), (21, OK)]
    assert run(lifecycle(5), (10, bad(0)), *ticks)[2:] == [(21, "resolved")]


def test_what_is_neither_wrong_nor_right_resolves_nothing() -> None:
    ticks = [(11, OK), (15, HELD), (16, OK), (20, OK), (21, OK)]
    assert run(lifecycle(5), (10, bad(0)), *ticks)[2:] == [(21, "resolved")]
    assert run(lifecycle(), (10, HELD)) == []


def test_a_pending_alert_ends_with_the_first_good_tick() -> None:
    assert run(lifecycle(5), (10, bad(3)), (11, OK)) == [(10, "pending"), (11, "resolved")]
    assert run(lifecycle(5), (10, bad(3)), (11, HELD), (13, bad(3))) == [(10, "pending"), (13, "firing")]


def test_what_comes_back_is_a_new_alert() -> None:
    alerts = lifecycle(0)
    first = alerts.observe("c", 1000, bad(0))[0]
    (resolved,) = alerts.observe("c", 2000, OK)
    again = alerts.observe("c", 3000, bad(0))[0]
    assert first.alert_id == resolved.alert_id != again.alert_id


def test_an_alert_is_known_by_cluster_kind_and_subject() -> None:
    alerts = lifecycle(0)
    a, b = (alerts.observe(cluster, 1000, bad(9))[0] for cluster in ("c", "d"))
    (other,) = alerts.observe("c", 1500, Assessment([*bad(9).findings, *bad(9, subject="broker 2 as leader").findings]))
    assert len({a.alert_id, b.alert_id, other.alert_id}) == 3
    # Cluster d stays as it is while c is put right.
    assert {e.alert_id for e in alerts.observe("c", 2000, OK)} == {a.alert_id, other.alert_id}
    assert [e.alert_id for e in alerts.active()] == [b.alert_id]
    assert lifecycle().observe("c", 1000, bad(9))[0].alert_id == a.alert_id


# 100 x 1.15 = 115: the announced throttle is no longer enough by a clear margin above that.
@pytest.mark.parametrize(
    ("announced", "now", "told"),
    [(100, 114, False), (100, 116, True), (100, 50, False), (None, 100, True), (100, None, False)],
)
def test_a_firing_alert_is_told_again_when_its_advice_has_grown(
    announced: int | None, now: int | None, told: bool
) -> None:
    alerts = lifecycle()
    first = run(alerts, (1, bad(0, announced)))
    assert first[1:] == [(1, "firing")]
    update = alerts.observe("c", 2000, bad(0, now))
    assert [event.state for event in update] == (["firing"] if told else [])
    if told:
        assert json.loads(update[0].recommendation)["throttle_bytes_per_s"] == now
        assert run(alerts, (3, bad(0, now))) == []


@pytest.mark.parametrize("ticks", [[bad(0)], [bad(3)], [bad(0), OK], [bad(3), bad(3), OK, bad(0, 400)]])
def test_the_same_ticks_again_change_nothing(ticks: list[Assessment]) -> None:
    alerts = lifecycle(0)
    numbered = list(enumerate(ticks, start=1))
    assert run(alerts, *numbered) != []
    before = alerts.active()
    assert run(alerts, *numbered) == []
    assert alerts.active() == before


def test_events_are_taken_up_in_whatever_order_they_are_read() -> None:
    alerts = lifecycle()
    # Pending and firing carry the same tick, and the clock stood still between them.
    events = [*alerts.observe("c", 1000, bad(0)), *alerts.observe("c", 2000, bad(0, 400))]
    assert [event.state for event in events] == ["pending", "firing", "firing"]
    for order in permutations(events):
        restored = lifecycle(events=order)
        assert restored.active() == events[2:]
        assert run(restored, (3, bad(0, 400))) == []


def test_a_pending_alert_that_is_taken_up_goes_on_counting() -> None:
    events = lifecycle().observe("c", 10_000, bad(3))
    assert run(lifecycle(events=events), (12, bad(3)), (13, bad(3))) == [(13, "firing")]


def test_a_resolved_alert_that_is_taken_up_is_not_active() -> None:
    alerts = lifecycle(0)
    events = [event for ms, said in ((1000, bad(0)), (2000, OK)) for event in alerts.observe("c", ms, said)]
    restored = lifecycle(events=events)
    assert restored.active() == []
    assert run(restored, (2, bad(0)), (3, bad(0))) == [(3, "pending"), (3, "firing")]


SAYINGS = st.sampled_from([bad(0), bad(2), bad(2), bad(2, 400), OK, OK, HELD])
BATCHES = st.lists(st.lists(SAYINGS, min_size=1, max_size=3), min_size=1, max_size=8)


def numbered(batches: list[list[Assessment]]) -> list[list[tuple[int, Assessment]]]:
    """The same batches with a tick each second, from second 1 on."""
    seconds = iter(range(1, 1000))
    return [[(next(seconds) * 1000, said) for said in batch] for batch in batches]


def observed(alerts: Lifecycle, batch: list[tuple[int, Assessment]]) -> list[AlertEvent]:
    return [event for tick_ms, said in batch for event in alerts.observe("c", tick_ms, said)]


def run_with_crashes(batches: list[list[Assessment]], crashes: list[str], resolve_s: float) -> list[AlertEvent]:
    """Events of a run that crashes at batches before or after the commit, and then does the batch again."""
    stored: list[AlertEvent] = []
    alerts = lifecycle(resolve_s)
    for batch, crash in zip(numbered(batches), crashes, strict=False):
        events = observed(alerts, batch)
        if crash == "before the commit":
            alerts = lifecycle(resolve_s, stored)
            events = observed(alerts, batch)
        stored.extend(events)
        if crash == "after the commit":
            alerts = lifecycle(resolve_s, stored[::-1])
            assert observed(alerts, batch) == []
    return stored


CRASHES = st.lists(st.sampled_from(["no", "before the commit", "after the commit"]), min_size=8, max_size=8)


@given(BATCHES, CRASHES)
def test_crashes_and_repeated_batches_change_no_event(batches: list[list[Assessment]], crashes: list[str]) -> None:
    assert run_with_crashes(batches, crashes, 0) == run_with_crashes(batches, ["no"] * 8, 0)


@given(BATCHES, CRASHES)
def test_with_a_resolve_time_a_crash_may_only_make_an_alert_stand_longer(
    batches: list[list[Assessment]], crashes: list[str]
) -> None:
    crashed, straight = (run_with_crashes(batches, c, 3) for c in (crashes, ["no"] * 8))
    for second in range(1, 25):
        assert _RANK[_state_at(crashed, second)] >= _RANK[_state_at(straight, second)]


@given(BATCHES, CRASHES, st.sampled_from([0.0, 3.0]))
def test_an_alert_goes_one_way_and_is_told_once(
    batches: list[list[Assessment]], crashes: list[str], resolve_s: float
) -> None:
    events = run_with_crashes(batches, crashes, resolve_s)
    for alert_id in {event.alert_id for event in events}:
        states = [event.state for event in events if event.alert_id == alert_id]
        # Only an advice that grew by more than 15 % (100 to 400, once) is told again.
        assert states[0] == "pending"
        assert states.count("pending") == 1
        assert states.count("firing") <= 2
        assert "resolved" not in states[:-1]
    assert len({replace(event, event_ms=0) for event in events}) == len(events)


def _state_at(events: list[AlertEvent], second: int) -> str | None:
    states = [event.state for event in events if event.tick_ms <= second * 1000]
    return states[-1] if states else None
