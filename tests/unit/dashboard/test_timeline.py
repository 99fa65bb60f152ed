"""Timeline and report: what happened in a range of time, from the tables."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.alerts.inputs.throttle_status import LeaderSwitch
from headroom.cli.main import headroom
from headroom.dashboard import report as report_module
from headroom.dashboard.app import played
from headroom.dashboard.data import open_tables
from headroom.dashboard.data.history import throttle_history
from headroom.dashboard.data.timeline import (
    MOST_POINTS,
    TickRange,
    leader_switches,
    progress_history,
    range_events,
    rate_changes,
)
from headroom.dashboard.report import report
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Chart, DataTable, HeatMap, Paragraph, tables_of
from headroom.dashboard.views.chart import ChartAnnotations, ChartLine, over_time
from headroom.dashboard.views.lag import lag
from headroom.dashboard.views.throttles import annotations_of
from headroom.dashboard.views.timeline import timeline
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role
from headroom.schemas.tables import THROTTLE_HEADROOM, Table
from tests.unit.builders.dashboard_store import (
    CLUSTER,
    MB,
    TICK_MS,
    DashboardStore,
    at,
    event,
    new_replica,
    throttle_row,
    values,
)
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

DAY = TickRange(CLUSTER, TICK_MS - 86_400_000, TICK_MS)
SWITCH = LeaderSwitch(previous_leader=1, partitions=5, bytes_per_s=4e6, switch_tick_ms=TICK_MS - 3000, names=("t-0",))


@pytest.fixture
def moved(store: DashboardStore) -> DashboardStore:
    """A throttle that becomes too low after a switch, and is raised."""
    enough, low = (
        status(2, Role.LEADER, 6, 4, partition()),
        status(2, Role.LEADER, 6, 8, partition(), switches=(SWITCH,)),
    )
    other = status(3, Role.FOLLOWER, 6, 4, partition())
    for before_ms, one, replica in (
        (5000, enough, new_replica(remaining_bytes=30_000_000, eta_s=60.0)),
        (3000, low, new_replica(state="never", remaining_bytes=31_000_000)),
        (2000, low, new_replica(state="never", remaining_bytes=32_000_000)),
        (
            0,
            status(2, Role.LEADER, 10, 8, partition(), switches=(SWITCH,)),
            new_replica(remaining_bytes=20_000_000, eta_s=9),
        ),
    ):
        store.throttles(one, other, tick_ms=TICK_MS - before_ms)
        store.replicas(replica, tick_ms=TICK_MS - before_ms)
    return store


def events(store: DashboardStore, topic: str | None = None) -> list[tuple[int, str, str, str]]:
    (found,) = [t for t in tables_of(timeline(store.site(), at(topic=topic))) if t.name == "events"]
    return [
        (TICK_MS - at_ms, what, tone, text)
        for at_ms, what, tone, text in values(found.rows, "at_ms", "what", "tone", "text")
    ]


def test_events_are_the_newest_first_with_all_brokers_of_a_change(moved: DashboardStore) -> None:
    assert events(moved) == [
        (0, "throttle", "quiet", "broker 2 as leader: throttle 6.00 MB/s to 10.00 MB/s"),
        (0, "throttle", "good", "broker 2 as leader: losing to catching up"),
        (3000, "leader", "quiet", "t-0 and 4 more: broker 1 to broker 2"),
        (3000, "throttle", "critical", "broker 2 as leader: catching up to losing"),
    ]


def test_a_throttle_that_becomes_unknown_is_not_said_to_be_removed(store: DashboardStore) -> None:
    known = status(2, Role.LEADER, 6, 4, partition())
    unread = status(2, Role.LEADER, None, 4, partition(), throttle_known=False)
    removed = status(2, Role.LEADER, None, 4, partition(), throttle_source="none")
    for after_ms, one in enumerate((known, unread, known, removed, unread)):
        store.throttles(one, tick_ms=TICK_MS + 1000 * (after_ms - 4))
    changes = [text.removeprefix("broker 2 as leader: ") for *_, text in events(store) if ": throttle " in text]
    assert changes == [
        "throttle none to unknown",
        "throttle 6.00 MB/s to none",
        "throttle unknown to 6.00 MB/s",
        "throttle 6.00 MB/s to unknown",
    ]


def test_a_switch_is_one_event_although_each_tick_of_its_window_has_it(moved: DashboardStore) -> None:
    (switch,) = leader_switches(moved.site().tables, DAY)
    assert (switch.tick_ms, switch.broker, switch.previous_leader, switch.partitions) == (TICK_MS - 3000, 2, 1, 5)


@pytest.mark.parametrize(
    ("topic", "partitions", "texts"),
    [
        ("t", 5, ["t-0 and 4 more: broker 1 to broker 2"]),
        # It may be one of the four that have no name in the table.
        ("other", 5, ["t-0 and 4 more: broker 1 to broker 2; they may include other"]),
        ("other", 1, []),
        (None, 5, ["t-0 and 4 more: broker 1 to broker 2"]),
    ],
)
def test_a_switch_that_may_include_a_topic_is_not_left_out(
    store: DashboardStore, topic: str | None, partitions: int, texts: list[str]
) -> None:
    switch = replace(SWITCH, partitions=partitions)
    store.throttles(status(2, Role.LEADER, 6, 8, partition(), switches=(switch,)))
    assert [text for _, what, _, text in events(store, topic) if what == "leader"] == texts


def test_alerts_and_commands_are_events_of_their_cluster(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    store.alerts(event("a", "pending"), event("a", "firing"), event("b", "resolved"), event("c", cluster="other"))
    store.journal(
        {"before": "5600000", "after": "9600000"},
        {"state": "done", "before": "5600000", "after": "9600000"},
        {"step": "run", "state": "failed", "subject": "abc", "command": "reassign run"},
        {"cluster": "other", "state": "done"},
    )
    found = sorted(events(store))
    assert [(what, tone) for _, what, tone, _ in found] == [
        ("alert", "critical"),
        ("alert", "good"),
        ("command", "quiet"),
        ("command", "warning"),
    ]
    # Of a step only what became of it, with rates as people read them.
    assert found[2][3] == "reassign run, rate done, broker 1 as leader: 5.60 MB/s to 9.60 MB/s (by ops@host)"
    assert found[3][3] == "reassign run, run failed, abc (by ops@host)"


def test_progress_has_what_is_left_and_when_the_end_was_expected(moved: DashboardStore) -> None:
    points = progress_history(moved.site().tables, TickRange(CLUSTER, TICK_MS - 10_000, TICK_MS))
    assert values([vars(p) for p in points], "tick_ms", "never", "remaining_bytes") == [
        (TICK_MS - 5000, 0, 30_000_000),
        (TICK_MS - 3000, 1, 31_000_000),
        (TICK_MS - 2000, 1, 32_000_000),
        (TICK_MS, 0, 20_000_000),
    ]
    assert [p.finish_ms for p in points] == [TICK_MS + 55_000, None, None, TICK_MS + 9000]


def test_what_is_left_is_unknown_at_a_tick_that_does_not_know_it_of_a_replica(store: DashboardStore) -> None:
    """The log directories of a leader do not answer at two ticks: of one of two replicas, and of the only one."""
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    unread: dict[str, Any] = {"state": "no_data", "remaining_bytes": None}
    done = new_replica(1, "in_sync", remaining_bytes=None)
    store.replicas(new_replica(0), new_replica(2), tick_ms=TICK_MS - 3000)
    store.replicas(new_replica(0), new_replica(2, **unread), tick_ms=TICK_MS - 2000)
    store.replicas(new_replica(0, **unread), tick_ms=TICK_MS - 1000)
    # What is in sync has nothing left, known or not.
    store.replicas(new_replica(0), done)
    left, _ = [b for b in timeline(store.site(), at(span=60)) if isinstance(b, Chart)]
    assert values(left.table.rows[::-1], "remaining_bytes") == [(50_000_000,), (None,), (None,), (25_000_000,)]
    assert left.note.endswith("A gap: what some replicas lack is unknown.")
    assert store.client().get("/timeline").status_code == 200


def test_a_range_of_another_day_is_named_with_its_date(moved: DashboardStore) -> None:
    moved.lags((3, 1, "t", 0, 5))
    for days, text in ((0, "08:00:00 UTC"), (1, "2027-01-15 08:00:00 UTC")):
        site = moved.site(TICK_MS + 86_400_000 * days)
        left = next(block for block in timeline(site, at()) if isinstance(block, Chart))
        assert left.title == f"Left to copy, 1 h to {text}"
        titles = [block.title for block in lag(site, at()) if isinstance(block, HeatMap)]
        assert [title.partition(", ")[2] for title in titles] == [f"1 h to {text}", f"at {text}"]


def test_nothing_is_left_to_copy_between_two_moves(store: DashboardStore) -> None:
    for before_ms in (1_800_000, 1_795_000, 5_000, 0):
        store.throttles(status(2, Role.LEADER, 6, 4, partition()), tick_ms=TICK_MS - before_ms)
        store.replicas(new_replica(), tick_ms=TICK_MS - before_ms)
    left, expected = (block for block in timeline(store.site(), at()) if isinstance(block, Chart))
    assert left.note.endswith("A gap: nothing moved, or was not evaluated.")
    assert [chart.svg.count('class="line reactive') for chart in (left, expected)] == [2, 2]


def test_a_long_range_has_a_bounded_number_of_points(store: DashboardStore) -> None:
    for tick in range(50):
        store.replicas(new_replica(), tick_ms=TICK_MS - tick * 100_000)
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    site = store.site()
    assert len(progress_history(site.tables, TickRange(CLUSTER, TICK_MS - 86_400_000, TICK_MS))) <= MOST_POINTS + 1
    # A point is the last tick of its time, and the newest one is always there.
    points = progress_history(site.tables, TickRange(CLUSTER, TICK_MS - 86_400_000_0, TICK_MS))
    assert len(points) < 50
    assert points[-1].tick_ms == TICK_MS


def test_a_day_is_read_while_others_go_on(moved: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each query can be made a new table. The usual reader, which would be asked otherwise, has other threads wait."""
    monkeypatch.setattr(open_tables, "query", lambda *_: pytest.fail("the usual reader is asked"))
    tables, broker_role = moved.site().tables, BrokerRole(2, Role.LEADER)
    assert [point.tick_ms - TICK_MS for point in progress_history(tables, DAY)] == [-2000, 0]
    assert [point.tick_ms - TICK_MS for point in throttle_history(tables, DAY, broker_role)] == [-5000, 0]
    assert [switch.tick_ms - TICK_MS for switch in leader_switches(tables, DAY)] == [-3000]
    assert [change.tick_ms - TICK_MS for change in rate_changes(tables, DAY)] == [0, -3000]


def counted(site: Site, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Return the queries over tables of moves from now on, as they come."""
    asked: list[str] = []
    whole, long = site.tables.records, site.tables.long_records

    def noting(of: Callable[..., list[Any]]) -> Callable[..., list[Any]]:
        def read(table: Table, sql: str, *more: Any) -> list[Any]:
            asked.append(sql)
            return of(table, sql, *more)

        return read

    monkeypatch.setattr(site.tables, "records", noting(whole))
    monkeypatch.setattr(site.tables, "long_records", noting(long))
    return asked


def first_read(sql: str) -> int:
    """Return how long before the tick a query begins, milliseconds."""
    (found,) = re.findall(r"tick_ms BETWEEN (\d+)", sql)
    return TICK_MS - int(found)


@pytest.mark.parametrize("span_s", [3600, 86_400])
def test_a_chart_that_goes_on_reads_only_the_last_minute_again(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch, span_s: int
) -> None:
    """It has the points of a chart that is read as a whole. Of a day a point is two minutes, from an even one on."""
    leader = status(1, Role.LEADER, 12, 10, partition())
    for before_ms in range(600_000, -1, -30_000):
        tick_ms = TICK_MS - before_ms
        store.throttles(leader, tick_ms=tick_ms)
        # What is written later is read too.
        if before_ms:
            store.replicas(new_replica(remaining_bytes=before_ms + 1), tick_ms=tick_ms)
    site = store.site()

    def live(last_ms: int) -> TickRange:
        return TickRange(CLUSTER, last_ms - span_s * 1000, last_ms, is_live=True)

    assert len(site.points.progress(live(TICK_MS))) == (20 if span_s == 3600 else 5)
    site.points.throttle(live(TICK_MS), BrokerRole(1, Role.LEADER))
    store.replicas(new_replica(remaining_bytes=1))
    asked = counted(site, monkeypatch)
    for passed_ms in (0, 40_000):
        store.replicas(new_replica(remaining_bytes=7), tick_ms=TICK_MS + passed_ms + 1)
        store.throttles(leader, tick_ms=TICK_MS + passed_ms + 1)
        ticks = live(TICK_MS + passed_ms + 1)
        progress, throttle = site.points.progress(ticks), site.points.throttle(ticks, BrokerRole(1, Role.LEADER))
        # A minute, and what is before it of its point.
        assert [first_read(sql) <= 60_000 + ticks.step_ms for sql in asked] == [True, True]
        assert progress == progress_history(store.site().tables, ticks)
        assert throttle == throttle_history(store.site().tables, ticks, BrokerRole(1, Role.LEADER))
        asked.clear()
    # Another topic, a moment of the past, and a tick before are other charts.
    for other in (replace(live(TICK_MS + 40_001), topic="u"), TickRange(CLUSTER, 0, TICK_MS + 40_001), live(TICK_MS)):
        site.points.progress(other)
        assert first_read(asked.pop()) >= span_s * 1000 - 40_001


def test_rows_that_are_written_hours_late_are_found_by_a_chart_that_goes_on(store: DashboardStore) -> None:
    site = store.site()
    store.replicas(new_replica())
    hour = TickRange(CLUSTER, TICK_MS - 3_600_000, TICK_MS, is_live=True)
    assert len(site.points.progress(hour)) == 1
    store.replicas(new_replica(), tick_ms=TICK_MS - 1_000_000)
    # 3,600 s / 24.
    for passed_ms, points in ((150_000, 1), (150_001, 2)):
        later = replace(hour, first_ms=hour.first_ms + passed_ms, last_ms=TICK_MS + passed_ms)
        assert len(site.points.progress(later)) == points


def test_nothing_moved_is_said(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    (only,) = [b for b in timeline(store.site(), at()) if isinstance(b, Paragraph)]
    assert only.text == "No partition was in a reassignment in this time."


def test_no_tick_is_unknown(store: DashboardStore) -> None:
    (only,) = timeline(store.site(), at())
    assert isinstance(only, Paragraph)
    assert only.tone.value == "unknown"


def test_a_chart_has_its_values_as_a_table(moved: DashboardStore) -> None:
    left, finish = [b for b in timeline(moved.site(), at()) if isinstance(b, Chart)]
    assert isinstance(left.table, DataTable)
    assert values(left.table.rows, "remaining_bytes")[0] == (20_000_000,)
    assert values(finish.table.rows, "finish_ms")[0] == (TICK_MS + 9000,)
    for chart in (left, finish):
        assert "<script" not in chart.svg
        assert "style" not in chart.svg


# A time that is played


def test_a_time_that_is_played_goes_on_until_now_and_then_as_it_comes() -> None:
    begun = at(at=TICK_MS, play=60)
    assert played(begun, 2.5, TICK_MS + 200_000) == at(at=TICK_MS + 150_000, play=60)
    assert played(begun, 3.5, TICK_MS + 200_000) == at()
    assert played(at(at=TICK_MS, play=60, until=TICK_MS + 90_000), 1.4, TICK_MS + 200_000).play == 60
    ended = at(at=TICK_MS + 90_000, until=TICK_MS + 90_000)
    assert played(at(at=TICK_MS, play=60, until=TICK_MS + 90_000), 1.5, TICK_MS + 200_000) == ended
    # The range ends later than now; and a moment after the range.
    assert played(at(at=TICK_MS, play=60, until=TICK_MS + 300_000), 6.0, TICK_MS + 200_000) == at()
    assert played(at(at=TICK_MS, play=60, until=TICK_MS - 1), 3.0, TICK_MS + 200_000).at == TICK_MS + 180_000
    # A moment that stands still, and now.
    for still in (at(at=TICK_MS), at(), at(play=60)):
        assert played(still, 2.5, TICK_MS + 200_000) == still


def test_a_page_that_plays_has_a_stream_of_moments(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    page = store.client(TICK_MS + 3_600_000).get(f"/moves?at={TICK_MS}&play=10").text
    assert f'data-events="/events/moves?at={TICK_MS}&amp;play=10"' in page
    assert 'id="play" href="/moves?at=1800000000000">Stop</a>' in page
    stopped = store.client(TICK_MS + 3_600_000).get(f"/moves?at={TICK_MS}").text
    assert "Play ×600" in stopped
    assert f"at={TICK_MS + 60_000}" in stopped


@pytest.mark.parametrize(
    ("query", "now_after_ms", "first_ms", "last_ms"),
    [
        # Half an hour before and after the moment, or up to the last full minute.
        ({}, 9_000_000, -1_800_000, 1_800_000),
        ({}, 60_500, -3_540_000, 60_000),
        ({}, -5_000, -3_600_000, 0),
        ({"until": TICK_MS + 1_200_000}, 9_000_000, -2_400_000, 1_200_000),
        ({"until": TICK_MS + 60_000, "span": 60}, 9_000_000, 0, 60_000),
        # The moment is in none of these.
        ({"until": TICK_MS - 1}, 9_000_000, -1_800_000, 1_800_000),
        ({"until": TICK_MS + 60_001, "span": 60}, 9_000_000, -30_000, 30_000),
    ],
)
def test_a_range_is_gone_through_from_end_to_end(
    store: DashboardStore, query: dict[str, int], now_after_ms: int, first_ms: int, last_ms: int
) -> None:
    address = at(at=TICK_MS, **query)
    assert address.replay_ms(TICK_MS + now_after_ms) == (TICK_MS + first_ms, TICK_MS + last_ms)
    page = Markup(store.client(TICK_MS + now_after_ms).get(address.url("/moves")).text)
    (bar,) = page.all("input", id="scrub")
    assert [bar.attributes[key] for key in ("type", "value")] == ["range", str(TICK_MS // 1000)]
    assert [bar.attributes[key] for key in ("min", "max")] == [
        str((TICK_MS + ms) // 1000) for ms in (first_ms, last_ms)
    ]
    assert bar.attributes["aria-valuetext"] == "2027-01-15 08:00:00 UTC"
    assert page.all("label", **{"for": "scrub"})


def test_now_has_no_range_but_leads_to_its_own(store: DashboardStore) -> None:
    assert at().replay_ms(TICK_MS) is None
    page = Markup(store.client().get("/lag?span=900").text)
    assert not page.all("input", id="scrub")
    (link,) = [a.attributes["href"] for a in page.all("a") if a.text == "Replay…"]
    assert link == f"/lag?span=900&at={TICK_MS - 900_000}&until={TICK_MS}"


# The report


def test_a_report_opens_without_script_and_without_a_network(moved: DashboardStore) -> None:
    moved.alerts(event(subject="broker 2 as leader", summary="<script>alert(1)</script>"))
    text = report(moved.site(), DAY)
    assert text.lstrip().startswith("<!doctype html>\n<!-- A report of Headroom -->")
    assert "default-src 'none'; style-src 'unsafe-inline'" in text
    assert re.findall(r"<(?:script|link|img|a|button|form)\b", text) == []
    assert re.findall(r"""\b(?:src|href|style|on\w+)\s*=""", text) == []
    assert "&lt;script&gt;alert(1)&lt;/script&gt;" in text
    for words in ("At the end", "How it went", "Throttle of broker 2 as leader", "What commands changed"):
        assert words in text


def test_a_report_that_ends_in_a_gap_does_not_end_with_the_verdict_before_it(moved: DashboardStore) -> None:
    """It ends an hour after the last tick."""
    text = report(moved.site(), TickRange(CLUSTER, TICK_MS - 3_600_000, TICK_MS + 3_600_000))
    (first,) = re.findall(r'<p class="paragraph unknown">(.*)</p>', text)
    assert first.endswith(
        " Not evaluated at 2027-01-15 09:00:00 UTC: the last verdict before it is of 2027-01-15 08:00:00 UTC."
    )
    assert "<dt>Then</dt>" in text


def test_a_report_of_a_time_without_ticks_is_refused(moved: DashboardStore) -> None:
    with pytest.raises(HeadroomError, match="has no tick from"):
        report(moved.site(), TickRange(CLUSTER, TICK_MS - 86_400_000, TICK_MS - 43_200_000))
    with pytest.raises(HeadroomError, match="cluster other"):
        report(moved.site(), TickRange("other", DAY.first_ms, DAY.last_ms))


def test_the_report_of_a_busy_hour_is_bounded_and_says_what_it_leaves_out(store: DashboardStore) -> None:
    """An hour of ticks every 5 s of 12 brokers and roles, none of which fits, and 1,000 alerts that fire."""
    usual = throttle_row(status(1, Role.LEADER, 6, 8, partition())) | {"partitions": [], "peers": []}
    brokers = [{"broker": broker, "role": role} for broker in range(6) for role in ("leader", "follower")]
    rates = [{"required_bytes_per_s": (8 + n % 7 / 3) * MB, "tick_ms": TICK_MS - n * 5000} for n in range(720)]
    store.rows(THROTTLE_HEADROOM, *({**usual, **broker, **rate} for rate in rates for broker in brokers))
    store.alerts(*(event(f"a{n}", tick_ms=TICK_MS - n) for n in range(1000)))
    text = report(store.site(), TickRange(CLUSTER, TICK_MS - 3_600_000, TICK_MS))
    assert len(text.encode()) <= 3_000_000
    # 720 / 60.
    assert "One row in 12 of 720; the chart has all." in text
    assert text.count('<article class="card') == 100
    assert "900 more alerts fired or ended, and are left out." in text


def test_the_report_of_a_large_move_is_bounded_although_its_texts_are_long(store: DashboardStore) -> None:
    """1,001 steps with terms of 3,000 characters before and after."""
    terms = json.dumps({f"key{n}": n for n in range(1000)})[:3000]
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    store.journal(*[{"step": "agree", "state": "done", "before": terms, "after": terms}] * 1001)
    text = report(store.site(), DAY)
    assert len(text.encode()) <= 3_000_000
    assert "The first 1000 of 1001 rows. The first 300 characters of each text." in text
    assert f"{terms[:299]}…" in unescape(text)
    assert terms[:300] not in unescape(text)
    # The page and its files have them whole.
    client = store.client()
    assert terms in unescape(client.get("/runs?run=r1&rows=1").text)
    assert client.get("/api/v1/runs?run=r1&rows=1").json()["steps"]["rows"][0]["after"] == terms


def test_a_report_that_is_too_large_leaves_out_its_last_charts_and_says_which(
    moved: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = report(moved.site(), DAY)
    charts = re.findall(r"<figcaption><h2>(.*)</h2>", whole)
    # Left to copy, the expected finish, and two throttles.
    assert len(charts) == 4
    left_out = re.compile(r"</span> (.*): left out, so that this file stays below 3 MB\.")
    monkeypatch.setattr(report_module, "_MOST_BYTES", len(whole.encode()) - 1)
    smaller = report(moved.site(), DAY)
    assert len(smaller.encode()) < len(whole.encode())
    assert left_out.findall(smaller) == charts[-1:]
    # Without any chart it is as small as it gets.
    monkeypatch.setattr(report_module, "_MOST_BYTES", 0)
    smallest = report(moved.site(), DAY)
    assert left_out.findall(smallest) == charts
    assert "<figure" not in smallest


def command(store: DashboardStore, *arguments: str) -> str:
    config = store.path.parent / "headroom.toml"
    config.write_text(
        f'[cluster]\nname = "{CLUSTER}"\nbootstrap_servers = "a:1"\n[store]\npath = "{store.path}"\n', encoding="utf-8"
    )
    done = CliRunner().invoke(headroom, ["report", "--config", str(config), *arguments])
    return done.output if done.exception is None else f"{done.output}{done.exception}"


def test_the_command_writes_the_last_hour_and_replaces_only_reports(moved: DashboardStore, tmp_path: Path) -> None:
    file = tmp_path / "move.html"
    for _ in range(2):
        text = command(moved, "--out", str(file))
        assert text.startswith(f"Wrote {file}: cluster prod, 2027-01-15 07:00:00 UTC to 2027-01-15 08:00:00 UTC, ")
    file.write_text("<!doctype html>\n<p>mine", encoding="utf-8")
    assert "exists and is not a report" in command(moved, "--out", str(file))
    assert file.read_text(encoding="utf-8").endswith("mine")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        (("--from", "2027-01-15T09:00Z", "--to", "2027-01-15T08:00Z"), "is not a range"),
        (("--from", "1999-01-15T09:00Z"), "is not a range"),
        (("--cluster", "gone"), "has no tick of cluster gone"),
        (("--topic", "a b"), "is not the name of a topic"),
    ],
)
def test_the_command_refuses_ranges_clusters_and_topics_that_are_none(
    moved: DashboardStore, tmp_path: Path, arguments: tuple[str, ...], part: str
) -> None:
    assert part in command(moved, *arguments, "--out", str(tmp_path / "move.html"))


def test_what_happened_is_marked_on_the_axis_of_charts(moved: DashboardStore) -> None:
    moved.alerts(event("a", tick_ms=TICK_MS - 3000), event("a", state="resolved", tick_ms=TICK_MS - 1000))
    moved.journal({"at_ms": TICK_MS - 2000}, {"at_ms": TICK_MS - 1000}, {"run_id": "r2", "at_ms": TICK_MS - 90_000_000})
    assert annotations_of(range_events(moved.site().tables, DAY)) == [
        ChartAnnotations("leader switch", [TICK_MS - 3000]),
        ChartAnnotations("alert", [TICK_MS - 3000]),
        ChartAnnotations("command", [TICK_MS - 2000]),
    ]
    for page in ("/timeline?span=900", "/throttles?broker=2&span=900"):
        text = moved.client().get(page).text
        for name in ("leader switch", "alert", "command"):
            assert f">{name}</text>" in text, (page, name)
            assert f"annotation-{name.replace(' ', '-')}" in text


def test_a_chart_annotates_what_lies_apart_between_its_ends() -> None:
    times_ms = [n * 1000 for n in range(1000)]
    annotations = [ChartAnnotations("alert", [-5, 0, 1, 999_000, 999_001]), ChartAnnotations("command", [2_000_000])]
    svg = over_time("T", times_ms, [ChartLine("a", [1.0] * 1000)], annotations=annotations)
    (series,) = re.findall(r'class="series serie-1 annotation-alert">(.*?)</g>', svg)
    # Two within a pixel are one; what lies beyond the ends is none.
    assert series.count("<path") == 2
    assert "annotation-command" not in svg
    assert over_time("T", [], [ChartLine("a", [])], annotations=annotations)
