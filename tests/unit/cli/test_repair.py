"""``headroom maintain --repair`` and what ``headroom check`` says of damaged tables."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from cli.check.local import tables
from cli.check.result import CheckStatus
from cli.maintain.command import maintain
from tests.unit.streaming.delta.test_damage import commit_file, cut, data_file, numbers, of_commits, table

__all__ = ["table"]


@pytest.fixture
def config(table: Path, tmp_path: Path) -> str:
    file = tmp_path / "headroom.toml"
    store = table.parent.parent
    file.write_text(f'[cluster]\nbootstrap_servers = "127.0.0.1:1"\n[store]\npath = "{store}"\n', "utf-8")
    return str(file)


def test_it_says_what_was_damaged_and_what_is_lost_and_mends_it(table: Path, config: str) -> None:
    file = data_file(table, 0)
    file.unlink()
    first, second = (CliRunner().invoke(maintain, ["--repair", "--config", config]) for _ in range(2))
    assert (first.exit_code, second.exit_code) == (0, 0)
    for told in ("alerts/events", file.name, "is missing", "3 rows", "yes"):
        assert told in first.output
    assert second.output == "No table is damaged.\n"
    assert numbers(table) == of_commits(1, 2, 3, 4)


def test_it_tells_machines_the_same(table: Path, config: str) -> None:
    cut(commit_file(table, 2))
    result = CliRunner().invoke(maintain, ["--repair", "--config", config, "--format", "json"])
    (told,) = json.loads(result.output)
    assert told == {
        "table": "alerts/events",
        "file": f"_delta_log/{2:020d}.json",
        "fault": "is cut off, or no JSON",
        "lost": "at most the rows of one commit",
        "mended": True,
    }


def test_what_cannot_be_mended_is_said_and_what_to_do(table: Path, config: str) -> None:
    commit_file(table, 0).write_text("{")
    result = CliRunner().invoke(maintain, ["--repair", "--config", config])
    assert result.exit_code == 1
    assert "cannot be mended" in result.output


def test_check_names_damaged_tables_and_the_command(table: Path, tmp_path: Path) -> None:
    store = str(table.parent.parent)
    (whole,) = tables(store)
    assert whole.answer is CheckStatus.OK
    cut(data_file(table, 0))
    data_file(table, 1).unlink()
    (damaged,) = tables(store)
    assert damaged.answer is CheckStatus.NO
    assert "and 1 more file(s)" in damaged.found
    assert "headroom maintain --repair" in damaged.remedy
    (none,) = tables(str(tmp_path / "none"))
    assert none.answer is CheckStatus.OK
