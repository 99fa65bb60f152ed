"""Pending, firing, resolved: when an alert changes, and that neither a crash nor a repetition changes it otherwise."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import replace
from itertools import permutations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from headroom.alerts.evidence.evidence import Evidence, EvidenceCause
from headroom.alerts.finding import Finding
from headroom.alerts.grouping import THROTTLE_KINDS
from headroom.alerts.lifecycle import FLAP_MS, Lifecycle, known_events
from headroom.alerts.recommendations.recommendation import Action, Advice, BrokerThrottle
from headroom.alerts.rules.no_ticks import TICKS
from headroom.alerts.rules.rule import Assessment
from headroom.schemas.alerts import AlertEvent, AlertKind, Severity, Verdict
from headroom.schemas.keys import Role

KIND = AlertKind.THROTTLE_BELOW_LEADER_WRITE
SUBJECT = "broker 1 as leader"
OK = Assessment()
KEPT_FIRING = Assessment(keep_firing={(KIND, SUBJECT)})
_RANK = {None: 0, "resolved": 0, "pending": 1, "firing": 2}


def bad(
    hold_s: float = 3.0, throttle: int | None = 100, subject: str = SUBJECT, severity: Severity = Severity.WARNING
) -> Assessment:
    recommendation = Advice(throttle_bytes_per_s=throttle)
    return Assessment([Finding(KIND, subject, severity, "too low", Evidence(), recommendation, hold_s)])


class Clock:
    """A clock that every look moves on by a millisecond, or one that stands still."""

    def __init__(self, step_ms: int = 1) -> None:
        self.now_ms, self.step_ms = 0, step_ms

    def __call__(self) -> int:
        self.now_ms += self.step_ms
        return self.now_ms


def lifecycle(resolve_s: float = 5.0, events: Sequence[AlertEvent] = (), cluster: str = "c") -> Lifecycle:
    made = Lifecycle(cluster, resolve_s, Clock(0))
    made.restore(events)
    return made


def run(alerts: Lifecycle, *ticks: tuple[float, Assessment]) -> list[tuple[float, str]]:
    """Second and new state of each event that ticks, given as second and what they say, bring."""
    return [(event.tick_ms / 1000, event.state) for s, said in ticks for event in alerts.apply(round(s * 1000), said)]


def test_it_is_pending_at_once_and_fires_when_it_has_lasted() -> None:
    ticks = [(s, bad(hold_s=3)) for s in (10, 11, 12, 13, 14)]
    assert run(lifecycle(), *ticks) == [(10, "pending"), (13, "firing")]


def test_without_a_hold_it_fires_on_the_first_tick() -> None:
    assert run(lifecycle(), (10, bad(hold_s=0)), (11, bad(hold_s=0))) == [(10, "pending"), (10, "firing")]


def of_broker(kind: AlertKind) -> Assessment:
    down = "broker 4 down"
    found = Finding(
        kind, "broker 4", Severity.WARNING, kind.value, Evidence(), Advice(), 0.0, cause=down, continues=(down,)
    )
    return Assessment([found])


def test_one_alert_lasts_as_long_as_its_broker_is_down_and_tells_what_it_is_about_by_now() -> None:
    alerts = lifecycle()
    first, rest = of_broker(AlertKind.ISR_SHRINK_DURING_MOVE), of_broker(AlertKind.UNDER_REPLICATED)
    events = [e for s in range(30) for e in alerts.apply(s * 1000, first if s < 10 else rest if s < 20 else OK)]
    reported = [(e.tick_ms // 1000, e.state, e.summary) for e in events]
    assert reported == [
        (0, "pending", "isr_shrink_during_move"),
        (0, "firing", "isr_shrink_during_move"),
        # It has lasted for five seconds: not every flicker is told.
        (15, "firing", "under_replicated"),
        (25, "resolved", "under_replicated"),
    ]
    assert len({e.alert_id for e in events}) == 1


def test_a_switch_while_it_is_pending_fires_it() -> None:
    assert run(lifecycle(), (10, bad(hold_s=3)), (11, bad(hold_s=0))) == [(10, "pending"), (11, "firing")]


def test_it_resolves_when_nothing_was_wrong_for_long_enough() -> None:
    ticks = [(s, OK) for s in (11, 12, 15, 16, 17)]
    assert run(lifecycle(5), (10, bad(0)), *ticks)[2:] == [(16, "resolved")]


def test_a_relapse_restarts_the_resolve_time() -> None:
    ticks = [(11, OK), (14, OK), (15, bad(0)), (16, OK), (20, OK), (21, OK)]
    assert run(lifecycle(5), (10, bad(0)), *ticks)[2:] == [(21, "resolved")]


def test_a_held_alert_does_not_resolve() -> None:
    ticks = [(11, OK), (15, KEPT_FIRING), (16, OK), (20, OK), (21, OK)]
    assert run(lifecycle(5), (10, bad(0)), *ticks)[2:] == [(21, "resolved")]
    assert run(lifecycle(), (10, KEPT_FIRING)) == []


def test_a_pending_alert_ends_with_the_first_good_tick() -> None:
    assert run(lifecycle(5), (10, bad(3)), (11, OK)) == [(10, "pending"), (11, "resolved")]
    assert run(lifecycle(5), (10, bad(3)), (11, KEPT_FIRING), (13, bad(3))) == [(10, "pending"), (13, "firing")]


def test_a_finding_that_returns_after_its_resolution_is_a_new_alert() -> None:
    alerts = lifecycle(0)
    first = alerts.apply(1000, bad(0))[0]
    (resolved,) = alerts.apply(2000, OK)
    again = alerts.apply(3000, bad(0))[0]
    assert first.alert_id == resolved.alert_id != again.alert_id


def test_an_alert_is_known_by_cluster_kind_and_subject() -> None:
    alerts, of_d = lifecycle(0), lifecycle(0, cluster="d")
    (a,), (b,) = (of_cluster.apply(1000, bad(9)) for of_cluster in (alerts, of_d))
    (other,) = alerts.apply(1500, Assessment([*bad(9).findings, *bad(9, subject="broker 2 as leader").findings]))
    assert len({a.alert_id, b.alert_id, other.alert_id}) == 3
    assert {e.alert_id for e in alerts.apply(2000, OK)} == {a.alert_id, other.alert_id}
    assert alerts.active() == []
    assert lifecycle().apply(1000, bad(9))[0].alert_id == a.alert_id


# 100 x 1.15 = 115: the announced throttle is no longer enough by a clear margin above that.
@pytest.mark.parametrize(
    ("announced", "now", "reported"),
    [(100, 114, False), (100, 116, True), (100, 50, False), (None, 100, True), (100, None, False)],
)
def test_a_firing_alert_is_announced_again_if_its_throttle_grows_by_more_than_15_percent(
    announced: int | None, now: int | None, reported: bool
) -> None:
    alerts = lifecycle()
    first = run(alerts, (1, bad(0, announced)))
    assert first[1:] == [(1, "firing")]
    update = alerts.apply(2000, bad(0, now))
    assert [event.state for event in update] == (["firing"] if reported else [])
    if reported:
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


def test_events_are_restored_in_whatever_order_they_are_read() -> None:
    alerts = lifecycle()
    # Pending and firing carry the same tick, and the clock stood still between them.
    events = [*alerts.apply(1000, bad(0)), *alerts.apply(2000, bad(0, 400))]
    assert [event.state for event in events] == ["pending", "firing", "firing"]
    for order in permutations(events):
        restored = lifecycle(events=order)
        assert restored.active() == events[2:]
        assert run(restored, (3, bad(0, 400))) == []


def test_the_hold_of_a_restored_pending_alert_continues() -> None:
    events = lifecycle().apply(10_000, bad(3))
    assert run(lifecycle(events=events), (12, bad(3)), (13, bad(3))) == [(13, "firing")]


def test_a_restored_resolved_alert_is_not_active() -> None:
    alerts = lifecycle(0)
    events = [event for ms, said in ((1000, bad(0)), (2000, OK)) for event in alerts.apply(ms, said)]
    restored = lifecycle(events=events)
    assert restored.active() == []
    assert run(restored, (2, bad(0)), (3, bad(0))) == [(3, "pending"), (3, "firing")]


ASSESSMENTS = st.sampled_from([bad(0), bad(2), bad(2), bad(2, 400), OK, OK, KEPT_FIRING])
BATCHES = st.lists(st.lists(ASSESSMENTS, min_size=1, max_size=3), min_size=1, max_size=8)


def numbered(batches: list[list[Assessment]]) -> list[list[tuple[int, Assessment]]]:
    """The same batches with a tick each second, from second 1 on."""
    seconds = iter(range(1, 1000))
    return [[(next(seconds) * 1000, said) for said in batch] for batch in batches]


def applied(alerts: Lifecycle, batch: list[tuple[int, Assessment]]) -> list[AlertEvent]:
    return [event for tick_ms, said in batch for event in alerts.apply(tick_ms, said)]


def run_with_crashes(batches: list[list[Assessment]], crashes: list[str], resolve_s: float) -> list[AlertEvent]:
    """Events of a run that crashes at batches before or after the commit, and then does the batch again."""
    stored: list[AlertEvent] = []
    alerts = lifecycle(resolve_s)
    for batch, crash in zip(numbered(batches), crashes, strict=False):
        events = applied(alerts, batch)
        if crash == "before the commit":
            alerts = lifecycle(resolve_s, stored)
            events = applied(alerts, batch)
        stored.extend(events)
        if crash == "after the commit":
            alerts = lifecycle(resolve_s, stored[::-1])
            assert applied(alerts, batch) == []
    return stored


CRASHES = st.lists(st.sampled_from(["no", "before the commit", "after the commit"]), min_size=8, max_size=8)


@given(BATCHES, CRASHES)
def test_crashes_and_repeated_batches_change_no_event(batches: list[list[Assessment]], crashes: list[str]) -> None:
    assert run_with_crashes(batches, crashes, 0) == run_with_crashes(batches, ["no"] * 8, 0)


@given(BATCHES, CRASHES)
def test_with_a_resolve_time_a_crash_can_only_keep_an_alert_active_longer(
    batches: list[list[Assessment]], crashes: list[str]
) -> None:
    crashed, straight = (run_with_crashes(batches, c, 3) for c in (crashes, ["no"] * 8))
    for second in range(1, 25):
        assert _RANK[_state_at(crashed, second)] >= _RANK[_state_at(straight, second)]


@given(BATCHES, CRASHES, st.sampled_from([0.0, 3.0]))
def test_an_alert_passes_through_its_states_once_and_in_order(
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


@pytest.mark.parametrize(
    ("before", "now", "reported"),
    [
        (Severity.WARNING, Severity.CRITICAL, True),
        (Severity.INFO, Severity.WARNING, True),
        (Severity.WARNING, Severity.WARNING, False),
        (Severity.CRITICAL, Severity.WARNING, False),
    ],
)
def test_a_firing_alert_is_announced_again_only_if_its_severity_rises(
    before: Severity, now: Severity, reported: bool
) -> None:
    alerts = lifecycle()
    run(alerts, (1, bad(0, severity=before)))
    update = alerts.apply(2000, bad(0, severity=now))
    assert [(event.state, event.severity) for event in update] == ([("firing", now.value)] if reported else [])
    assert run(alerts, (3, bad(0, severity=now))) == []


def test_a_rise_in_severity_while_pending_gives_no_event_and_counts_when_it_fires() -> None:
    alerts = lifecycle()
    assert run(alerts, (1, bad(3)), (2, bad(3, severity=Severity.CRITICAL))) == [(1, "pending")]
    assert [e.severity for e in alerts.apply(4000, bad(3, severity=Severity.CRITICAL))] == ["critical"]


def clear_s(alerts: Lifecycle, from_s: int) -> tuple[int, int]:
    """Seconds of good ticks that an alert which fires now takes to resolve, and the second at which it does."""
    (*_, fired) = run(alerts, (from_s, bad(0)))
    assert fired == (from_s, "firing")
    for second in range(from_s + 1, from_s + 2000):
        if run(alerts, (second, OK)):
            return second - from_s - 1, second
    raise AssertionError("it never resolves")


def test_the_resolve_time_of_a_flapping_alert_doubles_each_time() -> None:
    alerts, times, second = lifecycle(5), [], 0
    for _ in range(6):
        took_s, second = clear_s(alerts, second + 1)
        times.append(took_s)
    assert times == [5, 10, 20, 40, 80, 160]


def test_a_doubled_resolve_time_is_limited_by_the_flapping_window() -> None:
    flap_s = FLAP_MS // 1000
    alerts = lifecycle(400)
    first_s, second = clear_s(alerts, 1)
    again_s, second = clear_s(alerts, second + 1)
    # When it is over the first one no longer counts: it is well for 800 s, or until 900 s after the first one fired.
    assert (first_s, again_s) == (400, flap_s + 2 - (1 + 400 + 1 + 1) - 1)
    assert clear_s(lifecycle(2 * flap_s - 500), 1)[0] == 2 * flap_s - 500


def test_the_resolve_time_is_reset_after_the_flapping_window() -> None:
    alerts = lifecycle(5)
    clear_s(alerts, 1)
    assert clear_s(alerts, 2 + FLAP_MS // 1000)[0] == 5


def test_a_flapping_subject_does_not_delay_the_resolution_of_others() -> None:
    alerts = lifecycle(5)
    other = bad(0, subject="broker 2 as leader")
    run(alerts, (1, other), (2, OK), (7, OK))
    assert clear_s(alerts, 8)[0] == 5


def test_how_often_it_came_back_is_known_after_a_restart() -> None:
    alerts, events, second = lifecycle(5), [], 0
    for _ in range(3):
        events += applied(alerts, [(second * 1000, bad(0)), *((s * 1000, OK) for s in range(second + 1, second + 60))])
        second += 60
    assert clear_s(lifecycle(5, events[::-1]), second)[0] == clear_s(alerts, second)[0] == 40


def test_an_alert_that_is_announced_again_does_not_count_as_flapping() -> None:
    alerts = lifecycle(5)
    run(alerts, (1, bad(0, 100)), (2, bad(0, 400)), (3, bad(0, 1600)))
    assert run(alerts, (4, OK), (8, OK), (9, OK)) == [(9, "resolved")]
    # It began to fire at second 1, however late it was told again: at second 950 that is long ago.
    announced_again = lifecycle(5)
    run(announced_again, (1, bad(0, 100)), (800, bad(0, 400)), (801, OK), (806, OK))
    assert clear_s(announced_again, 950)[0] == 5


def test_without_a_resolve_time_a_flapping_alert_resolves_at_once() -> None:
    alerts = lifecycle(0.0)
    for tick_ms in range(100, 230_000, 200):
        alerts.apply(tick_ms, bad(0))
        (event,) = alerts.apply(tick_ms + 100, OK)
        assert event.state == "resolved"


def test_a_tick_that_comes_late_neither_begins_the_time_of_being_well_nor_ends_it() -> None:
    assert run(lifecycle(5), (1, bad(0)), (9, bad(0)), (4, OK), (10, OK), (14, OK))[2:] == []
    assert run(lifecycle(5), (1, bad(0)), (9, OK), (4, bad(0)), (14, OK))[2:] == [(14, "resolved")]


def caused(*subjects: str, severity: Severity = Severity.WARNING) -> Assessment:
    """Findings of one cause, the first one the weightiest; no rates, with which an alert goes on."""
    found = [
        replace(bad(0, subject=s, severity=severity).findings[0], kind=AlertKind.NO_DATA, cause="it") for s in subjects
    ]
    return Assessment([replace(f, weight=-float(n)) for n, f in enumerate(found)])


def test_one_cause_has_one_alert_that_keeps_its_subject_while_it_is_found() -> None:
    alerts = lifecycle()
    said = [caused("a", "b"), caused("b", "a"), caused("b", "a", "c")]
    events = [e for second, ticks in enumerate(said, 1) for e in alerts.apply(second * 1000, ticks)]
    assert [(e.subject, e.state) for e in events] == [("a", "pending"), ("a", "firing")]
    assert json.loads(events[-1].evidence)["also"][0]["subject"] == "b"
    # The lead is well again, and the cause is not.
    assert [e.subject for e in alerts.apply(4000, caused("b"))] == ["b", "b"]


def test_an_alert_is_announced_again_if_a_grouped_finding_is_more_severe() -> None:
    alerts = lifecycle()
    alerts.apply(1000, caused("a"))
    graver = Assessment([*caused("a").findings, *caused("b", severity=Severity.CRITICAL).findings])
    assert [(e.subject, e.severity) for e in alerts.apply(2000, graver)] == [("a", "critical")]


def ranked(*found: tuple[str, int, float]) -> Assessment:
    """Findings of one cause, each with its subject, precedence and hold; no rates, with which an alert goes on."""
    of_cause = {"kind": AlertKind.NO_DATA, "cause": "it"}
    return Assessment([replace(bad(h, subject=s).findings[0], **of_cause, precedence=p) for s, p, h in found])


def test_a_cause_of_higher_precedence_replaces_a_pending_alert_when_that_is_due() -> None:
    alerts = lifecycle()
    both = ranked(("consequence", 1, 3), ("cause", 0, 30))
    reported = [ranked(("consequence", 1, 3)), both, both, both, both]
    events = [e for second, said in enumerate(reported, 1) for e in alerts.apply(second * 1000, said)]
    # Nobody waits longer for it than for the one that was there first.
    assert [(e.tick_ms, e.subject, e.state) for e in events] == [
        (1000, "consequence", "pending"),
        (4000, "cause", "pending"),
        (4000, "cause", "firing"),
        (4000, "consequence", "resolved"),
    ]
    assert [also["subject"] for also in json.loads(events[2].evidence)["also"]] == ["consequence"]
    assert applied(alerts, [(4000, both), (5000, both)]) == []
    assert applied(lifecycle(events=events), [(4000, both), (5000, both)]) == []


def test_a_cause_of_higher_precedence_replaces_an_alert_only_while_it_is_found() -> None:
    alerts = lifecycle()
    said = [ranked(("consequence", 1, 3)), ranked(("consequence", 1, 3), ("cause", 0, 30))] * 2
    assert [(s, state) for s, state in run(alerts, *enumerate([*said, ranked(("consequence", 1, 3))], 1))] == [
        (1, "pending"),
        (4, "pending"),
        (4, "firing"),
        (4, "resolved"),
        # It has lasted since second 1, and nothing stands for it any more.
        (5, "pending"),
        (5, "firing"),
    ]


def test_a_firing_alert_is_not_replaced_by_one_of_higher_precedence() -> None:
    alerts = lifecycle()
    alerts.apply(1000, ranked(("consequence", 1, 0)))
    assert alerts.apply(2000, ranked(("consequence", 1, 0), ("cause", 0, 0))) == []


# The lead of tick 2 is resolved at tick 3: when tick 2 comes again, another of its cause must not take its place.
def test_a_tick_that_comes_again_starts_no_alert_of_another_one_of_its_cause() -> None:
    alerts = lifecycle(0)
    batch = [(1000, caused("c")), (2000, caused("a", "b", "c")), (3000, OK)]
    events = applied(alerts, batch)
    assert {e.subject for e in events} == {"c"}
    assert applied(alerts, batch) == applied(lifecycle(0, events), batch) == []


def lost(affected: int, why: str = "fallen_behind", hold_s: float = 60, action: str = "inspect_broker") -> Finding:
    """Broker 3 has so many replicas out of the ISR."""
    cause = "broker 3" if why == "fallen_behind" else "broker 3 down"
    evidence = Evidence(broker_id=3, cause=EvidenceCause(why))
    return Finding(
        AlertKind.UNDER_REPLICATED,
        "broker 3",
        Severity.WARNING,
        f"{affected} lost",
        evidence,
        Advice(Action(action)),
        hold_s,
        cause=cause,
        precedence=2,
        affected=affected,
    )


def stalled(affected: int) -> Finding:
    """As many adding replicas of broker 3, which is down, copy nothing."""
    whom = {
        "kind": AlertKind.REASSIGNMENT_STALLED,
        "subject": "broker 3 as destination",
        "precedence": 0,
        "hold_s": 30.0,
    }
    return replace(lost(affected, "broker_down"), **whom)  # type: ignore[arg-type]


def fired(alerts: Lifecycle, *ticks: tuple[int, list[Finding]]) -> list[tuple[int, str, str]]:
    """Second, subject and summary of what is announced, also again."""
    events = [e for second, found in ticks for e in alerts.apply(second * 1000, Assessment(found))]
    return [(e.tick_ms // 1000, e.subject, e.summary) for e in events if e.state == "firing"]


# One replica has lagged for a quarter of an hour; then the broker dies, with 300 replicas of which 40 move.
def test_an_old_small_alert_does_not_hide_a_larger_fault() -> None:
    alerts = lifecycle()
    small = [(second, [lost(1)]) for second in range(0, 901, 10)]
    assert fired(alerts, *small) == [(60, "broker 3", "1 lost")]
    dead = [(second, [lost(300, "broker_down"), stalled(40)]) for second in range(910, 5000, 10)]
    assert fired(alerts, *dead) == [(940, "broker 3 as destination", "40 lost")]


def test_without_a_move_a_small_alert_escalates_when_its_fault_grows() -> None:
    alerts = lifecycle()
    fired(alerts, *[(second, [lost(1)]) for second in range(0, 901, 10)])
    dead = [(second, [lost(300, "broker_down", action="restore_broker")]) for second in range(910, 5000, 10)]
    # As long as an alert of its kind would wait, 30 s at most.
    assert fired(alerts, *dead) == [(940, "broker 3", "300 lost")]
    (event,) = alerts.active()
    assert json.loads(event.evidence)["escalation"] == 1
    assert json.loads(event.evidence)["escalated_tick_ms"] == 940_000
    assert json.loads(event.evidence)["escalated_event_ms"] == event.event_ms


@pytest.mark.parametrize(("now", "reported"), [(5, False), (6, True), (300, True)])
def test_an_alert_is_announced_again_if_its_replicas_double_and_rise_by_five(now: int, reported: bool) -> None:
    alerts = lifecycle()
    fired(alerts, (0, [lost(1, hold_s=0)]))
    assert fired(alerts, *[(s, [lost(now, hold_s=0)]) for s in range(1, 20)]) == (
        [(6, "broker 3", f"{now} lost")] if reported else []
    )


def test_an_alert_that_spreads_briefly_is_not_announced_again() -> None:
    alerts = lifecycle()
    fired(alerts, (0, [lost(1, hold_s=0)]))
    assert fired(alerts, *[(s, [lost(300 if s % 4 else 1, hold_s=0)]) for s in range(1, 60)]) == []


def test_an_alert_is_announced_again_if_its_action_changes_but_not_if_it_is_unknown() -> None:
    def advised(second: int, action: str) -> tuple[int, list[Finding]]:
        return second, [replace(lost(1, hold_s=0), recommendation=Advice(Action(action)))]

    alerts = lifecycle()
    assert len(fired(alerts, advised(0, "raise_throttle"))) == 1
    assert fired(alerts, *[advised(s, "none") for s in range(1, 30)]) == []
    assert fired(alerts, *[advised(s, "reduce_move") for s in range(30, 60)]) == [(35, "broker 3", "1 lost")]
    (event,) = alerts.active()
    assert json.loads(event.recommendation)["action"] == "reduce_move"
    # What to do is another matter than what is the matter.
    assert "escalation" not in json.loads(event.evidence)


# What is no worse than before calls nobody who has been called.
@pytest.mark.parametrize(
    ("before", "now", "escalations"), [("unknown", "not_fetching", 0), ("unknown", "no_leader", 1)]
)
def test_a_changed_cause_is_announced_and_escalates_if_it_is_more_severe(
    before: str, now: str, escalations: int
) -> None:
    def of(second: int, why: str) -> tuple[int, list[Finding]]:
        return second, [replace(lost(1, hold_s=0), evidence=Evidence(broker_id=3, cause=EvidenceCause(why)))]

    alerts = lifecycle()
    fired(alerts, of(0, before))
    assert fired(alerts, *[of(s, now) for s in range(1, 20)]) == [(6, "broker 3", "1 lost")]
    (event,) = alerts.active()
    assert json.loads(event.evidence).get("escalation", 0) == escalations


def test_another_broker_that_joins_a_firing_alert_is_announced_after_its_hold() -> None:
    def blind(broker: int) -> Finding:
        evidence = Evidence(broker_id=broker)
        return replace(lost(0), subject=f"broker {broker}", evidence=evidence, cause="no data", hold_s=15)

    alerts = lifecycle()
    assert fired(alerts, *[(s, [blind(2)]) for s in range(0, 100, 5)]) == [(15, "broker 2", "0 lost")]
    both = fired(alerts, *[(s, [blind(2), blind(5)]) for s in range(100, 200, 5)])
    # 15 s of its own, and 15 more since it belongs to what is told.
    assert both == [(130, "broker 2", "0 lost; of the same cause: broker 5")]


def test_a_finding_whose_cause_changes_restarts_its_hold() -> None:
    # Its one replica has no leader, as another alert says; then its broker is restarted, and down for a moment.
    leaderless = replace(lost(1), cause="no leader", hold_of="no leader", hold_s=20)
    stalled = replace(lost(1), kind=AlertKind.REASSIGNMENT_STALLED, subject="broker 2", cause="no leader", hold_s=0)
    down = replace(lost(1), cause="broker 3 down", hold_s=20)
    alerts = lifecycle()
    assert len(fired(alerts, *[(s, [stalled, leaderless]) for s in range(40)])) == 1
    assert fired(alerts, *[(s, [stalled, down]) for s in range(40, 60)]) == []
    assert [s for s, *_ in fired(alerts, *[(s, [stalled, down]) for s in range(60, 90)])] == [60]


def test_a_second_broker_whose_rate_the_advice_raises_already_gives_no_event() -> None:
    def low(broker: int, *raised: int, required: float = 2.9) -> Finding:
        per_broker = [BrokerThrottle(b, Role.LEADER, Verdict.LOSING, 2.4, None, 3.5) for b in raised]
        evidence = Evidence(broker_id=broker, role=Role.LEADER, required_bytes_per_s=required)
        recommendation = Advice(Action.RAISE_THROTTLE, None, 3.5, per_broker=per_broker)
        about = replace(lost(0), kind=KIND, subject=f"broker {broker} as leader", severity=Severity.WARNING)
        made = replace(about, evidence=evidence, recommendation=recommendation, joins=False)
        return replace(made, cause="switch from broker 3", hold_s=0)

    first, second = low(4, 1, 4), low(1, 1, 4)
    alerts = lifecycle()
    ticks = [[first], *[[first, second]] * 40]
    assert [subject for _, subject, _ in fired(alerts, *enumerate(ticks))] == [first.subject]
    # The first is neither wrong nor right for a while; the second still has the remedy that was told.
    held = Assessment([second], {(KIND, first.subject)})
    assert run(alerts, *[(s, held) for s in range(50, 60)]) == []
    # What it asks for by now is more than was told.
    assert [s for s, *_ in fired(alerts, (60, [first, low(1, 1, 4, required=3.6)]))] == [60]


def test_a_rate_that_was_raised_as_announced_and_is_lowered_again_is_news_also_after_a_restart() -> None:
    def low(broker: int, in_force: dict[int, float]) -> Finding:
        per_broker = [
            BrokerThrottle(b, Role.LEADER, Verdict.LOSING, rate, None, max(3.5, rate)) for b, rate in in_force.items()
        ]
        evidence = Evidence(
            broker_id=broker, role=Role.LEADER, required_bytes_per_s=2.9, throttle_bytes_per_s=in_force[broker]
        )
        recommendation = Advice(Action.RAISE_THROTTLE, None, 3.5, per_broker=per_broker)
        about = replace(lost(0), kind=KIND, subject=f"broker {broker} as leader", severity=Severity.WARNING)
        return replace(about, evidence=evidence, recommendation=recommendation, joins=False, cause="throttle", hold_s=0)

    both = {1: 2.4, 4: 2.4}
    stored: list[AlertEvent] = []

    def ticks(alerts: Lifecycle, first: int, count: int, in_force: dict[int, float]) -> list[tuple[int, str]]:
        found = Assessment([low(broker, in_force) for broker in in_force if in_force[broker] < 2.9])
        events = [e for s in range(first, first + count) for e in alerts.apply(s * 1000, found)]
        stored.extend(events)
        return [(e.tick_ms // 1000, e.subject) for e in events if e.state == "firing"]

    alerts = lifecycle()
    # One alert names both; then somebody raises the rate of broker 1 alone. It is told once that this is done.
    (fired_first,) = ticks(alerts, 0, 10, both)
    about = fired_first[1]
    raised, kept = (1, 4) if about == "broker 4 as leader" else (4, 1)
    assert ticks(alerts, 10, 30, {raised: 3.5, kept: 2.4}) == [(15, about)]
    # It is lowered again as far as it had been: news, whoever judges.
    for again in (alerts, lifecycle(events=list(stored))):
        assert [second for second, _ in ticks(again, 40, 10, both)] == [40]


@given(BATCHES, st.integers(0, 20), st.integers(1, 5000), st.sampled_from([0.0, 3.0]))
def test_a_clock_shift_over_a_gap_does_not_change_events(
    batches: list[list[Assessment]], place: int, gap_s: int, resolve_s: float
) -> None:
    ticks = [tick for batch in numbered(batches) for tick in batch]
    straight, moved = lifecycle(resolve_s), lifecycle(resolve_s)
    for number, (tick_ms, said) in enumerate(ticks):
        if number == place:
            moved.shift_clock(gap_s * 1000)
        at_ms = tick_ms + (gap_s * 1000 if number >= place else 0)
        expected = [(event.state, event.subject) for event in straight.apply(tick_ms, said)]
        assert [(event.state, event.subject) for event in moved.apply(at_ms, said)] == expected


def test_an_alert_on_missing_ticks_keeps_its_time_when_the_clock_is_shifted() -> None:
    alerts = lifecycle()
    alerts.apply(1000, Assessment())
    stay_away = Finding(AlertKind.NO_DATA, TICKS, Severity.CRITICAL, "ticks stay away", Evidence(), Advice(), 0.0)
    alerts.apply_missing_ticks(100_000, Assessment([stay_away]))
    alerts.shift_clock(99_000)
    # Good from second 101 on: for 5 s at second 106, and not 99 s later.
    assert run(alerts, *((second, Assessment()) for second in range(101, 108))) == [(106, "resolved")]


def test_alerts_of_some_kinds_alone_may_be_ended() -> None:
    alerts = lifecycle()
    alerts.apply(1000, Assessment([*bad(0).findings, lost(1)]))
    (ended,) = alerts.resolve(2000, "nobody looks", (AlertKind.UNDER_REPLICATED,))
    assert (ended.kind, ended.tick_ms) == ("under_replicated", 2000)
    assert [event.kind for event in alerts.active()] == ["throttle_below_leader_write"]


def test_a_cluster_of_which_nothing_is_heard_any_more_has_its_alerts_ended_with_the_reason() -> None:
    alerts = lifecycle(cluster="gone")
    alerts.apply(1000, bad(0))
    (ended,) = alerts.resolve(500, "it is not configured any more")
    assert (ended.cluster, ended.state, ended.tick_ms) == ("gone", "resolved", 1000)
    assert ended.summary == "too low; it is not configured any more"
    assert alerts.resolve(2000, "again") == []


_KINDS = (AlertKind.THROTTLE_BELOW_LEADER_WRITE, AlertKind.UNDER_REPLICATED)
_SUBJECTS = ("a", "b", "c")


@st.composite
def assessments(draw: st.DrawFn, holds_s: Sequence[float] = (0.0, 2.0)) -> Assessment:
    """A tick in which each kind and subject is bad, held or good."""
    assessment = Assessment()
    for reported in [(kind, subject) for kind in _KINDS for subject in _SUBJECTS]:
        how = draw(st.sampled_from(["good", "good", "bad", "bad", "held"]))
        if how == "held":
            assessment.keep_firing.add(reported)
        if how == "bad":
            assessment.findings.append(draw(findings(*reported, holds_s)))
    return assessment


@st.composite
def findings(draw: st.DrawFn, kind: AlertKind, subject: str, holds_s: Sequence[float]) -> Finding:
    return Finding(
        kind,
        subject,
        draw(st.sampled_from(Severity)),
        "wrong",
        Evidence(),
        Advice(throttle_bytes_per_s=draw(st.sampled_from([None, 100, 110, 400]))),
        draw(st.sampled_from(holds_s)),
        cause=draw(st.sampled_from(["", "x", "y"])),
        precedence=draw(st.sampled_from([0, 1])),
        weight=draw(st.sampled_from([0.0, 1.0])),
    )


def test_an_alert_goes_on_with_another_that_it_named_for_as_long_as_that_lasts() -> None:
    alerts = lifecycle(resolve_s=0.0)

    def throttled(subject: str, severity: Severity) -> Finding:
        advice = Advice()
        return Finding(
            AlertKind.THROTTLE_BELOW_LEADER_WRITE, subject, severity, "low", Evidence(), advice, 0.0, cause="one switch"
        )

    both = Assessment([throttled("b", Severity.WARNING), throttled("c", Severity.WARNING)])
    assert [event.state for event in alerts.apply(1000, both)] == ["pending", "firing"]
    # The first rate is raised, the second gets worse: the alert says so once, and no other alert is raised for it.
    worse = Assessment([throttled("c", Severity.CRITICAL)])
    again = alerts.apply(2000, worse)
    assert [(event.subject, event.state, event.severity) for event in again] == [("b", "firing", "critical")]
    assert [alerts.apply(tick_ms, worse) for tick_ms in (3000, 4000, 5000)] == [[], [], []]
    ended = alerts.apply(6000, Assessment([]))
    assert [(event.subject, event.state) for event in ended] == [("b", "resolved")]


class Ticks(RuleBasedStateMachine):
    """Ticks that come in turn, again, late and after restarts, beside a lifecycle to which nothing ever happens."""

    def __init__(self) -> None:
        super().__init__()
        self.ticks: list[tuple[int, Assessment]] = []
        self.events: list[AlertEvent] = []
        self.straight_events: list[AlertEvent] = []
        # By the tick after a gap.
        self.gaps_ms: dict[int, int] = {}
        # The place among the ticks where the last restart took up: of those before only the events are known.
        self.known_from = 0
        self.restarted = self.silent = False

    @initialize(resolve_s=st.sampled_from([0.0, 3.0]), holds_s=st.sampled_from([(0.0,), (0.0, 2.0)]))
    def start(self, resolve_s: float, holds_s: tuple[float, ...]) -> None:
        self.resolve_s, self.holds_s = resolve_s, holds_s
        self.alerts, self.straight = lifecycle(resolve_s), lifecycle(resolve_s)

    @rule(data=st.data(), step_s=st.integers(1, 4))
    def next_tick(self, data: st.DataObject, step_s: int) -> None:
        said = data.draw(assessments(self.holds_s))
        last_ms = max((tick_ms for tick_ms, _ in self.ticks), default=0)
        self.ticks.append((last_ms + step_s * 1000, said))
        self.apply(*self.ticks[-1])

    @precondition(lambda self: self.ticks)
    @rule(data=st.data(), gap_s=st.integers(2, 4))
    def a_tick_after_a_gap(self, data: st.DataObject, gap_s: int) -> None:
        """Nothing has lasted over it: a second after the one before it would bring as much."""
        for alerts in (self.alerts, self.straight):
            alerts.shift_clock((gap_s - 1) * 1000)
        said = data.draw(assessments(self.holds_s))
        self.ticks.append((self.ticks[-1][0] + gap_s * 1000, said))
        self.gaps_ms[self.ticks[-1][0]] = (gap_s - 1) * 1000
        self.apply(*self.ticks[-1])

    @precondition(lambda self: self.ticks and not self.restarted)
    @rule(said=assessments(), back_ms=st.integers(1, 5000))
    def a_late_tick(self, said: Assessment, back_ms: int) -> None:
        assert self.alerts.apply(max(self.ticks[-1][0] - back_ms, 1), said) == []

    @precondition(lambda self: self.ticks and not self.restarted)
    @rule(after_ms=st.integers(1, 5000))
    def ticks_stay_away(self, after_ms: int) -> None:
        """What else is wrong goes on; the ticks of that time may come later.

        For how long they have stayed away no event tells, so that a restart would change when it ends.
        """
        self.silent = True
        stay_away = Finding(AlertKind.NO_DATA, TICKS, Severity.CRITICAL, "ticks stay away", Evidence(), Advice(), 0.0)
        already_active = {(AlertKind(event.kind), event.subject) for event in self.alerts.active()}
        at_ms = self.ticks[-1][0] + after_ms
        events = self.alerts.apply_missing_ticks(at_ms, Assessment([stay_away], already_active))
        assert {event.subject for event in events} <= {TICKS}
        self.events += events
        self.straight_events += self.straight.apply_missing_ticks(at_ms, Assessment([stay_away], already_active))

    @precondition(lambda self: self.known_from < len(self.ticks))
    @rule(data=st.data())
    def ticks_again(self, data: st.DataObject) -> None:
        start = data.draw(st.integers(self.known_from, len(self.ticks) - 1))
        for tick in self.ticks[start : data.draw(st.integers(start, len(self.ticks)))]:
            assert self.alerts.apply(*tick) == []

    @precondition(lambda self: self.ticks and not self.silent)
    @rule(back=st.integers(0, 4), newest_first=st.booleans())
    def a_restart_that_does_the_last_ticks_again(self, back: int, newest_first: bool) -> None:
        self.alerts = lifecycle(self.resolve_s, self.events[::-1] if newest_first else self.events)
        self.restarted = True
        self.known_from = max(self.known_from, len(self.ticks) - back)
        for number, tick in enumerate(self.ticks[self.known_from :]):
            # The gap before it is seen again too, unless the tick before it is not.
            if number and not self.alerts.has_applied(tick[0]):
                self.alerts.shift_clock(self.gaps_ms.get(tick[0], 0))
            assert self.alerts.apply(*tick) == []

    def apply(self, tick_ms: int, said: Assessment) -> None:
        events = self.alerts.apply(tick_ms, said)
        self.events += events
        self.straight_events += self.straight.apply(tick_ms, said)
        found = {(finding.kind.value, finding.subject) for finding in said.findings}
        fired_ids = {event.alert_id for event in self.events if event.state == "firing"}
        ended = [event for event in events if event.state == "resolved"]
        reported = {(event.kind, event.subject) for event in ended if event.alert_id in fired_ids}
        held = {(kind.value, subject) for kind, subject in said.keep_firing}
        assert not reported & (found | held)
        # One that nobody was told of may also step back for another of its cause that fires.
        stepped_back = {(event.kind, event.subject) for event in ended} & (found | held)
        assert not stepped_back or "firing" in {event.state for event in self.alerts.active()}
        for cause in {finding.cause for finding in said.findings} - {""}:
            reported = {(f.kind.value, f.subject) for f in said.findings if f.cause == cause}
            assert reported & self.active_keys() or reported <= self.named(cause, held, found)

    def named(self, cause: str, held: set[tuple[str, str]], found: set[tuple[str, str]]) -> set[tuple[str, str]]:
        """What alerts of a cause named that fire, and that this tick tells nothing of, or that go on with it."""
        firing = [e for e in self.alerts.active() if e.state == "firing"]
        # One that is found under another cause by now still stands for the rates that it named.
        rates = {kind.value for kind in THROTTLE_KINDS}
        firing = [e for e in firing if (e.kind, e.subject) not in found - held or e.kind in rates]
        all_evidence = [(e.kind, json.loads(e.evidence)) for e in firing]
        said = [evidence for kind, evidence in all_evidence if evidence.get("group") == cause or kind in rates]
        named = [also for evidence in said for also in evidence.get("also", [])]
        named += [evidence["goes_on_with"] for evidence in said if "goes_on_with" in evidence]
        return {(one["kind"], one["subject"]) for one in named}

    def active_keys(self) -> set[tuple[str, str]]:
        return {(event.kind, event.subject) for event in self.alerts.active()}

    @invariant()
    def a_subject_has_one_active_alert_at_most(self) -> None:
        ended = {event.alert_id for event in self.events if event.state == "resolved"}
        open_ids = {event.alert_id: (event.kind, event.subject) for event in self.events if event.alert_id not in ended}
        assert len(set(open_ids.values())) == len(open_ids)
        if self.ticks:
            assert {event.alert_id for event in self.alerts.active()} == set(open_ids)

    @invariant()
    def an_alert_goes_one_way_through_time_and_ends_for_good(self) -> None:
        by_id: dict[str, list[AlertEvent]] = defaultdict(list)
        for event in self.events:
            by_id[event.alert_id].append(event)
        for events in by_id.values():
            states = [event.state for event in events]
            assert states[0] == "pending"
            assert set(states[1:-1]) <= {"firing"}
            assert "pending" not in states[1:]
            assert [event.tick_ms for event in events] == sorted(event.tick_ms for event in events)
            keys = [(event.tick_ms, event.state) for event in events]
            assert len(set(keys)) == len(keys)

    # Of what waits under another alert no event tells since when: after a restart it may wait longer.
    @invariant()
    def a_restart_changes_nothing_but_the_time_of_being_well_or_of_waiting(self) -> None:
        if self.ticks and (not self.restarted or (self.resolve_s == 0 and self.holds_s == (0.0,))):
            # Of one tick the order is of no account.
            assert set(self.events) == set(self.straight_events)
            assert len(self.events) == len(self.straight_events)


TestTicks = Ticks.TestCase
TestTicks.settings = settings(max_examples=50, stateful_step_count=20, deadline=None)


def test_alerts_that_only_a_newer_version_knows_are_left_as_they_are(caplog: pytest.LogCaptureFixture) -> None:
    also = [{"kind": "not_yet_known", "subject": "x", "broker_id": 4}]
    evidence, advice = json.dumps({"group": "copies", "also": also}), '{"throttle_bytes_per_s": 100}'
    ours = AlertEvent("a", KIND.value, "warning", "firing", "c", SUBJECT, "s", evidence, advice, 1000, 1000)
    strange = [
        replace(ours, alert_id="b", kind="not_yet_known"),
        replace(ours, alert_id="d", subject="y", state="snoozed"),
        replace(ours, alert_id="e", subject="z", severity="fatal"),
    ]
    assert known_events([*strange, ours]) == [ours]
    alerts = lifecycle(events=[ours])
    (reported,) = caplog.messages
    assert reported.endswith("are left as they are: fatal, not_yet_known, snoozed")
    # 5 s without it: ours resolves, and nothing else is told.
    assert run(alerts, (2, OK), (7, OK)) == [(7.0, "resolved")]
    # What it stood for is found again, with one that it had named.
    assert run(lifecycle(events=[ours]), (2, bad(hold_s=0))) == []
