"""Leaders, lag, runs and health."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any
from urllib.parse import parse_qsl, urlsplit

import pytest

from headroom.alerts.recommendations.elections import describe_plan
from headroom.dashboard.address import Address
from headroom.dashboard.data import journal
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, Commands, DataTable, Facts, HeatMap, Paragraph, Tone
from headroom.dashboard.views.health import health
from headroom.dashboard.views.lag import lag
from headroom.dashboard.views.leaders import leaders
from headroom.dashboard.views.runs import runs, unfinished_moves
from headroom.schemas.config import MigrationSettings, OriginSettings
from headroom.schemas.keys import Role
from headroom.schemas.tables import FETCHER_LAG, THROTTLE_HEADROOM, Table
from tests.unit.builders.dashboard_store import (
    CLUSTER,
    TICK_MS,
    DashboardStore,
    Row,
    at,
    event,
    leader_row,
    new_replica,
    values,
)
from tests.unit.builders.migration_progress import doomed, progress
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

ENOUGH = status(1, Role.LEADER, 12, 10, partition())


def table(blocks: Sequence[Block], name: str) -> DataTable:
    (one,) = [block for block in blocks if isinstance(block, DataTable) and block.name == name]
    return one


def paragraphs(blocks: Sequence[Block]) -> list[Paragraph]:
    return [block for block in blocks if isinstance(block, Paragraph)]


# Leaders


def test_leaders_that_were_not_counted_are_unknown(store: DashboardStore) -> None:
    (only,) = paragraphs(leaders(store.site(), at()))
    assert (only.tone, only.text) == (Tone.UNKNOWN, "Leaders of cluster prod were not counted yet.")


def test_a_balance_has_the_values_of_its_table(store: DashboardStore) -> None:
    given = leader_row(1001, 50, 10, unavailable=2, leaderless=3, waiting_for_move=4, write_bytes_per_s=None)
    store.leaders(given, leader_row(2, alive=False), leader_row(3))
    found = table(leaders(store.site(), at()), "leaders")
    for key in given.keys() & {column.key for column in found.columns}:
        assert found.rows[-1][key] == given[key], key
    assert values(found.rows, "broker", "state") == [(2, "down"), (3, "in balance"), (1001, "out of balance")]
    assert found.note == "Counted at 2027-01-15 08:00:00 UTC. 1 of 3 brokers out of balance."
    assert "1001" in Markup(store.client().get("/leaders").text).texts("td")


@pytest.mark.parametrize(("electable", "state"), [(10, "in balance"), (11, "out of balance")])
def test_a_broker_is_out_of_balance_above_its_threshold(store: DashboardStore, electable: int, state: str) -> None:
    store.leaders(leader_row(1, 100, electable))
    assert values(table(leaders(store.site(), at()), "leaders").rows, "state") == [(state,)]


def test_a_broker_that_no_election_brings_into_balance_is_not_called_balanced(store: DashboardStore) -> None:
    store.leaders(
        leader_row(1, 2, non_preferred_partitions=1, waiting_for_move=1), leader_row(2, 2, non_preferred_partitions=1)
    )
    assert values(table(leaders(store.site(), at()), "leaders").rows, "state") == [
        ("not electable, its partitions wait for the move",),
        ("not electable, its replicas are out of sync",),
    ]


def test_elections_are_described_as_in_alerts_with_their_commands(store: DashboardStore) -> None:
    store.leaders(leader_row(1, electable=30))
    store.elections(elections=30)
    blocks = leaders(store.site(), at())
    plan = store.site().moments.leaders("prod", TICK_MS)
    assert plan is not None
    assert paragraphs(blocks)[0].text == f"Elections: {describe_plan(plan.elections)}."
    (commands,) = [block for block in blocks if isinstance(block, Commands)]
    advice = store.watched("prod").recommender(elections=plan.elections).elect_preferred()
    assert list(commands.commands) == list(advice.commands)
    assert commands.commands


# As long as alerts name a plan: two minutes longer than a count.
@pytest.mark.parametrize(("age_ms", "is_known"), [(420_000, True), (420_001, False)])
def test_elections_that_were_planned_long_before_the_count_are_not_recommended(
    store: DashboardStore, age_ms: int, is_known: bool
) -> None:
    store.leaders(leader_row(1, electable=30))
    store.elections(elections=30, tick_ms=TICK_MS - age_ms)
    blocks = leaders(store.site(), at())
    assert (paragraphs(blocks)[0].text == f"Elections: {describe_plan(None)}.") is not is_known
    (commands,) = [block for block in blocks if isinstance(block, Commands)]
    # Kafka's command names partitions of the plan.
    assert len(commands.commands) == 1 + is_known


def test_without_imbalance_no_election_is_shown(store: DashboardStore) -> None:
    store.leaders(leader_row(1))
    store.elections(elections=30)
    assert [type(block) for block in leaders(store.site(), at())] == [DataTable]


def test_leaders_are_those_of_the_newest_count_up_to_the_moment(store: DashboardStore) -> None:
    store.leaders(leader_row(1, electable=30), tick_ms=TICK_MS - 60_000)
    store.leaders(leader_row(1))
    past = table(leaders(store.site(), at(at=TICK_MS - 1)), "leaders")
    assert values(past.rows, "electable_now") == [(30,)]
    assert values(table(leaders(store.site(), at()), "leaders").rows, "electable_now") == [(0,)]


def test_a_count_of_older_days_is_found_and_shown_as_old(store: DashboardStore) -> None:
    store.leaders(leader_row(1), leader_row(2, electable=30), tick_ms=TICK_MS - 40 * 86_400_000)
    store.elections(elections=30, tick_ms=TICK_MS - 40 * 86_400_000)
    blocks = leaders(store.site(), at())
    # 40 days; nothing is recommended by it.
    assert [type(block) for block in blocks] == [Paragraph, DataTable]
    assert paragraphs(blocks) == [
        Paragraph(
            "Leaders were last counted 960 h before the moment that is shown, at 2026-12-06 08:00:00 UTC. What follows "
            "is the state of then.",
            Tone.UNKNOWN,
        )
    ]
    rows = table(blocks, "leaders").rows
    assert values(rows, "state", "electable_now") == [("unknown", 0), ("unknown", 30)]
    # At the moment of the count it was the state.
    assert values(table(leaders(store.site(), at(at=TICK_MS - 40 * 86_400_000)), "leaders").rows, "state") == [
        ("in balance",),
        ("out of balance",),
    ]


# As long as alerts take a count for that of now: five minutes.
@pytest.mark.parametrize(("age_ms", "state"), [(300_000, "in balance"), (300_001, "unknown")])
def test_a_count_of_leaders_is_old_after_five_minutes(store: DashboardStore, age_ms: int, state: str) -> None:
    store.leaders(leader_row(1))
    assert values(table(leaders(store.site(TICK_MS + age_ms), at()), "leaders").rows, "state") == [(state,)]


# Lag


def test_lag_that_was_not_read_is_unknown(store: DashboardStore) -> None:
    (only,) = paragraphs(lag(store.site(), at()))
    assert only.tone is Tone.UNKNOWN
    assert only.text.startswith("No lag of cluster prod is in gold/replication_lag yet")


def test_a_gauge_without_a_value_is_unknown_and_not_in_step(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.lags((3, 1, "t", 0, None), (3, 1, "t", 1, 0), (4, 1, "t", 2, 0), (5, 1, "t", 3, None), (5, 1, "t", 4, 7))
    rows = table(lag(store.site(), at()), "lag").rows
    keys = ("broker", "state", "replicas", "behind", "unknown", "lag_offsets", "greatest_lag_offsets")
    assert values(rows, *keys) == [
        (3, "unknown", 2, 0, 1, 0, 0),
        (4, "in step", 1, 0, 0, 0, 0),
        (5, "behind", 2, 1, 1, 7, 7),
    ]


def test_a_replica_may_have_no_gauge_while_no_metadata_say_which_there_are(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.throttles(ENOUGH, tick_ms=TICK_MS - 1000)
    store.lags((3, 1, "t", 0, 0), tick_ms=TICK_MS - 1000)
    store.lags((3, 1, "t", 0, 0), has_metadata=False)
    assert values(table(lag(store.site(), at()), "lag").rows, "missing", "state") == [(None, "unknown")]
    for heat_map, text in zip(heat_maps(store), ("×?", "≥0 ×?"), strict=True):
        assert (heat_map.cells[0][-1].level, heat_map.cells[0][-1].text) == (0, text)
        assert heat_map.cells[0][-1].title.endswith("0 offsets, whether each replica has a gauge is unknown")
    assert values(table(lag(store.site(), at(at=TICK_MS - 1000)), "lag").rows, "missing", "state") == [(0, "in step")]


def test_a_message_that_was_delivered_twice_counts_once(store: DashboardStore) -> None:
    message = [(3, 1, "t", 0, 5), (3, 1, "t", 1, None), (3, 2, "t", 2, 4)]
    store.lags(*message)
    store.lags(*message)
    rows = table(lag(store.site(), at()), "lag").rows
    expected = [(3, 1, 2, 1, 1, 5), (3, 2, 1, 1, 0, 4)]
    assert values(rows, "broker", "source_broker", "replicas", "behind", "unknown", "lag_offsets") == expected


def test_no_known_gauge_has_neither_a_greatest_lag_nor_a_sum(store: DashboardStore) -> None:
    store.lags((3, 1, "t", 0, None))
    rows = table(lag(store.site(), at()), "lag").rows
    assert values(rows, "greatest_lag_offsets", "lag_offsets") == [(None, None)]


# Five minutes: the history may be minutes behind.
@pytest.mark.parametrize(("age_ms", "state"), [(300_000, "in step"), (300_001, "unknown")])
def test_lag_that_is_not_written_any_more_is_not_in_step(store: DashboardStore, age_ms: int, state: str) -> None:
    store.throttles(ENOUGH)
    store.lags((3, 1, "t", 0, 0))
    for now_ms, address in ((TICK_MS + age_ms, at()), (TICK_MS + 9_000_000, at(at=TICK_MS + age_ms))):
        blocks = lag(store.site(now_ms), address)
        assert values(table(blocks, "lag").rows, "state") == [(state,)]
        said = [block.text for block in paragraphs(blocks) if block.tone is Tone.UNKNOWN]
        assert [text[:66] for text in said] == (
            ["Lag was last read 5 min before the moment that is shown, at 2027-0"] if state == "unknown" else []
        )


@pytest.mark.parametrize(("before_ms", "is_known"), [(0, True), (30_000, True), (60_001, False)])
def test_a_gauge_may_be_frozen_while_no_verdict_says_so(store: DashboardStore, before_ms: int, is_known: bool) -> None:
    store.lags((3, 1, "t", 0, 0))
    assert values(table(lag(store.site(), at()), "lag").rows, "frozen", "state") == [(None, "unknown")]
    store.throttles(ENOUGH, tick_ms=TICK_MS - before_ms)
    blocks = lag(store.site(), at())
    assert values(table(blocks, "lag").rows, "frozen", "state") == [(0, "in step") if is_known else (None, "unknown")]
    said = "Which gauges are frozen is unknown: there is no verdict of 2027-01-15 08:00:00 UTC, when lag was read."
    assert [block.text for block in paragraphs(blocks)] == ([] if is_known else [said])


def heat_maps(store: DashboardStore, **query: Any) -> tuple[HeatMap, HeatMap]:
    over_time, by_source = (block for block in lag(store.site(), at(**query)) if isinstance(block, HeatMap))
    return over_time, by_source


def test_followers_are_shown_by_source_and_what_is_no_number_looks_like_none(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.lags(
        (3, 1, "t", 0, 0), (3, 2, "t", 1, 12_000), (4, 1, "t", 2, None), (5, 1, "t", 3, 150), (5, 1, "t", 4, None)
    )
    _, by_source = heat_maps(store)
    assert (by_source.rows, by_source.columns) == (["3", "4", "5"], ["1", "2"])
    cells = [[(cell.level, cell.text) for cell in row] for row in by_source.cells]
    assert cells == [[(0, "0"), (4, "12,000")], [(None, "?"), (None, "")], [(2, "≥150 ?"), (None, "")]]
    assert by_source.cells[2][0].title == "broker 5 from broker 1: 150 offsets, 1 unknown"


def test_a_frozen_gauge_has_a_letter_of_its_own_and_shows_no_number(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    gone = {"frozen": True, "lag_gauge_offsets": None}
    store.replicas(new_replica(0, frozen=True), new_replica(1, frozen=True), new_replica(2, adding_replica=4, **gone))
    store.lags((3, 1, "t", 0, 1000), (3, 1, "t", 1, None), (3, 2, "t", 5, 7), (4, 1, "t", 2, None), (5, 1, "t", 6, 0))
    over_time, by_source = heat_maps(store)
    cells = [[(cell.level, cell.text) for cell in row] for row in by_source.cells]
    assert cells == [[(None, "?F"), (1, "7")], [(None, "?"), (None, "")], [(0, "0"), (None, "")]]
    assert by_source.cells[0][0].title == "broker 3 from broker 1: no known lag, 1 unknown, 2 whose gauge is frozen"
    assert [(row[-1].level, row[-1].text) for row in over_time.cells] == [(None, "?F"), (None, "?"), (0, "")]
    assert all("F: a gauge is frozen" in heat_map.note for heat_map in (over_time, by_source))
    assert values(table(lag(store.site(), at()), "lag").rows, "broker", "frozen", "state")[::2] == [
        (3, 2, "behind"),
        (4, 0, "unknown"),
    ]
    page = store.client().get("/lag").text
    assert 'class="no-number" title="broker 3 from broker 1' in page
    # Of each the newest part of the hour.
    assert over_time.table is not None
    assert values(over_time.table.rows, "broker", "frozen") == [(5, 0), (4, 0), (3, 2)]


def test_the_greatest_lag_of_each_part_of_the_time_is_shown(store: DashboardStore) -> None:
    for before_ms, offsets in ((3_599_000, 5), (1_000_000, 200), (990_000, 100_000), (0, None)):
        store.throttles(ENOUGH, tick_ms=TICK_MS - before_ms)
        store.lags((3, 1, "t", 0, offsets), tick_ms=TICK_MS - before_ms)
    # Beyond the hour.
    store.lags((4, 1, "t", 0, 7), tick_ms=TICK_MS - 3_700_000)
    over_time, _ = heat_maps(store)
    assert over_time.rows == ["3"]
    assert len(over_time.columns) == len(over_time.cells[0]) == 60
    shown = {n: (cell.level, cell.text) for n, cell in enumerate(over_time.cells[0]) if cell.title}
    assert shown == {0: (1, ""), 43: (5, ""), 59: (None, "?")}
    assert over_time.table is not None
    assert [row["greatest_lag_offsets"] for row in over_time.table.rows] == [None, 100_000, 5]
    assert heat_maps(store, span=900)[0].cells[0][-1].text == "?"


def test_parts_of_the_time_without_verdicts_may_have_frozen_gauges(store: DashboardStore) -> None:
    # A verdict counts for a minute; the parts are a minute long, and the last one ends with the newest tick.
    for before_ms in (3_000_000, 2_995_000, 1_200_000, 0):
        store.throttles(ENOUGH, tick_ms=TICK_MS - before_ms)
    known = {3_000_000, 2_995_000, 2_935_000, 1_200_000, 1_140_000, 0}
    unknown = {3_100_000, 2_934_999, 2_000_000, 1_139_999}
    for before_ms in known | unknown:
        store.lags((3, 1, "t", 0, 5), tick_ms=TICK_MS - before_ms)
    over_time, _ = heat_maps(store)
    assert over_time.table is not None
    first_ms = TICK_MS - 3_600_000
    parts = {row["at_ms"]: row["frozen"] for row in over_time.table.rows}
    step_ms = 60_001
    unknown_parts = {first_ms + (3_600_000 - ms) // step_ms * step_ms for ms in unknown}
    assert {at_ms for at_ms, frozen in parts.items() if frozen is None} == unknown_parts
    assert set(parts.values()) == {None, 0}
    cells = {
        cell.title[-36:]: (cell.level, cell.text) for cell in over_time.cells[0] if cell.level is None and cell.title
    }
    assert cells == {", which gauges are frozen is unknown": (None, "F?")}
    assert {(cell.level, cell.text) for cell in over_time.cells[0] if cell.title} == {(1, ""), (None, "F?")}
    assert "F?: no verdict says whether one is." in over_time.note


def test_only_the_brokers_that_are_furthest_behind_are_shown(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.lags(*((broker, 1, "t", 0, broker) for broker in range(2, 60)))
    over_time, by_source = heat_maps(store)
    for heat_map in (over_time, by_source):
        assert heat_map.rows == [str(broker) for broker in range(20, 60)]
        assert "The 40 furthest behind; 18 more are in the table." in heat_map.note
    page = store.client().get("/lag")
    assert page.status_code == 200
    assert 'class="heat-1" title="broker 59 from broker 1: 59 offsets">59</td>' in page.text
    assert store.client().get("/api/v1/lag/history.csv").text.count("\n") == 59


def test_a_broker_without_a_known_lag_is_not_left_out_as_one_that_is_in_step(store: DashboardStore) -> None:
    store.lags((2, 1, "t", 0, None), *((broker, 1, "t", 0, broker) for broker in range(3, 60)))
    for heat_map in heat_maps(store):
        # The 39 that are furthest behind: 21 to 59.
        assert heat_map.rows == ["2", *(str(broker) for broker in range(21, 60))]
        assert "The 40 furthest behind, or without a known lag; 18 more are in the table." in heat_map.note


# Runs

RUN = {"step": "run", "subject": "fingerprint", "before": None, "after": None}
RATE_1, RATE_2 = {"subject": "broker 1 as leader"}, {"subject": "broker 2 as leader"}
DONE, FAILED, UNDONE = {"state": "done"}, {"state": "failed"}, {"state": "undone"}


@pytest.mark.parametrize(
    ("rows", "state"),
    [
        ([RUN], "not ended"),
        ([RUN, RATE_1, RATE_1 | DONE], "not ended"),
        ([RUN, RATE_1, RATE_1 | DONE, RUN | DONE], "done"),
        ([RUN, RUN | UNDONE], "ended early"),
        ([RUN, RUN | FAILED], "ended early"),
        # It was taken up again.
        ([RUN, RUN | UNDONE, RUN], "not ended"),
        ([RUN, RUN | UNDONE, RUN, RUN | DONE], "done"),
        # Commands without a step about the whole.
        ([RATE_1], "not ended"),
        ([RATE_1, RATE_2, RATE_1 | DONE], "not ended"),
        ([RATE_1, RATE_2, RATE_1 | DONE, RATE_2 | DONE], "done"),
        ([RATE_1, RATE_2, RATE_1 | DONE, RATE_2 | FAILED], "ended early"),
        # The same step failed, and was then taken.
        ([RATE_1, RATE_1 | FAILED, RATE_1, RATE_1 | DONE], "done"),
        ([RATE_1, RATE_1 | DONE, RATE_1 | UNDONE], "done"),
    ],
)
def test_the_state_of_a_command_follows_from_its_steps(store: DashboardStore, rows: list[Row], state: str) -> None:
    store.journal(*rows)
    (row,) = table(runs(store.site(), at()), "runs").rows
    assert row["state"] == state
    assert (row["steps"], row["failed"]) == (len(rows), sum(one.get("state") == "failed" for one in rows))


def test_runs_are_those_of_the_cluster_up_to_the_moment_the_newest_first(store: DashboardStore) -> None:
    store.journal({"run_id": "a", "at_ms": TICK_MS}, {"run_id": "a", "at_ms": TICK_MS + 10, **DONE})
    store.journal({"run_id": "b", "at_ms": TICK_MS + 5, "command": "throttle apply", "by": "ann@host"})
    store.journal({"run_id": "c", "cluster": "other"})
    found = table(runs(store.site(), at()), "runs")
    assert values(found.rows, "run_id", "began_ms", "last_ms", "command", "by") == [
        ("b", TICK_MS + 5, TICK_MS + 5, "throttle apply", "ann@host"),
        ("a", TICK_MS, TICK_MS + 10, "reassign run", "ops@host"),
    ]
    past = table(runs(store.site(), at(at=TICK_MS + 4)), "runs")
    assert values(past.rows, "run_id", "state", "last_ms") == [("a", "not ended", TICK_MS)]


def test_a_run_is_that_of_the_command_that_began_it_also_where_another_one_takes_it_back(store: DashboardStore) -> None:
    begun = {"by": "zoe@host", "command": "reassign run"}
    taken_back = {"by": "anna@host", "command": "reassign clean"}
    move = {"step": "submit", "subject": "t-0"}
    # What it has left is removed only in part: a partition still moves.
    store.journal(RUN | begun, move | begun, RATE_1 | begun, RATE_1 | UNDONE | taken_back)
    site = store.site()
    (row,) = table(runs(site, at()), "runs").rows
    assert (row["command"], row["by"], row["state"]) == ("reassign run", "zoe@host", "not ended")
    # So it keeps its card.
    assert [one["run_id"] for one in unfinished_moves(site, at())] == ["r1"]


def test_the_steps_of_a_run_are_in_their_order_with_the_values_of_the_journal(store: DashboardStore) -> None:
    store.journal({"before": "5600000", "after": "9600000"}, {"before": "5600000", "after": "9600000", **DONE})
    store.journal({"run_id": "other"})
    steps = table(runs(store.site(), at(run="r1")), "steps")
    assert values(steps.rows, "seq", "step", "state", "subject", "before", "after") == [
        (1, "rate", "intended", "broker 1 as leader", "5600000", "9600000"),
        (2, "rate", "done", "broker 1 as leader", "5600000", "9600000"),
    ]
    # People read a rate with its unit.
    texts = {column.key: column.text(steps.rows[0]) for column in steps.columns}
    assert (texts["before"], texts["after"]) == ("5.60 MB/s", "9.60 MB/s")
    unknown = table(runs(store.site(), at(run="' OR 1=1 --")), "steps")
    assert (unknown.rows, unknown.empty) == ([], "It has no step.")


def test_of_a_large_run_only_the_steps_of_a_page_are_read_and_once(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    store.journal(*({"step": "submit", "subject": f"t-{n}", "after": None if n == 3 else str(n)} for n in range(5)))
    site, read = store.site(), []
    rows = site.tables.rows

    def noting(source: Table, sql: str) -> list[dict[str, Any]] | None:
        found = rows(source, sql)
        read.append(len(found or ()))
        return found

    monkeypatch.setattr(site.tables, "rows", noting)
    shown = []
    for page in (1, 2, 3, 2):
        address = at(run="r1", rows=2, page=page, sort="-after")
        steps = table(runs(site, address), "steps")
        shown.append([row["after"] for row in steps.page(address.paging)])
        assert (len(steps.rows), steps.pages(address.paging)) == (5, 3)
    # Missing ones are last.
    assert shown == [["4", "2"], ["1", "0"], [None], ["1", "0"]]
    # The page that was asked for twice was read once, beside the runs, their number and the rates of this one.
    assert sorted(read)[-3:] == [1, 2, 2]
    store.journal({"step": "submit", "seq": 6})
    steps = table(runs(site, at(run="r1")), "steps")
    assert [row["subject"] for row in steps.rows[1:5:2]] == ["t-1", "t-3"]
    assert len(list(steps.rows)) == 6
    assert store.client().get("/api/v1/runs/steps.csv?run=r1").text.count("\n") == 7


def test_without_a_journal_nothing_was_changed(store: DashboardStore) -> None:
    found = table(runs(store.site(), at()), "runs")
    assert (found.rows, found.empty[:38]) == ([], "No command of Headroom has changed thi")


def test_the_newest_runs_are_shown_and_older_ones_by_a_link(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_RUNS", 3)
    for number in range(8):
        store.journal({"run_id": f"r{number}", "at_ms": TICK_MS + number})
    # The oldest one goes on, and is not among the newest for that.
    store.journal({"run_id": "r0", "seq": 9, "at_ms": TICK_MS + 20, **DONE})
    shown, address = [], at(topic="x")
    for _ in range(3):
        found = table(runs(store.site(), address), "runs")
        shown.append([row["run_id"] for row in found.rows])
        if found.older is not None:
            assert found.note == "The newest 3 runs."
            address = Address.model_validate(dict(parse_qsl(urlsplit(found.older).query)))
    assert shown == [["r7", "r6", "r5"], ["r4", "r3", "r2"], ["r1", "r0"]]
    assert (found.older, found.note, address.topic) == (None, "", "x")
    # What is played would go on from there.
    assert "play" not in (table(runs(store.site(), at(at=TICK_MS + 9, play=60)), "runs").older or "")
    answer = store.client().get("/api/v1/runs").json()["runs"]
    assert (answer["total"], answer["older"]) == (3, f"/api/v1/runs?at={TICK_MS + 4}")
    assert "older" not in store.client().get(f"/api/v1/runs?at={TICK_MS}").json()["runs"]
    page = Markup(store.client().get("/runs").text)
    assert [a.attributes["href"] for a in page.all("a") if a.text == "Older ones"] == [f"/runs?at={TICK_MS + 4}"]


def test_more_runs_of_one_moment_than_are_shown_do_not_hide_those_before_them(
    store: DashboardStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(journal, "MOST_RUNS", 2)
    store.journal(*({"run_id": f"r{number}"} for number in range(4)), {"run_id": "old", "at_ms": TICK_MS - 1})
    shown, moment = set(), None
    for _ in range(3):
        newest = store.site().journal.newest("prod", TICK_MS if moment is None else moment)
        shown |= {row["run_id"] for row in newest.rows}
        moment = newest.before_ms
        if moment is None:
            break
    assert "old" in shown


def test_a_journal_that_has_not_grown_is_not_read_again(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    store.journal({"run_id": "a"})
    site, reads = store.site(), []
    rows = site.tables.rows

    def counted(table: Table, sql: str) -> list[dict[str, Any]] | None:
        reads.append(table.path)
        return rows(table, sql)

    monkeypatch.setattr(site.tables, "rows", counted)
    first = table(runs(site, at()), "runs").rows
    read = len(reads)
    assert (table(runs(site, at()), "runs").rows, len(reads)) == (first, read)
    store.journal({"run_id": "b", "at_ms": TICK_MS + 1})
    assert [row["run_id"] for row in table(runs(site, at()), "runs").rows] == ["b", "a"]
    # Another cluster, and another moment, are other answers.
    assert not table(runs(site, at(cluster="other")), "runs").rows
    assert [row["run_id"] for row in table(runs(site, at(at=TICK_MS)), "runs").rows] == ["a"]


# Health


def states(store: DashboardStore, **query: Any) -> dict[str, str]:
    return dict(values(table(health(store.site(), at(**query)), "tables").rows, "table", "state"))


def evaluation(store: DashboardStore, now_ms: int = TICK_MS) -> tuple[str, Tone]:
    (facts,) = [block for block in health(store.site(now_ms), at()) if isinstance(block, Facts)]
    return facts.terms[0].text, facts.terms[0].tone


def test_the_age_of_each_table_is_that_of_its_newest_tick(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.lags((3, 1, "t", 0, 5), tick_ms=TICK_MS - 30_000)
    rows = table(health(store.site(TICK_MS + 2_000), at()), "tables").rows
    known = {row["table"]: (row["tick_ms"], row["age_s"]) for row in rows if row["tick_ms"] is not None}
    assert known == {
        "gold/throttle_headroom": (TICK_MS, 2.0),
        "gold/replication_lag": (TICK_MS - 30_000, 32.0),
        "silver/fetcher_lag": (TICK_MS - 30_000, 32.0),
    }
    assert {row["state"] for row in rows if row["tick_ms"] is None} == {"no rows"}
    assert evaluation(store) == ("Cluster prod: last evaluated 0 s ago.", Tone.GOOD)


def test_a_table_that_does_not_follow_the_ticks_any_more_is_old(store: DashboardStore) -> None:
    """Lag and silver are not written any more; new replicas are none because nothing moves."""
    store.throttles(ENOUGH)
    store.leaders(leader_row(1))
    store.lags((3, 1, "t", 0, 5), tick_ms=TICK_MS - 301_000)
    store.replicas(new_replica(), tick_ms=TICK_MS - 7_200_000)
    found = {path: state for path, state in states(store).items() if state != "no rows"}
    assert found == {
        "gold/throttle_headroom": "readable",
        "gold/leader_imbalance": "readable",
        "gold/replication_lag": "old",
        "silver/fetcher_lag": "old",
        "gold/reassignment_progress": "readable",
    }
    # An hour later, which nothing evaluates.
    later = states(store, at=TICK_MS + 3_600_000)
    assert (later["gold/throttle_headroom"], later["gold/leader_imbalance"]) == ("old", "old")


def test_tables_of_migrations_are_old_only_where_topics_migrate_from_an_origin(store: DashboardStore) -> None:
    store.throttles(ENOUGH)
    store.migrations(progress(0, groups=(doomed(),)), tick_ms=TICK_MS - 60_001)
    without = store.watched(CLUSTER)
    origin = MigrationSettings(origin=OriginSettings(bootstrap_servers="old:9092"))
    migrating = replace(without, settings=replace(without.settings, migration=origin))
    for watched, state in ((without, "readable"), (migrating, "old")):
        rows = table(health(Site([watched], lambda: TICK_MS), at()), "tables").rows
        found = dict(values(rows, "table", "state"))
        assert (found["gold/migration_progress"], found["gold/migration_groups"]) == (state, "readable")


def test_alerts_and_the_journal_have_the_time_of_their_newest_row(store: DashboardStore) -> None:
    store.alerts(event("a", tick_ms=TICK_MS - 5000), event("b", tick_ms=TICK_MS + 5000), event("c", cluster="other"))
    store.deliveries({"delivery_ms": TICK_MS - 4000})
    # A silence of all clusters.
    store.suppressions({"mark_ms": TICK_MS - 3000, "cluster": None})
    store.journal({"at_ms": TICK_MS - 2000}, {"run_id": "other", "cluster": "other"})
    rows = table(health(store.site(), at(at=TICK_MS)), "tables").rows
    known = {row["table"]: (row["tick_ms"] - TICK_MS, row["state"]) for row in rows if row["tick_ms"] is not None}
    assert known == {
        "alerts/events": (-5000, "readable"),
        "alerts/deliveries": (-4000, "readable"),
        "alerts/marks": (-3000, "readable"),
        "actions/journal": (-2000, "readable"),
    }


def test_the_table_of_verdicts_is_old_after_three_ticks_of_its_own_cluster(store: DashboardStore) -> None:
    """Ticks of the cluster are two minutes apart, and those of the first one on the page 5 s."""
    store.throttles(ENOUGH, cluster="slow")
    watched = [store.watched(CLUSTER), store.watched("slow", 120.0)]
    for age_ms, state in ((360_000, "readable"), (360_001, "old")):
        blocks = health(Site(watched, lambda: TICK_MS + 9_000_000), at(cluster="slow", at=TICK_MS + age_ms))
        found = table(blocks, "tables")
        assert dict(values(found.rows, "table", "state"))["gold/throttle_headroom"] == state


def test_no_evaluation_is_not_good(store: DashboardStore) -> None:
    assert evaluation(store)[1] is Tone.UNKNOWN
    store.throttles(ENOUGH)
    text, tone = evaluation(store, TICK_MS + 3_600_000)
    assert (tone, text[:24]) == (Tone.UNKNOWN, "NOT EVALUATED for 1 h: t")


@pytest.mark.parametrize("broken", [THROTTLE_HEADROOM, FETCHER_LAG], ids=lambda one: one.path)
def test_one_table_that_cannot_be_read_is_shown_among_the_others(store: DashboardStore, broken: Table) -> None:
    store.throttles(ENOUGH)
    store.lags((3, 1, "t", 0, 5))
    store.leaders(leader_row(1))
    for file in (store.path / broken.path).rglob("*.parquet"):
        file.write_bytes(b"PAR1")
    found = states(store)
    assert found[broken.path] == "unreadable"
    assert found["gold/leader_imbalance"] == "readable"
    assert len([path for path, state in found.items() if state == "readable"]) == 3
    page = store.client().get("/health")
    assert page.status_code == 200
    assert "unreadable" in page.text
    assert store.client().get("/api/v1/health").status_code == 200


def collection(store: DashboardStore, now_ms: int = TICK_MS) -> dict[str, tuple[str, Tone]]:
    (facts,) = [block for block in health(store.site(now_ms), at()) if isinstance(block, Facts)]
    return {term.name: (term.text, term.tone) for term in facts.terms[1:-1]}


ENDED = {"started_ms": TICK_MS, "ended_ms": TICK_MS + 300, "lateness_ms": 0, "skipped_ticks": 0, "unanswered": []}


def test_who_did_not_answer_is_named_and_how_late_the_collector_is(store: DashboardStore) -> None:
    missing = [{"broker": n, "reason": "timed out"} for n in range(12, 0, -1)]
    late = {"lateness_ms": 1500, "skipped_ticks": 4, "unanswered": missing, "collector_host": "h", "collector_pid": 7}
    store.tick_ends({**ENDED, "tick_ms": TICK_MS - 5000}, {**ENDED, **late})
    # Of another cluster whose name has this one's in it, of another kind, and of an earlier time.
    store.tick_ends(
        {**ENDED, "cluster": f"{CLUSTER}-2"}, {**ENDED, "kind": "moves"}, {**ENDED, "tick_ms": TICK_MS - 7000}
    )
    found = collection(store)
    text, tone = found["Collection"]
    assert text.endswith("took 300 ms, began 1,500 ms late, by h, process 7"), text
    assert tone is Tone.QUIET
    assert found["Skipped ticks"][0].startswith("4 before it")
    assert found["Did not answer"][0].startswith("broker 1 (timed out); broker 2 (timed out)")
    assert found["Did not answer"][0].endswith("broker 10 (timed out); and 2 more")
    assert found["Did not answer"][1] is Tone.WARNING


def test_what_the_collector_says_is_unknown_without_a_tick_of_the_last_minutes(store: DashboardStore) -> None:
    assert collection(store)["Collection"][1] is Tone.UNKNOWN
    store.tick_ends(ENDED)
    assert list(collection(store)) == ["Collection"]
    assert collection(store, TICK_MS + 3_600_000)["Collection"][1] is Tone.UNKNOWN


def test_a_record_of_another_program_does_not_hide_what_the_collector_says(store: DashboardStore) -> None:
    store.tick_ends(ENDED)
    store.tick_ends(ENDED, key=b"\xff")
    assert collection(store)["Collection"][0].startswith("tick of 2027-01-15 08:00:00 UTC")


@pytest.mark.parametrize("value", [b"", b"[]", b"\xff", b"{", b'{"unanswered": [1]}', b'{"lateness_ms": "x"}'])
def test_an_end_that_cannot_be_used_is_said_beside_the_rest(store: DashboardStore, value: bytes) -> None:
    store.throttles(ENOUGH)
    store.tick_ends(ENDED, value=value)
    assert store.client().get("/health").status_code == 200
    assert "gold/throttle_headroom" in states(store)
