"""Throttles: what each carries, what another rate would do, and how it came."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import replace
from math import inf, nextafter
from typing import Any
from xml.etree import ElementTree

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.dashboard.acting.actions import Actions
from headroom.dashboard.app import create_app
from headroom.dashboard.data.history import throttle_history
from headroom.dashboard.data.moment import ClusterMoment
from headroom.dashboard.data.timeline import MOST_POINTS, TickRange
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, Chart, DataTable, Paragraph, Tone
from headroom.dashboard.views.chart import ChartLine, over_time
from headroom.dashboard.views.throttles import throttles, tried_at
from headroom.planning.finish.finish_time import finish
from headroom.planning.throttles.recommendation import ThrottlePolicy, recommend
from headroom.schemas.alerts import TOO_LOW, Verdict
from headroom.schemas.keys import BrokerRole, Role
from headroom.schemas.quantities import parse_bytes_per_s
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.schemas.text.amounts import duration_range_text
from tests.unit.builders.acting import buttons
from tests.unit.builders.dashboard_store import (
    CLUSTER,
    HOSTS,
    MB,
    TICK_MS,
    Client,
    DashboardStore,
    at,
    throttle_row,
    values,
)
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

LEADER = status(1, Role.LEADER, 12, 10, partition(), used_bytes_per_s=9.5 * MB, eta_s=60.0)
FOLLOWER = status(3, Role.FOLLOWER, 12, 8, partition(), in_sync_mb=0)


def blocks(store: DashboardStore, **query: Any) -> Sequence[Block]:
    return throttles(store.site(), at(**query))


def table(found: Sequence[Block], name: str) -> DataTable:
    (one,) = [block for block in found if isinstance(block, DataTable) and block.name == name]
    return one


def tried(store: DashboardStore, rate: str) -> Paragraph:
    first = blocks(store, rate=rate)[0]
    assert isinstance(first, Paragraph)
    return first


def test_a_row_has_the_values_of_its_table(store: DashboardStore) -> None:
    store.throttles(LEADER)
    (row,) = table(blocks(store), "throttles").rows
    given = throttle_row(LEADER)
    same = ("broker", "role", "verdict", "throttle_bytes_per_s", "in_sync_bytes_per_s", "required_bytes_per_s")
    for key in (*same, "quota_bytes_per_s", "headroom_bytes_per_s", "remaining_bytes", "eta_s", "reason"):
        assert row[key] == given[key], key
    # 12 - 10 MB/s.
    assert row["headroom_bytes_per_s"] == 2 * MB
    assert (row["subject"], row["replicas"]) == ("broker 1 as leader", 1)
    assert row["throttle"] == "/throttles?broker=1"


def test_unknown_ones_and_those_that_are_too_low_come_first(store: DashboardStore) -> None:
    store.throttles(
        status(1, Role.LEADER, None, 0, limited=0, in_sync_mb=0),
        LEADER,
        status(2, Role.LEADER, 5, 8, partition(), in_sync_mb=6),
        status(4, Role.LEADER, 12, None, partition()),
        status(5, Role.LEADER, None, 8, partition()),
    )
    verdicts = [row["verdict"] for row in table(blocks(store), "throttles").rows]
    assert verdicts == ["no_data", "unthrottled", "starved", "catching_up", "idle"]


def test_a_throttle_that_is_unknown_is_not_shown_as_none(store: DashboardStore) -> None:
    unread = status(1, Role.LEADER, None, 8, partition(), throttle_known=False)
    assert unread.verdict is Verdict.NO_DATA
    store.throttles(unread, status(2, Role.LEADER, None, 8, partition()))
    page = Markup(store.client().get("/throttles").text)
    bars = [svg.attributes["aria-label"] for svg in page.all("svg", role="img")]
    assert bars == ["throttle unknown, required 8.00 MB/s", "throttle none, required 8.00 MB/s"]
    cells = page.texts("td", **{"class": "amount"})
    # The first amount of each of the two rows is the throttle.
    assert (cells[0], cells[len(cells) // 2]) == ("unknown", "none")


# Each example simulates a move.
@settings(max_examples=20)
@given(
    in_sync=st.integers(0, 50),
    behind=st.integers(1, 50),
    down=st.integers(0, 20),
    in_force=st.none() | st.integers(1, 200),
)
def test_the_verdict_on_a_rate_is_that_of_planning(in_sync: int, behind: int, down: int, in_force: int | None) -> None:
    one = status(
        1,
        Role.LEADER,
        in_force,
        in_sync + behind,
        partition(),
        in_sync_mb=in_sync,
        down_required_bytes_per_s=down * MB,
    )
    lasting = one.load.lasting_required_bytes_per_s
    assert lasting == (in_sync + behind + down) * MB
    for rate, enough in ((lasting, False), (nextafter(lasting, 0), False), (nextafter(lasting, inf), True)):
        paragraph, rows, *_ = tried_at(ClusterMoment(CLUSTER, TICK_MS, (one,), (), None), rate, at())
        assert isinstance(paragraph, Paragraph)
        assert isinstance(rows, DataTable)
        assert (paragraph.tone in (Tone.CRITICAL, Tone.WARNING)) is not enough
        # A throttle at this rate limits the same load, once dead brokers are back.
        load = replace(one.load, throttle_bytes_per_s=rate, required_bytes_per_s=lasting, down_required_bytes_per_s=0.0)
        assert rows.rows[0]["verdict"] == load.verdict.value
        assert (load.verdict is Verdict.CATCHING_UP) is enough
        assert paragraph.text.endswith("is too low: the move never finishes.") is (load.verdict in TOO_LOW)
    # What planning recommends, where a throttle is in force, is enough.
    advised = recommend([one.load], ThrottlePolicy())
    assert advised is None or (advised.throttle_bytes_per_s or inf) > lasting


def test_a_rate_that_is_enough_has_the_finish_of_planning(store: DashboardStore) -> None:
    store.throttles(LEADER, FOLLOWER)
    loads = [replace(s.load, throttle_bytes_per_s=20 * MB) for s in site_statuses(store)]
    expected = finish(loads, 20 * MB)
    assert expected is not None
    found = tried(store, "20 MB")
    assert found.tone is Tone.GOOD
    finish_text = duration_range_text(expected.low_s, expected.high_s)
    assert found.text == f"A throttle of 20.00 MB/s on every broker: the move finishes in {finish_text}."


def site_statuses(store: DashboardStore) -> Sequence[ThrottleStatus]:
    moment = store.site().moment(at())
    assert moment is not None
    return moment.statuses


@pytest.mark.parametrize("in_force_mb", [None, 500])
def test_a_rate_below_the_one_in_force_is_tried_too(store: DashboardStore, in_force_mb: float | None) -> None:
    """A move at 500 MB/s, or without a throttle, is slower at 11 MB/s; it is as slow as one with 11 MB/s in force."""
    big = {"remaining_bytes": 600_000_000}
    store.throttles(status(1, Role.LEADER, in_force_mb, 10, partition(), **big))
    other = DashboardStore(store.path / "other")
    other.throttles(status(1, Role.LEADER, 11, 10, partition(), **big))
    text = tried(store, "11 MB").text
    assert text == tried(other, "11 MB").text
    # 600 MB at 1 MB/s take ten minutes.
    assert "min" in text


def test_a_rate_is_not_tried_with_an_unknown_requirement(store: DashboardStore) -> None:
    store.throttles(LEADER, status(2, Role.LEADER, 12, None, partition()))
    found = tried(store, "100 MB")
    assert (found.tone, found.text) == (
        Tone.UNKNOWN,
        "A throttle of 100 MB/s on every broker: unknown, because a required rate is unknown.",
    )
    rows = table(blocks(store, rate="100 MB"), "tried").rows
    assert values(rows, "verdict", "margin_bytes_per_s") == [("catching_up", 90 * MB), ("no_data", None)]
    # What is too low for one stays so, whatever another requires.
    assert tried(store, "9 MB").tone is Tone.CRITICAL


def test_a_rate_limits_nothing_if_no_replica_is_behind(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, limited=0))
    assert tried(store, "1 MB").text.endswith("would limit nothing: no replica is behind.")


def test_what_is_left_may_be_unknown(store: DashboardStore) -> None:
    store.throttles(replace(LEADER, load=replace(LEADER.load, remaining_bytes=None)))
    found = tried(store, "20 MB")
    assert found.tone is Tone.UNKNOWN
    assert found.text == "A throttle of 20.00 MB/s on every broker is enough; when the move finishes is unknown."


# 10 MB/s are required, and a broker carries 30 MB/s.
@pytest.mark.parametrize(
    ("rate", "why_not"),
    [
        ("20 MB", None),
        ("30 MB", None),
        ("30.1 MB", "cluster.replication_capacity is 30.00 MB/s"),
        ("1 MB", "the move would never finish"),
    ],
)
def test_a_tried_rate_that_does_harm_is_shown_without_a_button(
    store: DashboardStore, actions: Actions, rate: str, why_not: str | None
) -> None:
    store.throttles(LEADER)
    watched = store.watched(CLUSTER)
    cluster = replace(watched.settings.cluster, replication_capacity=30 * MB)
    site = Site([replace(watched, settings=replace(watched.settings, cluster=cluster))], lambda: TICK_MS, actions)
    page = Client(create_app(site, HOSTS)).get("/throttles", params={"rate": rate})
    (command,) = [code for code in Markup(page.text).texts("code") if code.startswith("headroom throttle apply")]
    assert f"--rate {round(parse_bytes_per_s(rate))}" in command
    assert len(buttons(page, "data-copy")) == 1
    assert len(buttons(page, "data-run")) == (1 if why_not is None else 0)
    lead = "Set it on these brokers, where it may lower a rate"
    assert f"<p>{lead}{'' if why_not is None else f'. To copy only, because {why_not}'}:</p>" in page.text


@pytest.mark.parametrize(("age_ms", "is_of_now"), [(60_000, True), (60_001, False)])
def test_a_throttle_of_a_watch_that_has_ended_is_not_said_to_be_enough(
    store: DashboardStore, age_ms: int, is_of_now: bool
) -> None:
    store.throttles(LEADER, FOLLOWER)
    for site, address in (
        (store.site(TICK_MS + age_ms), at(rate="20 MB")),
        (store.site(TICK_MS + 9_000_000), at(rate="20 MB", at=TICK_MS + age_ms)),
    ):
        found = throttles(site, address)
        said = [block for block in found if isinstance(block, Paragraph)]
        assert said[-1].tone is (Tone.GOOD if is_of_now else Tone.UNKNOWN)
        of_then = [block.text for block in said[:-1]]
        assert of_then == ([] if is_of_now else ["What follows is the state of 2027-01-15 08:00:00 UTC."])
        verdicts = [column for name in ("tried", "throttles") for column in table(found, name).columns if column.tones]
        assert len(verdicts) == (2 if is_of_now else 0)


def history(store: DashboardStore, broker: int, role: str, **query: Any) -> tuple[Chart, DataTable]:
    (chart,) = [b for b in blocks(store, broker=broker, role=role, **query) if isinstance(b, Chart)]
    return chart, chart.table


def test_the_history_is_of_one_broker_and_role(store: DashboardStore) -> None:
    store.throttles(LEADER, FOLLOWER, status(1, Role.FOLLOWER, 99, 1), tick_ms=TICK_MS - 1000)
    store.throttles(LEADER, FOLLOWER)
    store.throttles(status(1, Role.LEADER, 77, 1), tick_ms=TICK_MS, cluster="other")
    chart, points = history(store, 1, "leader")
    rows = values(points.rows, "tick_ms", "ticks", "throttle_bytes_per_s", "required_bytes_per_s", "quota_bytes_per_s")
    # The newest first.
    assert rows == [(TICK_MS, 1, 12 * MB, 10 * MB, 9.5 * MB), (TICK_MS - 1000, 1, 12 * MB, 10 * MB, 9.5 * MB)]
    assert (chart.title, chart.note) == ("Throttle of broker 1 as leader, 1 h", "")
    assert values(history(store, 3, "follower")[1].rows, "required_bytes_per_s") == [(8 * MB,), (8 * MB,)]


def test_the_range_ends_at_the_moment_and_begins_a_span_before(store: DashboardStore) -> None:
    for ms in (-61_000, -60_000, -1_000, 0, 1_000):
        store.throttles(LEADER, tick_ms=TICK_MS + ms)
    _, points = history(store, 1, "leader", at=TICK_MS, span=60)
    assert [row["tick_ms"] - TICK_MS for row in points.rows] == [0, -1_000, -60_000]


def test_a_broker_without_a_row_says_so(store: DashboardStore) -> None:
    store.throttles(LEADER)
    first = blocks(store, broker=9, role="follower")[0]
    assert isinstance(first, Paragraph)
    assert first.text == "Broker 9 has no row as follower in this tick."


@pytest.mark.parametrize("shift_ms", [0, 1, 59_999, 119_999])
def test_a_day_is_at_most_721_points_with_the_worst_of_their_ticks(store: DashboardStore, shift_ms: int) -> None:
    # 25 h of ticks 60 s apart; a point is of 120 s.
    ticks = [TICK_MS - n * 60_000 + shift_ms for n in range(1500)]
    usual = throttle_row(LEADER)
    lowest, greatest = 700, 701
    rows = []
    for n, tick_ms in enumerate(ticks):
        row = {**usual, "tick_ms": tick_ms, "remaining_bytes": n, "partitions": [], "peers": []}
        row["throttle_bytes_per_s"] = 1 * MB if n == lowest else 12 * MB
        row["required_bytes_per_s"] = 50 * MB if n == greatest else 10 * MB
        row["quota_bytes_per_s"] = None if n % 2 else 9 * MB
        row["verdict"] = "starved" if n == 0 else "catching_up"
        rows.append(row)
    store.rows(THROTTLE_HEADROOM, *rows)
    tables = store.site().tables
    last_ms = TICK_MS + shift_ms
    points = throttle_history(tables, TickRange(CLUSTER, last_ms - 86_400_000, last_ms), BrokerRole(1, Role.LEADER))
    assert len(points) <= MOST_POINTS + 1 == 721
    # A day, both ends included.
    assert sum(point.ticks for point in points) == 1441
    assert [point.tick_ms for point in points] == sorted({point.tick_ms for point in points})
    assert min(point.throttle_bytes_per_s or inf for point in points) == 1 * MB
    assert max(point.required_bytes_per_s or 0 for point in points) == 50 * MB
    (low,) = [point for point in points if point.throttle_bytes_per_s == 1 * MB]
    assert low.tick_ms <= ticks[lowest] < low.tick_ms + 120_000
    # The newest tick is the last one's state.
    assert (points[-1].verdict, points[-1].remaining_bytes) == ("starved", 0)


@given(st.integers(60, 604_800), st.integers(0, 10**7))
def test_no_range_has_more_points(span_s: int, first_ms: int) -> None:
    """The steps of a range, as the query counts them, whatever moment it begins at."""
    step_ms = TickRange(CLUSTER, first_ms, first_ms + span_s * 1000).step_ms
    assert (first_ms + span_s * 1000) // step_ms - first_ms // step_ms + 1 <= MOST_POINTS + 1


VALUES = st.none() | st.sampled_from([0.0, 1.0, 5e6]) | st.floats(0, 1e13)


@given(st.lists(VALUES, min_size=1, max_size=6), st.sampled_from([0, 1, 1000, 604_800_000]))
def test_every_chart_is_well_formed_and_has_no_script_and_style(rates: list[float | None], step_ms: int) -> None:
    times = [TICK_MS + n * step_ms for n in range(len(rates))]
    svg = over_time("Throttle & <broker>", times, [ChartLine("a", rates, True), ChartLine("b", rates[::-1])])
    root = ElementTree.fromstring(svg)
    assert root.get("aria-label") == "Throttle & <broker>"
    names = {node.tag.rpartition("}")[2] for node in root.iter()}
    assert not names & {"script", "style", "defs", "image", "a", "foreignObject"}
    attributes = {(name.rpartition("}")[2], value) for node in root.iter() for name, value in node.attrib.items()}
    assert not {name for name, _ in attributes if name == "style" or name.startswith("on")}
    assert not [value for _, value in attributes if "://" in value or "NaN" in value or "nan" in value]


def paths(svg: str) -> list[list[tuple[float, float]]]:
    """Return the points of each line of a picture."""
    found = [n for n in ElementTree.fromstring(svg).iter() if "reactive" in n.get("class", "").split() and n.get("d")]
    numbers = [[float(one) for one in re.findall(r"-?[0-9.]+", node.get("d", ""))] for node in found]
    return [list(zip(one[::2], one[1::2], strict=True)) for one in numbers]


@pytest.mark.parametrize(("bridged_ms", "parts"), [(None, 1), (3_595_000, 1), (3_594_999, 2)])
def test_a_line_does_not_bridge_a_time_without_ticks(bridged_ms: int | None, parts: int) -> None:
    times = [TICK_MS, TICK_MS + 5_000, TICK_MS + 3_600_000, TICK_MS + 3_605_000]
    for is_area in (False, True):
        line = ChartLine("required", [4.0, 5.0, 6.0, 7.0], is_area)
        found = paths(over_time("Throttle", times, [line], bridged_ms=bridged_ms))
        assert len(found) == parts
        for points in found if is_area else ():
            # Each part of an area stands on its base.
            assert points[0][1] == points[-1][1] == max(y for _, y in points)


def test_a_range_with_a_time_without_verdicts_says_that_its_chart_has_a_gap(store: DashboardStore) -> None:
    # A line bridges a step of 5 s and three intervals, a minute at least.
    for before_ms, note in ((0, ""), (65_000, ""), (130_001, "A gap: there is no verdict.")):
        store.throttles(LEADER, tick_ms=TICK_MS - before_ms)
        assert history(store, 1, "leader")[0].note == note


def test_a_single_point_that_does_not_fit_is_seen(store: DashboardStore) -> None:
    too_low = status(1, Role.LEADER, 12, 15, partition(), in_sync_mb=0)
    for n, one in enumerate([LEADER, too_low, LEADER]):
        store.throttles(one, tick_ms=TICK_MS + n * 60_000)
    chart, _ = history(store, 1, "leader", at=TICK_MS + 120_000)
    dots = [node for node in ElementTree.fromstring(chart.svg).iter() if node.tag.endswith("circle")]
    assert len(dots) == 1


def test_evidence_and_rates_of_a_leader_are_shown(store: DashboardStore) -> None:
    store.throttles(replace(LEADER, partitions=(partition(0, leader=1001), partition(1, write_bytes_per_s=None))))
    store.rates(("t", 0, 1, 2e6, "log_size"), ("t", 1, 1, None, None), ("t", 2, 2, 3e6, "log_size"))
    found = blocks(store, broker=1)
    behind = table(found, "behind")
    # Each of two followers counts with 2 MB/s.
    assert values(behind.rows, "name", "bytes_per_s", "leader") == [("t-0", 4 * MB, 1001), ("t-1", None, 1)]
    # An unknown rate may be the greatest.
    assert values(table(found, "rates").rows, "name", "write_bytes_per_s") == [("t-1", None), ("t-0", 2 * MB)]
    assert "1001" in Markup(store.client().get("/throttles?broker=1").text).texts("td")


def test_evidence_that_is_cut_off_says_how_much_more_counts(store: DashboardStore) -> None:
    store.throttles(replace(LEADER, counting_partitions=21))
    assert table(blocks(store, broker=1), "behind").note == "Those with the largest traffic; 20 more count."
