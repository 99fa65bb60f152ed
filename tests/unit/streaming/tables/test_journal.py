"""The journal of changes as a table: rows come back as they were written, of one cluster only."""

from __future__ import annotations

from dataclasses import asdict, replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headroom.planning.reassignments.run.journal import JournalRow
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ACTION_JOURNAL
from headroom.streaming.delta import small_table
from headroom.streaming.tables.journal import ActionJournal

ROW = JournalRow("run", 1, "o'rders", "reassign run", "rate", "intended", "broker 1 as leader", None, "5", "anna@a", 7)


def test_rows_come_back_as_they_were_written_in_their_order(tmp_path: Path) -> None:
    journal = ActionJournal(str(tmp_path))
    assert journal.rows("o'rders") == []
    later = replace(ROW, seq=2, state="done", before="5", after=None, at_ms=8)
    journal.append([later])
    journal.append([ROW, replace(ROW, cluster="payments")])
    assert journal.rows("o'rders") == [ROW, later]
    made = DeltaTable(str(tmp_path / ACTION_JOURNAL.path))
    assert [field.name for field in made.schema().fields] == ACTION_JOURNAL.names() == list(asdict(ROW))


def test_many_commits_are_compacted_and_lose_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_table, "_MOST_FILES", 3)
    journal = ActionJournal(str(tmp_path))
    for number in range(6):
        journal.append([replace(ROW, seq=number)])
    assert [row.seq for row in journal.rows("o'rders")] == list(range(6))
    assert len(DeltaTable(str(tmp_path / ACTION_JOURNAL.path)).file_uris()) <= 3


def test_a_store_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    (tmp_path / "actions").write_text("")
    with pytest.raises(HeadroomError):
        ActionJournal(str(tmp_path)).append([ROW])
