"""The example of docs/planning.md is what the command prints."""

from __future__ import annotations

import re

import pytest
from click.testing import CliRunner

from headroom.cli.main import headroom
from tests.support.paths import REPOSITORY

PAGE = (REPOSITORY / "docs" / "planning.md").read_text(encoding="utf-8")


def test_the_example_is_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    command = re.search(r"^headroom (plan docs/examples/.*)$", PAGE, re.MULTILINE)
    shown = re.search(r"```text\n(.*?)\n```", PAGE, re.DOTALL)
    assert command is not None
    assert shown is not None
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("headroom.cli.config.load.DEFAULT_FILE", "no-settings.toml")
    done = CliRunner().invoke(headroom, command.group(1).split())
    assert done.exit_code == 0, done.exception
    assert done.output.strip() == shown.group(1).strip()
