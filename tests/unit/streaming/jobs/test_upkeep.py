"""Upkeep writes the load, then maintains the tables, whatever fails."""

from __future__ import annotations

from typing import Any
from unittest.mock import MagicMock

import pytest

from headroom.schemas.config import StoreSettings
from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.delta.maintenance import MaintenanceFailure, MaintenanceResult
from headroom.streaming.jobs.upkeep import Upkeep

MAINTAINED = MaintenanceResult("silver/messages", 2, 1, 10, None, 0.1)
NOW_MS = 1_800_000_000_000


@pytest.fixture
def steps(monkeypatch: pytest.MonkeyPatch) -> list[Any]:
    """What was done, in order."""
    done: list[Any] = []

    class Load:
        def __init__(self, _spark: object, path: str) -> None:
            self._path = path

        def run(self, now_ms: int) -> None:
            done.append(("load", self._path, now_ms))
            if self._path == "full":
                raise OSError("no space left")

    class Tables:
        def __init__(self, *_: object) -> None:
            pass

        def run(self) -> list[MaintenanceResult]:
            done.append("maintenance")
            return [MAINTAINED]

    monkeypatch.setattr("headroom.streaming.jobs.upkeep.PartitionLoadJob", Load)
    monkeypatch.setattr("headroom.streaming.jobs.upkeep.Maintenance", Tables)
    return done


def test_the_load_is_written_before_a_day_of_silver_may_be_deleted(steps: list[Any]) -> None:
    assert Upkeep(MagicMock(), StoreSettings(path="store"), lambda: NOW_MS).run() == [MAINTAINED]
    assert steps == [("load", "store", NOW_MS), "maintenance"]


def test_tables_are_maintained_though_the_load_cannot_be_written(steps: list[Any]) -> None:
    failed, maintained = Upkeep(MagicMock(), StoreSettings(path="full"), lambda: NOW_MS).run()
    assert isinstance(failed, MaintenanceFailure)
    assert (failed.table, "no space left" in failed.reason) == (PARTITION_LOAD.path, True)
    assert maintained == MAINTAINED
    assert steps[-1] == "maintenance"
