"""The API: the same values as on the page, in pages and in order; errors as JSON."""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.dashboard.address import View
from headroom.dashboard.rendering import VIEWS, table_csv
from headroom.dashboard.views.blocks import DataColumn, DataTable, Paging, tables_of
from headroom.schemas.keys import Role
from tests.unit.builders.dashboard_store import MB, TICK_MS, DashboardStore, at, event, leader_row, new_replica
from tests.unit.builders.migration_progress import doomed, progress, unread
from tests.unit.builders.throttle_status import partition, status

LEADER = status(1, Role.LEADER, 12, 10, partition(), partition(1, write_bytes_per_s=None), eta_s=60.0)


@pytest.fixture
def filled(store: DashboardStore) -> DashboardStore:
    """Return a store with rows for every view."""
    store.throttles(LEADER, status(2, Role.FOLLOWER, None, None, partition(), throttle_known=False))
    store.throttles(LEADER, tick_ms=TICK_MS - 1000)
    store.replicas(
        new_replica(0), new_replica(1, "never", leader=None), new_replica(2, "no_data", remaining_bytes=None)
    )
    store.rates(("t", 0, 1, 2 * MB, "log_size"), ("t", 1, 1, None, None))
    store.leaders(leader_row(1), leader_row(2, electable=30, write_bytes_per_s=None))
    store.elections(elections=30)
    store.lags((3, 1, "t", 0, 5), (3, 2, "t", 1, None))
    store.migrations(progress(groups=(doomed(),)), unread(partition=1))
    store.alerts(event(), event("b", "resolved"))
    store.deliveries({}, {"state": "failed", "answer": '=HYPERLINK("http://x")', "delivery_ms": TICK_MS + 1})
    store.journal({}, {"state": "done"})
    return store


QUERIES = [
    *((view, {}) for view in View),
    (View.THROTTLES, {"broker": 1}),
    (View.THROTTLES, {"rate": "11 MB"}),
    (View.RUNS, {"run": "r1"}),
    (View.MOVES, {"state": "never"}),
    (View.MIGRATION, {"state": "shielded"}),
]


@pytest.mark.parametrize(("view", "query"), QUERIES)
def test_every_value_of_json_and_csv_is_that_of_the_tables_row(
    filled: DashboardStore, view: View, query: Mapping[str, Any]
) -> None:
    client = filled.client()
    answer = client.get(f"/api/v1/{view.value}", params=query)
    assert answer.status_code == 200
    tables = tables_of(VIEWS[view](filled.site(), at(**query)))
    assert [name for name in answer.json() if name != "active"] == [table.name for table in tables]
    assert any(table.rows for table in tables)
    for table in tables:
        keys = [column.key for column in table.columns if column.key != "bar"]
        shown = answer.json()[table.name]
        assert shown["rows"] == [{key: row.get(key) for key in keys} for row in table.rows]
        assert (shown["total"], shown["page"], shown["pages"]) == (len(table.rows), 1, 1)
        file = client.get(f"/api/v1/{view.value}/{table.name}.csv", params=query)
        assert file.headers["content-type"] == "text/csv; charset=utf-8"
        assert file.headers["content-disposition"] == f'attachment; filename="{view.value}-{table.name}.csv"'
        first, *lines = csv.reader(io.StringIO(file.text))
        assert first == keys
        assert lines == [[cell_of(row.get(key)) for key in keys] for row in table.rows]


def cell_of(value: object) -> str:
    text = "" if value is None else str(value)
    return f"'{text}" if isinstance(value, str) and text.startswith(("=", "-", "+", "@")) else text


TABLE = DataTable(
    "t",
    "T",
    (DataColumn("name", "name"), DataColumn("size", "size")),
    [{"name": name, "size": size} for name, size in (("c", 2), ("a", None), ("b", 3), ("e", None), ("d", 1))],
)


def names(table: DataTable, **paging: Any) -> str:
    return "".join(row["name"] for row in table.page(Paging(**paging)))


def test_pages_are_parts_of_all_rows_in_order() -> None:
    assert names(TABLE) == "cabed"
    assert [names(TABLE, page=page, page_rows=2) for page in (1, 2, 3, 4)] == ["ca", "be", "d", ""]
    assert TABLE.pages(Paging(page_rows=2)) == 3
    assert replace(TABLE, rows=[]).pages(Paging()) == 1


def test_unknown_values_are_last_in_both_directions() -> None:
    assert names(TABLE, sort="size") == "dcbae"
    assert names(TABLE, sort="-size") == "bcdae"
    assert names(TABLE, sort="-name") == "edcba"
    # Pages are cut after the sort.
    assert names(TABLE, sort="size", page=2, page_rows=3) == "ae"


def test_a_column_that_there_is_not_sorts_nothing() -> None:
    assert names(TABLE, sort="colour") == names(TABLE, sort="--size") == names(TABLE, sort="-") == "cabed"


@given(st.lists(st.none() | st.integers() | st.floats(allow_nan=False)), st.booleans())
def test_a_sort_keeps_every_row_and_orders_the_known_ones(sizes: list[float | None], greatest_first: bool) -> None:
    table = replace(TABLE, rows=[{"name": n, "size": size} for n, size in enumerate(sizes)])
    rows = table.sorted_rows("-size" if greatest_first else "size")
    assert sorted(row["name"] for row in rows) == list(range(len(sizes)))
    known = [row["size"] for row in rows if row["size"] is not None]
    assert [row["size"] for row in rows[: len(known)]] == known == sorted(known, reverse=greatest_first)


@pytest.mark.parametrize(("view", "query"), QUERIES)
def test_every_column_of_every_view_sorts_and_a_picture_does_not(
    filled: DashboardStore, view: View, query: Mapping[str, Any]
) -> None:
    for table in tables_of(VIEWS[view](filled.site(), at(**query))):
        for column in table.columns:
            for sort in (column.key, f"-{column.key}"):
                rows = table.sorted_rows(sort)
                assert sorted(map(repr, rows)) == sorted(map(repr, table.rows)), sort
                if column.key == "bar":
                    assert rows == table.rows


def test_the_api_has_the_page_that_is_asked_for(filled: DashboardStore) -> None:
    answer = filled.client().get("/api/v1/moves?rows=1&page=2&sort=-remaining_bytes").json()["replicas"]
    assert ([row["name"] for row in answer["rows"]], answer["total"], answer["pages"]) == (["t-0"], 3, 3)
    beyond = filled.client().get("/api/v1/moves?page=99").json()["replicas"]
    assert (beyond["rows"], beyond["total"]) == ([], 3)


def test_a_file_has_all_rows_whatever_page_is_shown(filled: DashboardStore) -> None:
    file = filled.client().get("/api/v1/moves/replicas.csv?rows=1&page=2&sort=name").text
    assert [line.split(",")[0] for line in file.splitlines()] == ["name", "t-0", "t-1", "t-2"]


FORMULAS = [
    "=1+1",
    "+1",
    "-1",
    "@SUM(A1)",
    "\uff1d1",
    "\uff0b1",
    "\uff0d1",
    "\uff20A",
    "\t=1",
    "\r=1",
    "\n=1",
    '=HYPERLINK("http://x","y")',
]


@pytest.mark.parametrize("text", FORMULAS)
def test_a_text_that_a_spreadsheet_would_calculate_is_quoted(text: str) -> None:
    file = table_csv(replace(TABLE, rows=[{"name": text, "size": -1}]), None)
    (_, row) = csv.reader(io.StringIO(file, newline=""))
    # A number is a number.
    assert row == [f"'{text}", "-1"]


def test_names_of_topics_come_back_from_a_file() -> None:
    texts = ["a,b", 'a"b', "ünï", "a=b", "two\nlines"]
    file = table_csv(replace(TABLE, rows=[{"name": text, "size": None} for text in texts]), None)
    assert [row[0] for row in csv.reader(io.StringIO(file, newline=""))][1:] == texts


@pytest.mark.parametrize(
    ("path", "status_code", "text"),
    [
        ("/api/v1/moves/nosuch.csv", 404, "The view moves has no table of that name."),
        ("/api/v1/nosuch/replicas.csv", 404, "There is no such page."),
        ("/api/v1/nosuch", 404, "There is no such page."),
        ("/api/v1/moves/replicas.xlsx", 404, "There is no such page."),
        ("/api/v2/moves", 404, "There is no such page."),
        ("/api/v1/moves?page=0", 422, "page=0 is not valid"),
        ("/api/v1/headline?at=1", 422, "at=1 is not valid"),
        ("/api/v1/moves/replicas.csv?rows=x", 422, "rows=x is not valid"),
    ],
)
def test_errors_of_the_api_are_json(filled: DashboardStore, path: str, status_code: int, text: str) -> None:
    answer = filled.client().get(path)
    assert answer.status_code == status_code
    assert answer.json()["error"].startswith(text)


@pytest.mark.parametrize("path", ["/nosuch", "/favicon.ico", "/moves/x", "/static/nosuch.js", "/events/nosuch"])
def test_a_page_that_there_is_not_says_so(filled: DashboardStore, path: str) -> None:
    answer = filled.client().get(path)
    assert answer.status_code == 404
    assert "There is no such page." in answer.text


@pytest.mark.parametrize(
    "path", ["/api/v1/moves", "/api/v1/moves/replicas.csv", "/api/v1/clusters", "/api/v1/headline"]
)
def test_a_table_that_cannot_be_read_is_503(filled: DashboardStore, path: str) -> None:
    for name in ("gold/throttle_headroom", "gold/reassignment_progress"):
        for file in (filled.path / name).rglob("*.parquet"):
            file.write_bytes(b"PAR1")
    answer = filled.client().get(path)
    assert answer.status_code == 503
    assert "is damaged" in answer.json()["error"]


def test_only_reading_is_possible(filled: DashboardStore) -> None:
    before = {path: path.read_bytes() for path in sorted(filled.path.rglob("*")) if path.is_file()}
    client = filled.client(TICK_MS + 3_600_000)
    for path in ("/moves", "/api/v1/moves", "/api/v1/moves/replicas.csv", "/api/v1/clusters", "/"):
        for method in ("POST", "PUT", "PATCH", "DELETE"):
            answer = client.request(method, path)
            assert answer.status_code == 405
            assert answer.json() == {"error": "Method Not Allowed"}
    for view, query in QUERIES:
        client.get(f"/{view.value}", params=query)
    assert {path: path.read_bytes() for path in sorted(filled.path.rglob("*")) if path.is_file()} == before


def test_clusters_are_those_with_settings_and_then_those_of_the_tables(store: DashboardStore) -> None:
    assert store.client().get("/api/v1/clusters").json() == ["prod"]
    store.throttles(LEADER, cluster="b")
    store.throttles(LEADER, cluster="a")
    store.throttles(LEADER)
    assert store.client().get("/api/v1/clusters").json() == ["prod", "a", "b"]
    assert store.client().get("/api/v1/throttles?cluster=b").json()["throttles"]["total"] == 1
    assert store.client().get("/api/v1/throttles?cluster=nosuch").json() == {}


def test_a_number_that_json_does_not_have_is_null(store: DashboardStore) -> None:
    store.throttles(replace(LEADER, load=replace(LEADER.load, used_bytes_per_s=float("nan"))))
    answer = store.client().get("/api/v1/throttles")
    assert answer.status_code == 200
    assert answer.json()["throttles"]["rows"][0]["quota_bytes_per_s"] is None
    assert store.client().get("/throttles?broker=1").status_code == 200


def test_the_api_describes_itself(store: DashboardStore) -> None:
    described = store.client().get("/api/v1/openapi.json").json()
    assert {"/api/v1/clusters", "/api/v1/headline", "/api/v1/{view}", "/api/v1/{view}/{table}.csv"} == set(
        described["paths"]
    )


def test_the_root_leads_to_the_moves_with_its_keys(store: DashboardStore) -> None:
    answer = store.client().get(f"/?cluster=b&at={TICK_MS}")
    assert (answer.status_code, answer.headers["location"]) == (307, f"/moves?cluster=b&at={TICK_MS}")


def test_a_failure_of_the_server_is_said_as_such(store: DashboardStore, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*_: object) -> None:
        raise RuntimeError("secret detail")

    monkeypatch.setitem(VIEWS, View.LAG, fail)
    answer = store.client().get("/api/v1/lag")
    assert answer.status_code == 500
    assert "secret detail" not in answer.text
    assert "log of headroom dashboard" in answer.json()["error"]
    assert "log of headroom dashboard" in store.client().get("/lag").text


def test_alerts_that_have_not_ended_are_active(store: DashboardStore) -> None:
    store.throttles(status(1, Role.LEADER, 12, 10, partition()))
    store.alerts(event("a", "firing"), event("b", "resolved"))
    active = store.client().get("/api/v1/alerts").json()["active"]
    assert active["total"] == 1
    assert (active["rows"][0]["alert_id"], active["rows"][0]["tone"]) == ("a", "critical")
