"""The headline: whether the move will finish, and that nothing unknown or old is shown as good."""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Tone
from headroom.dashboard.views.headline import Headline, headline
from headroom.operations import evaluation
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role
from headroom.schemas.tables import ALERT_EVENTS, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from tests.unit.builders.dashboard_store import TICK_MS, DashboardStore, at, event, new_replica
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

ENOUGH = status(1, Role.LEADER, 12, 10, partition(), eta_s=60.0)
TOO_LOW = status(1, Role.LEADER, 5.6, 8, partition(), in_sync_mb=6)
UNREAD = status(2, Role.FOLLOWER, 12, None, partition())
IDLE = status(1, Role.LEADER, None, 0, limited=0, in_sync_mb=0)
COMMAND = "headroom throttle apply --rate 9600000"
# 5 s after the tick.
NOW_MS = TICK_MS + 5_000


def commanding(alert_id: str = "a", **more: Any) -> AlertEvent:
    recommendation = {"action": "raise_throttle", "throttle_bytes_per_s": 9_600_000, "commands": [COMMAND, "kafka-x"]}
    return event(alert_id, recommendation=json.dumps(recommendation), **more)


def shown(store: DashboardStore, now_ms: int = NOW_MS, at_ms: int | None = None) -> Headline:
    return headline(store.site(now_ms), at(at=at_ms))


def test_without_a_table_it_says_that_nothing_was_evaluated(store: DashboardStore) -> None:
    found = shown(store)
    assert (found.tone, found.tick_ms, found.commands) == (Tone.UNKNOWN, None, None)
    assert found.text == (
        "NOT EVALUATED: there is no verdict on cluster prod in this store. Is `headroom watch` running?"
    )


def test_the_tick_of_another_cluster_is_none_of_this_one(store: DashboardStore) -> None:
    store.throttles(ENOUGH, cluster="other")
    found = shown(store)
    assert (found.tone, found.tick_ms) == (Tone.UNKNOWN, None)
    assert "no verdict on cluster prod" in found.text


def test_a_move_that_ends_is_good_with_its_finish(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, eta_s=30.0), new_replica(1, eta_s=60.0), new_replica(2, "in_sync", 0.0))
    found = shown(store)
    assert (found.tone, found.tick_ms) == (Tone.GOOD, TICK_MS)
    # 5 of the 60 s have passed.
    assert found.text == "At the throttles in force the moves are done in 55 s, by the tick of 5 s ago."
    assert {term.name: term.text for term in found.terms} == {
        "Finish": "08:01:00 UTC",
        "Partitions moving": "3 with 3 new replicas",
        # Two of 25 MB.
        "Left to copy": "50.0 MB",
        "Bottleneck": (
            "broker 1 as leader: throttle 12.00 MB/s, in-sync followers use 2.00 MB/s, all followers require 10.00 MB/s"
        ),
    }
    assert found.commands is None


def test_a_finish_on_another_day_has_its_date(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    # 16 h after 08:00:00 the day is over.
    for partition_number, (eta_s, text) in enumerate(
        ((57_599.0, "23:59:59 UTC"), (57_600.0, "2027-01-16 00:00:00 UTC"), (4e10, None))
    ):
        store.replicas(new_replica(partition_number, eta_s=eta_s))
        terms = {term.name: term.text for term in shown(store).terms}
        assert terms.get("Finish") == text
    page = store.client().get("/moves").text
    assert ">2027-01-16 00:00:00 UTC</time>" in page


def test_nothing_moves_is_quiet(store: DashboardStore) -> None:
    store.throttles(IDLE)
    found = shown(store)
    assert (found.tone, found.text, found.terms) == (Tone.QUIET, "No partition is in a reassignment.", ())


def test_nothing_moves_while_a_verdict_is_missing_is_unknown(store: DashboardStore) -> None:
    store.throttles(replace(UNREAD, moving_partitions=0))
    found = shown(store)
    assert found.tone is Tone.UNKNOWN
    assert found.text == "Nothing is known to move; there is no verdict on broker 2 as destination."


def test_a_critical_alert_is_not_hidden_by_a_missing_verdict(store: DashboardStore) -> None:
    store.throttles(UNREAD)
    store.alerts(event())
    assert shown(store).tone is Tone.CRITICAL


def test_an_info_does_not_make_the_unknown_known(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(0, "no_data"))
    store.alerts(event(severity="info"))
    assert shown(store).tone is Tone.UNKNOWN


NEXT_MS = TICK_MS + 1_000


def test_a_move_whose_new_replicas_are_written_later_is_not_said_to_be_none(store: DashboardStore) -> None:
    """A watch writes the verdicts of a tick first, and its new replicas up to half a minute later."""
    store.throttles(ENOUGH)
    found = shown(store)
    assert (found.tone, found.terms) == (Tone.UNKNOWN, ())
    assert found.text == "Partitions are in a reassignment; when they are done is not in the tables yet."


def test_new_replicas_of_the_tick_before_are_shown_until_those_of_the_newest_come(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica(eta_s=60.0))
    store.throttles(ENOUGH, tick_ms=NEXT_MS)
    site = store.site(NOW_MS)
    before = headline(site, at())
    assert (before.tone, before.tick_ms) == (Tone.GOOD, NEXT_MS)
    assert before.text == "At the throttles in force the moves are done in 55 s, by the tick of 5 s ago."
    assert ("Finish", "08:01:00 UTC", Tone.QUIET) in before.terms
    store.replicas(new_replica(eta_s=40.0), tick_ms=NEXT_MS)
    # 4 of 40 s have passed.
    text = "At the throttles in force the moves are done in 36 s, by the tick of 4 s ago."
    assert headline(site, at()).text == text
    # At a chosen moment the tick is named if it is another one.
    assert headline(site, at(at=NEXT_MS)).text == "At the throttles in force the moves are done in 40 s."
    store.throttles(ENOUGH, tick_ms=NEXT_MS + 1_000)
    past = headline(site, at(at=NEXT_MS + 1_000)).text
    assert past == "At the throttles in force the moves are done in 39 s, by the tick of 1 s ago."


def test_new_replicas_of_a_minute_ago_are_not_those_of_now(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.throttles(ENOUGH, tick_ms=TICK_MS + 60_001)
    assert shown(store, TICK_MS + 61_000).tone is Tone.UNKNOWN


def test_a_move_that_has_ended_is_over_although_the_tick_before_had_new_replicas(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.throttles(IDLE, tick_ms=NEXT_MS)
    assert shown(store).text == "No partition is in a reassignment."


def test_a_throttle_that_was_raised_is_not_too_low_until_its_replicas_are_written(store: DashboardStore) -> None:
    store.throttles(TOO_LOW)
    store.replicas(new_replica(0, "never"))
    store.throttles(ENOUGH, tick_ms=NEXT_MS)
    found = shown(store)
    assert found.tone is Tone.UNKNOWN
    assert found.text == "Partitions are in a reassignment; when they are done is not in the tables yet."
    store.replicas(new_replica(0), tick_ms=NEXT_MS)
    assert shown(store).tone is Tone.GOOD


@pytest.mark.parametrize("has_earlier", [True, False])
def test_a_throttle_that_has_become_too_low_is_critical_before_its_replicas_are_written(
    store: DashboardStore, has_earlier: bool
) -> None:
    store.throttles(ENOUGH)
    if has_earlier:
        store.replicas(new_replica())
    store.throttles(TOO_LOW, tick_ms=NEXT_MS)
    found = shown(store)
    assert found.tone is Tone.CRITICAL
    assert found.text == "The throttle of broker 1 as leader is too low: replicas behind it never get in sync."
    assert "Finish" not in [term.name for term in found.terms]
    assert found.commands is not None


def test_a_replica_that_never_ends_is_critical_with_the_command_of_the_firing_alert(store: DashboardStore) -> None:
    store.throttles(TOO_LOW)
    store.replicas(new_replica(0, "never"), new_replica(1))
    store.alerts(commanding())
    found = shown(store)
    assert found.tone is Tone.CRITICAL
    assert found.text.startswith("At the throttles in force 1 of 2 new replicas never get in sync")
    assert found.commands is not None
    assert found.commands.lead == "Recommended by throttle_below_leader_write on broker 1 as leader"
    assert list(found.commands.commands) == [COMMAND, "kafka-x"]
    assert [term.text for term in found.alerts] == ["summary of a."]
    # No moment of a finish that there is not.
    assert "Finish" not in [term.name for term in found.terms]


def test_without_an_alert_the_recommendation_of_the_tick_is_shown(store: DashboardStore) -> None:
    store.throttles(TOO_LOW)
    store.replicas(new_replica(0, "never"))
    found = shown(store)
    advice = store.watched("prod").recommender().raise_throttle([TOO_LOW])
    assert found.commands is not None
    # 8 MB/s and the margin of 20 %.
    assert found.commands.lead.startswith("Raise the throttle to 9.60 MB/s")
    assert list(found.commands.commands) == list(advice.commands)
    assert "--rate 9600000" in found.commands.commands[0]


@pytest.mark.parametrize("state", ["pending", "resolved"])
def test_only_firing_alerts_are_in_it(store: DashboardStore, state: str) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.alerts(commanding(state=state))
    found = shown(store)
    assert (found.tone, list(found.alerts), found.commands) == (Tone.GOOD, [], None)


def test_the_most_severe_alerts_come_first_and_the_others_are_counted(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.alerts(
        event("i", severity="info"),
        commanding("w", severity="warning"),
        event("c"),
        event("d", tick_ms=TICK_MS - 1, kind="under_replicated"),
        event("x", severity="warning", tick_ms=TICK_MS - 1, kind="under_replicated"),
    )
    found = shown(store)
    assert found.tone is Tone.CRITICAL
    texts = [term.text for term in found.alerts]
    assert texts == ["summary of c.", "summary of d.", "summary of w.", "2 more alerts are firing."]
    # The first two recommend no command.
    assert found.commands is not None
    assert found.commands.commands[0] == COMMAND


def test_an_alert_whose_throttle_was_raised_does_not_contradict_the_finish(store: DashboardStore) -> None:
    store.throttles(TOO_LOW, tick_ms=TICK_MS - 2000)
    store.throttles(ENOUGH)
    store.replicas(new_replica(eta_s=60.0))
    store.alerts(commanding(tick_ms=TICK_MS - 2000))
    found = shown(store)
    assert (found.tone, found.commands) == (Tone.GOOD, None)
    assert found.text.startswith("At the throttles in force the moves are done in")
    assert [(term.text, term.tone) for term in found.alerts] == [
        ("Not so any more, and resolved if that lasts: summary of a.", Tone.QUIET)
    ]


# Just above what is required; too low; unknown; of another broker; with a verdict that is as old as the alert.
@pytest.mark.parametrize(
    ("now", "more"),
    [
        (status(1, Role.LEADER, 10.01, 10, partition()), {}),
        (TOO_LOW, {}),
        (status(1, Role.LEADER, 12, None, partition()), {}),
        (ENOUGH, {"subject": "broker 2 as leader"}),
        (ENOUGH, {"tick_ms": TICK_MS}),
        (ENOUGH, {"kind": "under_replicated"}),
    ],
)
def test_an_alert_that_would_not_end_yet_is_shown_as_it_is(
    store: DashboardStore, now: ThrottleStatus, more: dict[str, Any]
) -> None:
    store.throttles(now)
    store.replicas(new_replica(eta_s=60.0))
    store.alerts(commanding(**{"tick_ms": TICK_MS - 2000, **more}))
    found = shown(store)
    assert found.tone is Tone.CRITICAL
    assert [term.text for term in found.alerts] == ["summary of a."]
    assert found.commands is not None


def test_unknown_finish_is_unknown_and_never_zero(store: DashboardStore) -> None:
    store.throttles(UNREAD)
    store.replicas(new_replica(0, "no_data", remaining_bytes=None), new_replica(1))
    found = shown(store)
    assert found.tone is Tone.UNKNOWN
    assert found.text == "When the moves are done is unknown for 1 of 2 new replicas, by the tick of 5 s ago."
    terms = {term.name: term.text for term in found.terms}
    assert terms["Left to copy"].startswith("25.0 MB and what 1 ")
    assert "Finish" not in terms


@pytest.mark.parametrize(("state", "left"), [("no_data", "unknown"), ("in_sync", "0 B")])
def test_what_no_replica_knows_is_not_0_bytes(store: DashboardStore, state: str, left: str) -> None:
    store.throttles(UNREAD)
    store.replicas(*(new_replica(n, state, remaining_bytes=None if state == "no_data" else 0) for n in range(2)))
    assert {term.name: term.text for term in shown(store).terms}["Left to copy"] == left


@pytest.mark.parametrize("severity", ["info", "warning", "critical"])
def test_what_was_good_is_unknown_once_nothing_evaluates_any_more(store: DashboardStore, severity: str) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.alerts(event(severity=severity))
    found = shown(store, TICK_MS + 3_600_000)
    assert found.tone is Tone.UNKNOWN
    assert found.text.startswith(
        "NOT EVALUATED for 1 h: the last verdict on cluster prod is of 2027-01-15 08:00:00 UTC."
    )
    assert found.terms[0] == ("Then", "At the throttles in force the moves are done in 1 min.", Tone.QUIET)
    assert store.client(TICK_MS + 3_600_000).get("/api/v1/headline").json()["is_current"] is False


def test_a_tick_ahead_of_the_clock_is_not_current(store: DashboardStore) -> None:
    store.throttles(IDLE)
    found = shown(store, TICK_MS - 120_000)
    assert found.tone is Tone.UNKNOWN
    assert "2 min ahead of this clock" in found.text


def test_a_chosen_moment_shows_the_state_of_then(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.throttles(IDLE, tick_ms=TICK_MS + 60_000)
    store.alerts(event("later", tick_ms=TICK_MS + 30_000))
    found = shown(store, TICK_MS + 61_000, TICK_MS + 1_000)
    # Nothing has passed of the 60 s: it is said from the tick on.
    assert (found.tone, found.text) == (Tone.GOOD, "At the throttles in force the moves are done in 1 min.")
    assert (found.tick_ms, list(found.alerts)) == (TICK_MS, [])
    assert shown(store, TICK_MS + 61_000).text == "No partition is in a reassignment."


def test_a_moment_in_a_gap_does_not_have_the_verdict_before_it(store: DashboardStore) -> None:
    """A watch ended at 08:00 in a move that went well, and began again at 09:00:01."""
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.throttles(IDLE, tick_ms=TICK_MS + 3_601_000)
    found = shown(store, TICK_MS + 3_602_000, TICK_MS + 3_600_000)
    assert (found.tone, found.tick_ms) == (Tone.UNKNOWN, TICK_MS)
    assert found.text == (
        "Not evaluated at 2027-01-15 09:00:00 UTC: the last verdict before it is of 2027-01-15 08:00:00 UTC."
    )
    assert found.terms[0] == ("Then", "At the throttles in force the moves are done in 1 min.", Tone.QUIET)
    assert shown(store, TICK_MS + 3_602_000, TICK_MS + 3_601_000).text == "No partition is in a reassignment."


# Three commits of gold, 20 s apart while nothing moves.
@pytest.mark.parametrize(("after_ms", "tone"), [(60_000, Tone.GOOD), (60_001, Tone.UNKNOWN)])
def test_a_moment_has_the_verdict_of_the_minute_before_it(store: DashboardStore, after_ms: int, tone: Tone) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    assert shown(store, TICK_MS + 3_602_000, TICK_MS + after_ms).tone is tone


# Three of its ticks; the other cluster on the page is evaluated every 5 s.
@pytest.mark.parametrize("is_first", [False, True])
@pytest.mark.parametrize("interval_s", [60.0, 120.0])
@pytest.mark.parametrize("is_past", [False, True])
def test_a_cluster_with_few_ticks_is_evaluated_for_three_of_them(
    store: DashboardStore, interval_s: float, is_first: bool, is_past: bool
) -> None:
    watched = [store.watched("slow", interval_s), store.watched("prod")]
    for cluster in ("slow", "prod"):
        store.throttles(ENOUGH, cluster=cluster)
        store.replicas(new_replica(), cluster=cluster)
    last_ms = TICK_MS + round(3000 * interval_s)

    def tone(cluster: str, at_ms: int) -> Tone:
        now_ms = TICK_MS + 9_000_000 if is_past else at_ms
        site = Site(watched if is_first else watched[::-1], lambda: now_ms)
        return headline(site, at(cluster=cluster, at=at_ms if is_past else None)).tone

    assert (tone("slow", last_ms), tone("slow", last_ms + 1)) == (Tone.GOOD, Tone.UNKNOWN)
    assert (tone("prod", TICK_MS + 60_000), tone("prod", TICK_MS + 60_001)) == (Tone.GOOD, Tone.UNKNOWN)


def test_a_moment_before_the_first_tick_has_no_verdict(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    found = shown(store, NOW_MS, TICK_MS - 1)
    assert (found.tone, found.tick_ms) == (Tone.UNKNOWN, None)
    assert found.text == "There is no verdict on cluster prod up to 2027-01-15 07:59:59 UTC."


@pytest.mark.parametrize("table", [THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS, ALERT_EVENTS], ids=lambda t: t.path)
@pytest.mark.parametrize("what", ["commit", "rows"])
def test_a_table_that_cannot_be_read_is_said(store: DashboardStore, table: Table, what: str) -> None:
    store.throttles(ENOUGH)
    store.replicas(new_replica())
    store.alerts(event())
    damage(store.path / table.path, what)
    with pytest.raises(HeadroomError) as raised:
        shown(store)
    assert table.path in str(raised.value)
    page = store.client(NOW_MS).get("/moves")
    assert page.status_code == 200
    assert "The tables cannot be read: " in page.text
    assert table.path in page.text
    answer = store.client(NOW_MS).get("/api/v1/headline")
    assert answer.status_code == 503
    assert table.path in answer.json()["error"]


def damage(folder: Path, what: str) -> None:
    """Cut a file of a table in two: its last commit, or all its rows."""
    files = sorted(folder.rglob("*.parquet")) if what == "rows" else sorted(folder.glob("_delta_log/*.json"))[-1:]
    for file in files:
        data = file.read_bytes()
        file.write_bytes(data[: len(data) // 2])


def test_a_row_that_cannot_be_used_is_said_and_is_no_failure_of_the_server(store: DashboardStore) -> None:
    store.rows(THROTTLE_HEADROOM, {"cluster": "prod", "tick_ms": TICK_MS, "broker": 1, "role": "leader"})
    page = store.client(NOW_MS).get("/moves")
    assert page.status_code == 200
    assert "gold/throttle_headroom: has a row that cannot be used" in page.text
    assert store.client(NOW_MS).get("/api/v1/headline").status_code == 503


def test_the_page_and_the_api_say_the_same_sentence(store: DashboardStore) -> None:
    store.throttles(TOO_LOW)
    store.replicas(new_replica(0, "never"))
    store.alerts(commanding())
    client = store.client(NOW_MS)
    api = client.get("/api/v1/headline").json()
    page = client.get("/moves").text
    assert api["text"] in page
    assert api["commands"][0] in page
    assert (api["tone"], api["is_current"], api["tick_ms"]) == ("critical", True, TICK_MS)
    assert '<div class="headline critical">' in page


def test_only_the_sentence_and_the_alerts_are_read_out_when_they_change(store: DashboardStore) -> None:
    """Ages inside the headline go on every second, and each tick replaces all of it."""
    store.throttles(TOO_LOW)
    store.replicas(new_replica(0, "never"))
    page = Markup(store.client(NOW_MS).get("/moves").text)
    assert [element for element in page.elements if "aria-live" in element.attributes] == []
    read_out = [(element.attributes["id"], element.text) for element in page.all("p", role="status")]
    assert read_out == [("said", f"critical: {shown(store).text}"), ("status", "")]
    # A further alert changes nothing in the sentence.
    store.alerts(event("a"), event("b", tick_ms=TICK_MS - 1, summary="1 < 2"))
    (said,) = Markup(store.client(NOW_MS).get("/moves").text).texts("p", id="said")
    assert said == f"critical: {shown(store).text} summary of a. 1 < 2."


def test_a_finish_in_tens_of_thousands_of_years_is_shown(store: DashboardStore) -> None:
    # 1 TB at 1 B/s.
    store.throttles(replace(ENOUGH, eta_s=1e12))
    store.replicas(new_replica(0, eta_s=1e12))
    client = store.client(NOW_MS)
    assert client.get("/moves").status_code == 200
    assert client.get("/throttles").status_code == 200
    assert client.get("/api/v1/moves").json()["replicas"]["rows"][0]["eta_s"] == 1e12


def test_the_age_of_verdicts_is_that_of_a_table_that_is_open(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A query of its own opens the table each time that a page is rendered."""
    store.throttles(ENOUGH)
    monkeypatch.setattr(evaluation, "query", lambda *_: pytest.fail("the table is opened again"))
    assert shown(store).view_time.is_current


def test_the_newest_tick_is_found_without_a_read_of_older_days(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.throttles(TOO_LOW, tick_ms=TICK_MS - 30 * 86_400_000)
    store.throttles(ENOUGH)
    site = store.site(NOW_MS)
    asked: list[str] = []
    rows = site.tables.rows

    def recording(table: Table, sql: str) -> list[dict[str, object]] | None:
        asked.append(sql)
        return rows(table, sql)

    monkeypatch.setattr(site.tables, "rows", recording)
    moment = site.moment(at())
    assert moment is not None
    assert moment.tick_ms == TICK_MS
    # A day before the clock, which is 5 s after the tick.
    assert f"tick_ms BETWEEN {NOW_MS - 86_400_000}" in asked[0]
    assert not [sql for sql in asked if "date BETWEEN DATE '1970-01-01'" in sql]


@pytest.mark.parametrize("days", [-400, -2, 2, 400])
def test_the_newest_tick_is_found_whatever_the_clock_says(store: DashboardStore, days: int) -> None:
    store.throttles(ENOUGH)
    store.throttles(IDLE, tick_ms=TICK_MS - 1000)
    assert shown(store, TICK_MS + days * 86_400_000).tick_ms == TICK_MS
