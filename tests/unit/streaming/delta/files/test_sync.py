"""A power cut after an append has returned: every row that is called durable is there."""

from __future__ import annotations

import errno
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from headroom.alerts.delivery.delivery_log import DeliveryAttempt
from headroom.planning.reassignments.run.journal import JournalRow
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import (
    ACTION_JOURNAL,
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    DURABLE_TABLES,
    LEADER_IMBALANCE,
    Table,
)
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.files import sync
from headroom.streaming.delta.maintenance import maintain_prompt
from headroom.streaming.delta.query import rows
from headroom.streaming.delta.small_table import append_durably
from headroom.streaming.store.low_latency_table import LowLatencyTable


class Disk:
    """Notes what is synced; a power cut empties every other file, and removes those of folders that are not synced."""

    def __init__(self, root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self._root = root
        self._synced: dict[Path, int] = {}
        self._calls = 0
        real = os.fsync

        def fsync(descriptor: int) -> None:
            real(descriptor)
            self._calls += 1
            self._synced[Path(os.readlink(f"/proc/self/fd/{descriptor}"))] = self._calls

        monkeypatch.setattr(os, "fsync", fsync)

    def cut_power(self) -> None:
        for path in sorted(self._root.rglob("*"), reverse=True):
            if path.is_file() and path not in self._synced:
                path.write_bytes(b"")
            # Its name is on the disk if its folder was synced with it or after it.
            if self._synced.get(path.parent, 0) < self._synced.get(path, 0) and path.is_file():
                path.unlink()


@pytest.fixture
def disk(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Disk:
    return Disk(tmp_path, monkeypatch)


def event(number: int) -> AlertEvent:
    return AlertEvent(f"id-{number}", "no_data", "critical", "firing", "orders", "ticks", "…", "{}", "{}", number, 1)


def attempt(number: int) -> DeliveryAttempt:
    return DeliveryAttempt("log", "k", f"id-{number}", "orders", "sending", 1, "", "{}", number)


def journal_row(number: int) -> JournalRow:
    return JournalRow("run", number, "orders", "c", "throttle", "intended", "s", "{}", "{}", "me", number)


class FolderStore:
    """A store in a folder, without Spark."""

    def __init__(self, root: Path) -> None:
        self._root = root

    def location(self, table: Table) -> str:
        return str(self._root / table.path)

    def exists(self, table: Table) -> bool:
        return (self._root / table.path / "_delta_log").exists()

    def ensure(self, table: Table) -> None:
        if not self.exists(table):
            delta_append.create(self.location(table), table)


def prompt_table(root: Path, table: Table) -> LowLatencyTable:
    unused: Any = None
    store: Any = FolderStore(root)
    return LowLatencyTable(unused, store, table)


def count(root: Path, table: Table) -> int:
    return int(rows({"data": str(root / table.path)}, "SELECT count(*) AS n FROM data")[0]["n"])


@pytest.mark.parametrize(("table", "record"), [(ALERT_EVENTS, event), (ALERT_DELIVERIES, attempt)])
def test_alert_events_and_deliveries_outlive_a_power_cut(
    tmp_path: Path, disk: Disk, table: Table, record: Callable[[int], object]
) -> None:
    appended = prompt_table(tmp_path, table)
    for number in range(3):
        appended.append([record(number)], ("writer", number))
        # As often as the disk loses the rest.
        disk.cut_power()
        assert count(tmp_path, table) == number + 1


def test_the_journal_outlives_a_power_cut_also_when_it_was_compacted(tmp_path: Path, disk: Disk) -> None:
    for number in range(103):
        append_durably(str(tmp_path / ACTION_JOURNAL.path), [journal_row(number)], ACTION_JOURNAL)
    disk.cut_power()
    assert count(tmp_path, ACTION_JOURNAL) == 103


def test_compacted_events_outlive_a_power_cut(tmp_path: Path, disk: Disk) -> None:
    table = prompt_table(tmp_path, ALERT_EVENTS)
    for number in range(3):
        table.append([event(number)])
    maintain_prompt(str(tmp_path / ALERT_EVENTS.path), ALERT_EVENTS, 1)
    disk.cut_power()
    assert count(tmp_path, ALERT_EVENTS) == 3


def test_tables_of_history_are_not_synced() -> None:
    assert LEADER_IMBALANCE not in DURABLE_TABLES
    assert {table.path.split("/")[0] for table in DURABLE_TABLES} == {"alerts", "actions"}


def failing(monkeypatch: pytest.MonkeyPatch, number: int) -> None:
    def fsync(_: int) -> None:
        raise OSError(number, os.strerror(number))

    monkeypatch.setattr(os, "fsync", fsync)


def test_a_file_that_cannot_be_synced_is_logged_once_and_written_nonetheless(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(sync, "_warned", set())
    failing(monkeypatch, errno.EINVAL)
    table = prompt_table(tmp_path, ALERT_EVENTS)
    table.append([event(0)])
    before = len(caplog.records)
    assert before
    for number in range(1, 4):
        table.append([event(number)])
    assert len(caplog.records) == before
    assert count(tmp_path, ALERT_EVENTS) == 4


def test_rows_that_a_failed_disk_did_not_take_are_not_durable_until_they_are_synced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, disk: Disk
) -> None:
    table = prompt_table(tmp_path, ALERT_EVENTS)
    table.append([event(0)], ("writer", 0))
    with monkeypatch.context() as broken:
        failing(broken, errno.EIO)
        with pytest.raises(OSError, match=os.strerror(errno.EIO)):
            table.append([event(1)], ("writer", 1))
    # The repetition finds the commit there, and makes it durable.
    table.append([event(1)], ("writer", 1))
    disk.cut_power()
    assert count(tmp_path, ALERT_EVENTS) == 2


def test_a_checkpoint_of_another_writer_is_synced_before_its_hint_is_there(tmp_path: Path, disk: Disk) -> None:
    path = tmp_path / "events"
    delta_append.create(str(path), ALERT_EVENTS)
    checkpoint = path / "_delta_log" / f"{0:020d}.checkpoint.parquet"
    checkpoint.write_bytes(b"rows")
    sync.sync_commits(str(path), -1)
    disk.cut_power()
    assert checkpoint.read_bytes() == b"rows"
