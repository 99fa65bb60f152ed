"""Damaged tables: readers continue with the undamaged files, and writers wait."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

from headroom.schemas.tables import ALERT_EVENTS, Table
from headroom.streaming.durability.mend import mend
from headroom.streaming.store.damaged_tables import DamageCheck, read_undamaged
from tests.unit.streaming.delta.test_damage import commit_file, cut, data_file, table

__all__ = ["table"]


class Tables:
    """A store whose tables are all at one place, and that notes whether it passes over damage."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self.passes_over = False

    def location(self, _: Table) -> str:
        return str(self._path)

    def trouble(self) -> str | None:
        return None

    @contextmanager
    def skipping_damage(self) -> Iterator[None]:
        self.passes_over = True
        try:
            yield
        finally:
            self.passes_over = False


class Reader:
    """Fails as often as it is told to, and gives what it then finds."""

    def __init__(self, store: Tables, failures: int) -> None:
        self._store, self.failures = store, failures

    def __call__(self) -> list[str]:
        if self.failures:
            self.failures -= 1
            raise RuntimeError("failed")
        return ["left"] if self._store.passes_over else ["all"]


@pytest.mark.parametrize(("failures", "found"), [(0, ["all"]), (1, ["left"]), (2, [])])
def test_undamaged_files_of_a_damaged_table_are_read(
    table: Path, failures: int, found: list[str], caplog: pytest.LogCaptureFixture
) -> None:
    data_file(table, 1).unlink()
    store: Any = Tables(table)
    assert read_undamaged(store, [ALERT_EVENTS], Reader(store, failures), []) == found
    assert not store.passes_over
    assert ("maintain --repair" in caplog.text) is bool(failures)


def test_a_read_that_fails_without_damage_raises_its_error(table: Path) -> None:
    store: Any = Tables(table)
    with pytest.raises(RuntimeError):
        read_undamaged(store, [ALERT_EVENTS], Reader(store, 1), [])


def test_a_job_waits_until_its_damaged_table_is_repaired_and_logs_it_once(
    table: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    now_s = [0.0]
    store: Any = Tables(table)
    damaged = DamageCheck(store, [ALERT_EVENTS], lambda: now_s[0])
    assert not damaged.is_damaged()
    cut(commit_file(table, 3))
    results = []
    for _ in range(100):
        now_s[0] += 1
        results.append(damaged.is_damaged())
    assert all(results)
    assert len(caplog.records) == 1
    assert f"alerts/events is damaged: its file _delta_log/{3:020d}.json is cut off" in caplog.text
    mend(str(table))
    now_s[0] += 30
    assert not damaged.is_damaged()
