"""``headroom maintain --repair``, and the check of damaged tables in ``headroom check``."""

from __future__ import annotations

import json
import shutil
import threading
from itertools import count
from pathlib import Path

import pytest
from click.testing import CliRunner

from headroom.cli.maintain import repair
from headroom.cli.maintain.command import maintain
from headroom.operations.check.local import checkpoints, tables
from headroom.operations.check.result import CheckStatus
from headroom.schemas.config import StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.delta.damage import UNKNOWN, UNREADABLE_REMEDY, Damage
from headroom.streaming.durability import mend as mending
from headroom.streaming.durability.checkpoint import Checkpoint
from headroom.streaming.durability.query_checkpoints import checkpoints_of
from headroom.streaming.store.single_instance import exclusive_jobs
from tests.unit.streaming.delta.test_damage import commit_file, cut, data_file, numbers, of_commits, table
from tests.unit.streaming.durability.test_checkpoint import checkpoint_at, empty

__all__ = ["table"]


@pytest.fixture
def config(table: Path, tmp_path: Path) -> str:
    file = tmp_path / "headroom.toml"
    store = table.parent.parent
    file.write_text(f'[cluster]\nbootstrap_servers = "127.0.0.1:1"\n[store]\npath = "{store}"\n', "utf-8")
    return str(file)


def test_repair_shows_damaged_files_and_lost_rows(table: Path, config: str) -> None:
    file = data_file(table, 0)
    file.unlink()
    first, second = (CliRunner().invoke(maintain, ["--repair", "--config", config]) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    for shown in ("alerts/events", file.name, "is missing", "3 rows", "yes"):
        assert shown in first.output
    assert second.output == "No table and no checkpoint is damaged.\n"
    assert numbers(table) == of_commits(1, 2, 3, 4)


def test_repair_prints_the_same_as_json(table: Path, config: str) -> None:
    cut(commit_file(table, 2))
    result = CliRunner().invoke(maintain, ["--repair", "--config", config, "--format", "json"])
    (shown,) = json.loads(result.output)
    assert shown == {
        "schema_version": 1,
        "table": "alerts/events",
        "file": f"_delta_log/{2:020d}.json",
        "fault": "is cut off, or no JSON",
        "lost": "at most the rows of one commit",
        "mended": True,
        "error": None,
        "remedy": None,
    }


def test_a_table_that_cannot_be_repaired_is_shown_with_a_remedy(
    table: Path, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "move", move)
    data_file(table, 0).write_bytes(b"")
    result = CliRunner().invoke(maintain, ["--repair", "--config", config])
    assert result.exit_code == 1
    assert "cannot be repaired: is damaged, and cannot be mended (Permission denied)" in result.output


def test_a_repair_that_finds_no_room_for_what_is_damaged_is_no_repair(table: Path, config: str) -> None:
    data_file(table, 1).write_bytes(bytes(data_file(table, 1).stat().st_size))
    (table.parent / "_damaged").write_text("a file", encoding="utf-8")
    for _ in range(2):
        result = CliRunner().invoke(maintain, ["--repair", "--config", config, "--format", "json"])
        assert result.exit_code == 1
        (shown,) = json.loads(result.stdout)
        assert (shown["mended"], "cannot be mended" in shown["error"]) == (False, True)


def test_a_store_that_is_not_there_is_not_called_undamaged(table: Path, config: str) -> None:
    shutil.rmtree(table.parent.parent)
    result = CliRunner().invoke(maintain, ["--repair", "--config", config])
    assert isinstance(result.exception, HeadroomError)
    assert "is not there" in str(result.exception)


def test_tables_that_cannot_be_read_are_not_called_damaged_or_repaired(
    table: Path, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    times = count()

    def refused(*_: object, **__: object) -> list[Damage]:
        return [Damage("_delta_log", f"cannot be read (403 after {next(times)} ms)", UNKNOWN, can_be_mended=False)]

    for module in (repair, mending):
        monkeypatch.setattr(module, "damages", refused)
    result = CliRunner().invoke(maintain, ["--repair", "--config", config])
    assert result.exit_code == 1
    assert " yes" not in result.output
    assert "cannot be read (403 after" in result.output
    assert "credentials" in result.output


def test_tables_without_read_permission_are_not_reported_as_undamaged(
    table: Path, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    checkpoint_at(table.parent.parent / "_checkpoints" / "gold")

    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refused)
        result = CliRunner().invoke(maintain, ["--repair", "--config", config])
        found = [*tables(str(table.parent.parent)), *checkpoints(StoreSettings(str(table.parent.parent)))]
    assert result.exit_code == 1
    assert "No table" not in result.output
    for name in ("alerts/events is not checked", "_checkpoints/gold is not checked"):
        assert f"headroom: {name}: " in result.output
    assert [(one.name, one.answer) for one in found] == [(n, CheckStatus.UNKNOWN) for n in ("Tables", "Checkpoints")]
    assert {one.remedy for one in found} == {UNREADABLE_REMEDY}
    assert result.output.count(UNREADABLE_REMEDY) == 2


def damaged_checkpoint(table: Path) -> Path:
    folder = checkpoint_at(table.parent.parent / "_checkpoints" / "gold")
    empty(folder / "offsets" / "7")
    return folder


def test_repair_moves_damaged_checkpoints_aside(table: Path, config: str) -> None:
    folder = damaged_checkpoint(table)
    first, second = (CliRunner().invoke(maintain, ["--repair", "--config", config]) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    for shown in ("_checkpoints/gold", "offsets/7", "is empty", "nothing that the topic still has", "yes"):
        assert shown in first.output
    assert second.output == "No table and no checkpoint is damaged.\n"
    assert not folder.exists()


def test_a_checkpoint_in_use_is_left_to_its_query(table: Path, config: str, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = damaged_checkpoint(table)
    monkeypatch.setattr(repair, "_JOB_REPAIRS_S", 0.0)
    with exclusive_jobs(StoreSettings(str(table.parent.parent)), ["gold"]):
        result = CliRunner().invoke(maintain, ["--repair", "--config", config])
    assert result.exit_code == 1
    assert "checkpoint gold is in use. Waiting for its job to repair it" in result.output
    assert "a query repairs its checkpoint when it starts" in result.output
    assert folder.exists()


def test_a_repair_waits_for_the_job_that_has_just_started(
    table: Path, config: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = damaged_checkpoint(table)
    ((_, _, checkpoint),) = [one for one in checkpoints_of(StoreSettings(str(table.parent.parent))) if one[0] == "gold"]
    query_starts = threading.Timer(1.0, checkpoint.mend)
    was = repair._is_repaired_by_job

    def waits(of: Checkpoint, until_s: float) -> bool:
        # Only now: the command has seen the damage, however late it came to it.
        query_starts.start()
        return was(of, until_s)

    monkeypatch.setattr(repair, "_is_repaired_by_job", waits)
    with exclusive_jobs(StoreSettings(str(table.parent.parent)), ["gold"]):
        result = CliRunner().invoke(maintain, ["--repair", "--config", config, "--format", "json"])
        # The command has waited for the query, and not for a time of its own.
        assert not folder.exists()
        query_starts.join()
    assert result.exit_code == 0
    (shown,) = json.loads(result.stdout)
    assert (shown["table"], shown["mended"]) == ("_checkpoints/gold", True)


def test_check_names_damaged_checkpoints(table: Path) -> None:
    store = StoreSettings(str(table.parent.parent))
    assert checkpoints(store) == []
    damaged_checkpoint(table)
    (damaged,) = checkpoints(store)
    assert damaged.answer is CheckStatus.FAILED
    assert "gold: offsets/7 is empty" in damaged.found


def test_check_names_damaged_tables_and_the_command(table: Path, tmp_path: Path) -> None:
    store = str(table.parent.parent)
    (whole,) = tables(store)
    assert whole.answer is CheckStatus.OK
    cut(data_file(table, 0))
    data_file(table, 1).unlink()
    (damaged,) = tables(store)
    assert damaged.answer is CheckStatus.FAILED
    assert "and 1 more file(s)" in damaged.found
    assert "headroom maintain --repair" in damaged.remedy
    (none,) = tables(str(tmp_path / "none"))
    assert none.answer is CheckStatus.OK
