"""What tests of the page share."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.unit.builders.dashboard_store import DashboardStore


@pytest.fixture
def store(tmp_path: Path) -> DashboardStore:
    """Return a store without any table."""
    return DashboardStore(tmp_path / "store")
