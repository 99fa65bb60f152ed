"""Figures of the API beside those of the tables, as the benchmark of the page compares them."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.groups.dashboard.shown_figures import OF_ALL_VIEWS, Compared, Get, wrong_figures
from benchmarks.groups.dashboard.views_store import make_views
from headroom.dashboard.address import View
from tests.unit.builders.dashboard_store import TICK_MS, DashboardStore

Written = tuple[Path, Get, list[int]]


@pytest.fixture(scope="module")
def written(tmp_path_factory: pytest.TempPathFactory) -> Written:
    """Return a store with every view, answers of its page, and its ticks."""
    folder = tmp_path_factory.mktemp("views") / "store"
    ticks_ms = make_views(folder, TICK_MS)
    client = DashboardStore(folder).client()
    return folder, lambda path: client.get(path).content, ticks_ms


def changed(get: Get, table: str, change: Callable[[list[dict[str, Any]]], None]) -> Get:
    """Return answers in which rows of a table are changed."""

    def answer(path: str) -> bytes:
        content = json.loads(get(path))
        change(content[table]["rows"])
        return json.dumps(content).encode()

    return answer


def test_every_view_is_compared() -> None:
    assert {one.view for one in OF_ALL_VIEWS} == set(View)


@pytest.mark.parametrize("one", OF_ALL_VIEWS, ids=lambda one: f"{one.view.value}-{one.source.path}")
def test_the_page_has_the_figures_of_the_tables_and_a_wrong_one_is_seen(written: Written, one: Compared) -> None:
    folder, get, ticks_ms = written
    for tick_ms in ticks_ms[1:]:
        assert wrong_figures(folder, get, one, tick_ms) == 0

    def forge(rows: list[dict[str, Any]]) -> None:
        for row in rows:
            row[one.columns[0]] = "forged"

    assert wrong_figures(folder, changed(get, one.table, forge), one, ticks_ms[-1]) == 1
    assert wrong_figures(folder, changed(get, one.table, list.clear), one, ticks_ms[-1]) == len(one.columns)
