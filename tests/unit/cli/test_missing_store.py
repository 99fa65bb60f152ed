"""What a command does not find in a store that is not there is unknown, and never none."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headroom.cli.common.missing_store import EXIT_NOT_CURRENT
from headroom.cli.main import headroom
from headroom.streaming.delta.locations import is_missing


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "127.0.0.1:1")
    monkeypatch.setenv("HEADROOM_CLUSTER__NAME", "orders")
    monkeypatch.chdir(tmp_path)


def run(*arguments: str) -> Result:
    return CliRunner().invoke(headroom, arguments)


@pytest.mark.parametrize("command", ["reassign runs", "reassign clean", "reassign clean --execute", "alerts silences"])
def test_a_command_says_what_it_does_not_know_and_where_it_looked(command: str, tmp_path: Path) -> None:
    done = run(*command.split())
    assert (done.exit_code, done.stdout) == (EXIT_NOT_CURRENT, "")
    (line,) = done.stderr.splitlines()
    assert line.startswith(f"headroom: the store headroom-data (here {tmp_path}/headroom-data) is not there, so ")
    assert "store.path" in line
    found = json.loads(run(*command.split(), "--format", "json").stdout)
    assert (found if isinstance(found, list) else found["runs"]) == []
    assert not Path("headroom-data").exists()


def test_a_store_that_is_there_answers(tmp_path: Path) -> None:
    (tmp_path / "headroom-data").mkdir()
    done = run("reassign", "runs")
    assert (done.exit_code, done.stdout) == (0, "Cluster orders: no plan was run.\n")


def test_a_place_that_may_not_be_searched_need_not_be_missing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_missing(str(tmp_path / "none"))
    assert not is_missing("s3a://bucket/none")

    def refused(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr("os.lstat", refused)
    assert not is_missing(str(tmp_path / "none"))
