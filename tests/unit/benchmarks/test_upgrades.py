"""Figures of the group upgrades: what counts as a failed upgrade, and that rows are compared value by value."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from benchmarks.groups.durability import upgrades
from benchmarks.groups.durability.upgrades import UpgradeOutcome, difference, figures, played
from headroom.schemas.tables import ACTION_JOURNAL, Column
from scripts.table_definitions import sets

OLDER = replace(ACTION_JOURNAL, columns=ACTION_JOURNAL.columns[:-1])


@pytest.fixture(autouse=True)
def _one_table(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(upgrades, "ALL_TABLES", (ACTION_JOURNAL,))
    monkeypatch.setattr(upgrades, "_TODAY", {ACTION_JOURNAL.path: ACTION_JOURNAL})


def test_a_table_with_fewer_columns_is_upgraded_and_used_by_its_version_again() -> None:
    assert played([OLDER]) == UpgradeOutcome(1, [], [])


def test_a_table_that_cannot_be_upgraded_has_failed_both_ways_with_its_name() -> None:
    of_another_type = Column("at_ms", "STRING", "time of writing")
    outcome = played([replace(OLDER, columns=(*OLDER.columns, of_another_type))])
    assert outcome.failed == 2
    assert "at_ms" in outcome.upgrade[0]


def test_an_upgrade_that_changes_a_row_has_failed() -> None:
    def opening(store: Path) -> None:
        upgrades.upgrade_without_spark(str(store / OLDER.path), ACTION_JOURNAL)
        # Of this version's row two, the text in a column is another one.
        upgrades.append_columns(
            upgrades.DeltaTable(str(store / OLDER.path)),
            {**{name: [value] for name, value in upgrades.row(ACTION_JOURNAL, 2).items()}, "subject": ["other"]},
        )

    outcome = played([OLDER], opening)
    assert outcome.upgrade == ["actions/journal: row 2: subject is 'other', not 's'"]


@pytest.mark.parametrize(
    ("found", "wanted", "at"),
    [
        ({"a": 1, "b": None}, {"a": 1}, ""),
        ({"a": 1, "b": 2}, {"a": 1}, "b is 2, not None"),
        ({"a": 1}, {"a": 1, "b": 2}, "b is None, not 2"),
        ({"a": [{"b": 1, "c": None}]}, {"a": [{"b": 1}]}, ""),
        ({"a": [{"b": 1, "c": 3}]}, {"a": [{"b": 1}]}, "a[].c is 3, not None"),
        ({"a": []}, {"a": [{"b": 1}]}, "a is [], not [{'b': 1}]"),
        ({"a": {"b": None}}, {}, ""),
    ],
)
def test_rows_are_compared_value_by_value_and_new_columns_are_null(found: Any, wanted: Any, at: str) -> None:
    assert difference(found, wanted) == at


def test_each_store_counts_as_an_upgrade_and_a_downgrade() -> None:
    outcomes = [UpgradeOutcome(24, [], []), UpgradeOutcome(24, [], ["x"]), UpgradeOutcome(24, ["a", "b"], ["c"])]
    failed, tables = figures(outcomes)
    assert (failed.name, failed.value, failed.n) == ("upgrades_failed", 3, 6)
    assert (tables.value, tables.n) == (72, 3)


def test_the_oldest_set_has_fewer_tables_than_this_version() -> None:
    assert len(sets()[0]) < len(sets()[-1])
