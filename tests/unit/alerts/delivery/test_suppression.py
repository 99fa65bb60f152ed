"""When an alert is covered, until when, and when it is acknowledged: the rules alone, with times as numbers."""

from __future__ import annotations

import json
from dataclasses import replace
from datetime import datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.alerts.delivery.suppression import SuppressionRecord, Suppressions
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import DAYS, MaintenanceWindow
from tests.unit.fakes.receivers import event

HOUR_MS = 3_600_000
NOW_MS = 1_800_000_000_000


def silence(
    mark_id: str = "s", starts_ms: int = NOW_MS, ends_ms: int = NOW_MS + HOUR_MS, **matchers: str
) -> SuppressionRecord:
    named = {name: matchers.get(name) for name in ("cluster", "kind", "subject")}
    return SuppressionRecord(
        mark_id=mark_id,
        action="silence",
        alert_id=None,
        severity=None,
        starts_ms=starts_ms,
        ends_ms=ends_ms,
        by="anna",
        note="",
        mark_ms=starts_ms,
        **named,
    )


def ended(of: SuppressionRecord, mark_ms: int) -> SuppressionRecord:
    return replace(of, action="unsilence", starts_ms=None, ends_ms=None, mark_ms=mark_ms)


def ack(alert_id: str = "a", severity: str = "critical", by: str = "anna", mark_ms: int = NOW_MS) -> SuppressionRecord:
    made = silence(f"{by}{mark_ms}", mark_ms)
    return replace(
        made, action="ack", alert_id=alert_id, severity=severity, by=by, starts_ms=None, ends_ms=None, mark_ms=mark_ms
    )


@pytest.mark.parametrize(
    ("matchers", "covers"),
    [
        ({"cluster": "orders"}, True),
        ({"cluster": "order"}, False),
        ({"kind": "throttle_below_leader_write"}, True),
        ({"kind": "no_data"}, False),
        ({"subject": "broker 2 as leader"}, True),
        ({"subject": "broker * as leader"}, True),
        ({"subject": "broker 2"}, False),
        ({"subject": "Broker*"}, False),
        ({"cluster": "orders", "kind": "no_data"}, False),
        ({"cluster": "orders", "subject": "*leader"}, True),
    ],
)
def test_a_silence_covers_what_all_its_matchers_match(matchers: dict[str, str], covers: bool) -> None:
    assert Suppressions.of([silence(**matchers)]).is_suppressed(event(), NOW_MS) is covers


def test_a_silence_holds_from_its_start_to_just_before_its_end() -> None:
    suppressions = Suppressions.of([silence()])
    times = (NOW_MS - 1, NOW_MS, NOW_MS + HOUR_MS - 1, NOW_MS + HOUR_MS)
    assert [suppressions.suppressed_until_ms(event(), at) for at in times] == [
        None,
        NOW_MS + HOUR_MS,
        NOW_MS + HOUR_MS,
        None,
    ]


def test_silences_without_a_break_count_as_one() -> None:
    following = silence("t", NOW_MS + HOUR_MS, NOW_MS + 2 * HOUR_MS)
    later = silence("u", NOW_MS + 3 * HOUR_MS, NOW_MS + 4 * HOUR_MS)
    assert Suppressions.of([later, following, silence()]).suppressed_until_ms(event(), NOW_MS) == NOW_MS + 2 * HOUR_MS


def test_an_end_cuts_a_silence_and_the_first_of_two_counts() -> None:
    made = silence()
    ends = [ended(made, NOW_MS + 500), ended(made, NOW_MS + 700)]
    assert Suppressions.of([*ends, made]).suppressed_until_ms(event(), NOW_MS) == NOW_MS + 500
    assert not Suppressions.of([made, ended(made, NOW_MS - 1)]).is_suppressed(event(), NOW_MS)
    assert Suppressions.of([made, ended(silence("other"), NOW_MS)]).is_suppressed(event(), NOW_MS)


def test_silences_that_have_ended_can_be_left_out() -> None:
    suppressions = Suppressions.of([silence(), silence("t", ends_ms=NOW_MS + 2 * HOUR_MS)])
    assert [s.record.mark_id for s in suppressions.since(NOW_MS + HOUR_MS).silences] == ["t"]


@pytest.mark.parametrize(
    ("at", "until"),
    [
        # 2026-11-21 is a Saturday.
        ("2026-11-21T21:59", None),
        ("2026-11-21T22:00", "2026-11-22T02:00"),
        ("2026-11-22T01:59", "2026-11-22T02:00"),
        ("2026-11-22T02:00", None),
        ("2026-11-22T22:00", "2026-11-23T02:00"),
        ("2026-11-20T23:00", None),
        ("2026-11-23T23:00", None),
    ],
)
def test_a_window_comes_back_on_its_days(at: str, until: str | None) -> None:
    suppressions = Suppressions(windows=[MaintenanceWindow(("sat", "sun"), "22:00", 4 * 3600)])
    assert suppressions.suppressed_until_ms(event(), ms(at)) == (None if until is None else ms(until))


def ms(text: str) -> int:
    return round(datetime.fromisoformat(text).replace(tzinfo=timezone.utc).timestamp() * 1000)


def test_a_window_covers_what_it_names() -> None:
    window = MaintenanceWindow(DAYS, "00:00", 3600, kinds=("no_data", "reassignment_stalled"), subjects=("broker 2*",))
    suppressions, at_ms = Suppressions(windows=[window]), ms("2026-11-21T00:30")
    assert suppressions.is_suppressed(event(kind="no_data"), at_ms)
    assert not suppressions.is_suppressed(event(), at_ms)
    assert not suppressions.is_suppressed(event(kind="no_data", subject="ticks"), at_ms)
    elsewhere = replace(window, clusters=("payments",))
    assert not Suppressions(windows=[elsewhere]).is_suppressed(event(kind="no_data"), at_ms)


def test_the_end_of_windows_without_a_break_is_looked_for_a_month_ahead() -> None:
    suppressions = Suppressions(windows=[MaintenanceWindow(DAYS, "00:00", 86_400)])
    until_ms = suppressions.suppressed_until_ms(event(), NOW_MS)
    assert until_ms is not None
    assert 31 <= (until_ms - NOW_MS) / (24 * HOUR_MS) <= 32


@given(
    days=st.sets(st.sampled_from(DAYS), min_size=1),
    minute=st.integers(0, 24 * 60 - 1),
    lasts_min=st.integers(1, 7 * 24 * 60),
    at_min=st.integers(0, 14 * 24 * 60),
)
def test_a_window_covers_a_minute_just_if_one_of_its_turns_does(
    days: set[str], minute: int, lasts_min: int, at_min: int
) -> None:
    at = datetime(2026, 11, 16, tzinfo=timezone.utc) + timedelta(minutes=at_min)
    window = MaintenanceWindow(tuple(days), f"{minute // 60:02}:{minute % 60:02}", lasts_min * 60)
    turns = [
        datetime(2026, 11, 1, tzinfo=timezone.utc) + timedelta(days=day, minutes=minute)
        for day in range(40)
        if DAYS[(datetime(2026, 11, 1) + timedelta(days=day)).weekday()] in days
    ]
    expected = any(start <= at < start + timedelta(minutes=lasts_min) for start in turns)
    assert Suppressions(windows=[window]).is_suppressed(event(), round(at.timestamp() * 1000)) is expected


def test_an_acknowledgement_holds_for_its_alert_until_its_severity_rises_or_it_ends() -> None:
    suppressions = Suppressions.of([ack(severity="warning")])
    warning = event(severity="warning")
    assert suppressions.acknowledgement(warning) == ack(severity="warning")
    assert suppressions.acknowledgement(event(severity="critical")) is None
    assert suppressions.acknowledgement(event(severity="of a later version")) is None
    assert suppressions.acknowledgement(event("b", severity="warning")) is None
    assert suppressions.acknowledgement(replace(warning, state="resolved")) is None


def test_an_acknowledgement_does_not_hold_for_what_the_alert_has_become_since() -> None:
    suppressions = Suppressions.of([ack()])
    grown = replace(event(), evidence=f'{{"escalation": 1, "escalated_tick_ms": {NOW_MS + 1}}}')
    assert suppressions.acknowledgement(grown) is None
    # It was so when somebody acknowledged it, or they have done so again.
    before = replace(event(), evidence=f'{{"escalation": 1, "escalated_tick_ms": {NOW_MS - 1}}}')
    assert suppressions.acknowledgement(before) == ack()
    again = ack(mark_ms=NOW_MS + 2)
    assert Suppressions.of([ack(), again]).acknowledgement(grown) == again


# The collector's clock is a minute behind, and its tick takes some seconds: who acknowledged the alert in between has
# not seen what it became.
def test_an_acknowledgement_does_not_hold_for_what_is_written_after_it_whatever_the_time_of_its_tick() -> None:
    def escalated(event_ms: int) -> AlertEvent:
        times = {"escalated_tick_ms": NOW_MS - 60_000, "escalated_event_ms": event_ms}
        return replace(event(), evidence=json.dumps({"escalation": 1, **times}))

    assert Suppressions.of([ack()]).acknowledgement(escalated(NOW_MS + 1)) is None
    assert Suppressions.of([ack()]).acknowledgement(escalated(NOW_MS - 1)) == ack()


def test_the_last_of_several_acknowledgements_counts() -> None:
    again = ack(by="ben", mark_ms=NOW_MS + 1)
    assert Suppressions.of([again, ack()]).acknowledgement(event()) == again
