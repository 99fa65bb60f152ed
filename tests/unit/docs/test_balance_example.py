"""The examples of docs/balance.md are what the command prints."""

from __future__ import annotations

import pytest

from scripts.docs.balance import PAGE, page
from tests.support.paths import REPOSITORY


def test_the_examples_are_what_the_command_prints(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(REPOSITORY)
    monkeypatch.setattr("headroom.cli.config.load.DEFAULT_FILE", "no-settings.toml")
    text = PAGE.read_text(encoding="utf-8")
    assert text.count("```text") == 2
    assert page(text) == text, "write it again: python -m scripts.docs.balance"
