"""A store of its own for every test: commands that change throttles write to the journal."""

from __future__ import annotations

from pathlib import Path

import pytest


@pytest.fixture(autouse=True)
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path / "store"))
    return tmp_path / "store"
