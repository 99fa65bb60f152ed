"""Tables that somebody removes while a watch writes them are created again; those of a lost mount are waited for."""

from __future__ import annotations

import logging
import shutil
from pathlib import Path
from typing import Any

import pytest

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.delta.query_table import query
from headroom.streaming.durability.mend import mend
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.store import Store
from tests.unit.streaming.durability.test_mend import event


@pytest.fixture
def events(tmp_path: Path) -> LowLatencyTable:
    no_spark: Any = None
    table = LowLatencyTable(no_spark, Store(no_spark, str(tmp_path / "store")), ALERT_EVENTS)
    table.append([event(1)], ("writer", 1))
    return table


def ticks(tmp_path: Path) -> list[int]:
    found = query(str(tmp_path / "store"), ALERT_EVENTS.path, "SELECT tick_ms FROM data ORDER BY tick_ms")
    return [row["tick_ms"] for row in found or []]


@pytest.mark.parametrize("removed", ["store", "store/alerts", "store/alerts/events"])
def test_a_removed_table_is_created_again_and_that_is_logged_once(
    events: LowLatencyTable, tmp_path: Path, removed: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    shutil.rmtree(tmp_path / removed)
    events.append([event(2)], ("writer", 2))
    events.append([event(3)], ("writer", 3))
    assert ticks(tmp_path) == [2, 3]
    (record,) = caplog.records
    assert "table alerts/events was removed while it was in use" in record.getMessage()


def test_an_empty_append_creates_the_table_again(events: LowLatencyTable, tmp_path: Path) -> None:
    shutil.rmtree(tmp_path / "store")
    assert events.was_removed
    events.append([], ("writer", 2))
    assert not events.was_removed
    assert ticks(tmp_path) == []


def test_a_mount_that_is_gone_is_waited_for_and_a_new_one_is_not(
    events: LowLatencyTable, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    no_spark: Any = None
    on_disk = tmp_path / "disk" / "store"
    mounted = {tmp_path / "disk"}
    monkeypatch.setattr(Path, "is_mount", lambda path: path in mounted or path == Path("/"))
    table = LowLatencyTable(no_spark, Store(no_spark, str(on_disk)), ALERT_EVENTS)
    table.append([event(1)], ("writer", 1))
    away = tmp_path / "away"
    on_disk.rename(away)
    mounted.clear()
    with pytest.raises(HeadroomError, match=f"nothing is mounted at {tmp_path}/disk any more") as caught:
        table.append([event(2)], ("writer", 2))
    assert caught.value.remedy.startswith("Mount it again")
    assert not (on_disk / "alerts").exists()
    mounted.add(tmp_path / "disk")
    away.rename(on_disk)
    table.append([event(2)], ("writer", 2))
    found = query(str(on_disk), ALERT_EVENTS.path, "SELECT tick_ms FROM data ORDER BY tick_ms") or []
    assert [row["tick_ms"] for row in found] == [1, 2]
    # Begun before its disk was mounted.
    mounted.add(tmp_path / "store")
    shutil.rmtree(tmp_path / "store")
    events.append([event(3)], ("writer", 3))
    assert ticks(tmp_path) == [3]


def test_a_table_that_has_lost_its_log_alone_waits_for_the_repair(events: LowLatencyTable, tmp_path: Path) -> None:
    folder = tmp_path / "store" / ALERT_EVENTS.path
    shutil.rmtree(folder / "_delta_log")
    with pytest.raises(HeadroomError, match="is damaged"):
        events.append([event(2)], ("writer", 2))
    mend(str(folder))
    events.append([event(2)], ("writer", 2))
    assert ticks(tmp_path) == [1, 2]
