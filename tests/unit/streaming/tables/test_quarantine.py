"""How many messages are in quarantine, by the log of their table."""

from __future__ import annotations

from pathlib import Path

from arro3.core import Array, DataType
from arro3.core import Table as ArrowTable
from deltalake import DeltaTable, write_deltalake

from headroom.schemas.tables import QUARANTINE
from headroom.streaming.tables.quarantine import QuarantineCount


def add(path: Path, rows: int) -> None:
    write_deltalake(str(path), ArrowTable.from_pydict({"n": Array(list(range(rows)), DataType.int64())}), mode="append")


def test_rows_are_counted_every_ten_seconds_and_not_while_there_is_no_table(tmp_path: Path) -> None:
    now_s = [0.0]
    count = QuarantineCount(str(tmp_path), lambda: now_s[0])
    assert count() is None
    path = tmp_path / QUARANTINE.path
    add(path, 3)
    assert count() is None
    now_s[0] = 10.0
    assert count() == 3
    add(path, 2)
    DeltaTable(str(path)).optimize.compact()
    assert count() == 3
    now_s[0] = 20.0
    assert count() == 5


def test_a_table_that_cannot_be_read_has_no_count_until_it_can(tmp_path: Path) -> None:
    now_s = [0.0]
    count = QuarantineCount(str(tmp_path), lambda: now_s[0])
    path = tmp_path / QUARANTINE.path
    add(path, 3)
    commit = path / "_delta_log" / f"{0:020d}.json"
    whole = commit.read_bytes()
    commit.write_bytes(b"{")
    assert count() is None
    commit.write_bytes(whole)
    now_s[0] = 10.0
    assert count() == 3
