"""Log flush times by minute, from a table that the Delta library has written."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from deltalake import DeltaTable

from schemas.config import BalanceSettings, ClusterSettings, Settings, StoreSettings
from schemas.tables import BROKER_PERFORMANCE
from streaming.delta import append as delta_append
from streaming.delta.schema import delta_schema
from streaming.tables.flush_history import read_flush_history

NOW_MS = 1_800_000_000_000
MINUTE_MS = 60_000


def reading(
    minutes_ago: float, broker: int, flush_ms: float | None, bytes_in: float | None, **more: Any
) -> dict[str, Any]:
    tick_ms = NOW_MS - int(minutes_ago * MINUTE_MS)
    row = {
        **dict.fromkeys(BROKER_PERFORMANCE.names()),
        "cluster": "c",
        "tick_ms": tick_ms,
        "date": datetime.fromtimestamp(tick_ms / 1000, timezone.utc).date(),
        "broker": broker,
        "log_flush_p999_ms": flush_ms,
        "bytes_in_per_s": bytes_in,
    }
    return SimpleNamespace(**(row | more))


def write(path: Path, rows: list[SimpleNamespace]) -> None:
    location = str(path / BROKER_PERFORMANCE.path)
    delta_append.create(location, BROKER_PERFORMANCE, delta_schema(BROKER_PERFORMANCE))
    delta_append.append(DeltaTable(location), rows, BROKER_PERFORMANCE)


def settings(path: Path, history_s: float = 600.0) -> Settings:
    return Settings(
        cluster=ClusterSettings(name="c"),
        store=StoreSettings(path=str(path)),
        balance=BalanceSettings(history=history_s),
    )


def test_the_last_reading_of_a_minute_counts_and_gaps_are_unknown(tmp_path: Path) -> None:
    rows = [
        reading(2.4, 3, 70.0, 5.0),
        reading(2.9, 3, 80.0, 6.0),
        reading(2.5, 1, 1500.0, 9.0),
        reading(1.5, 1, 20.0, 7.0),
        # Left out: a part is unknown, another cluster, before the history, after now.
        reading(1.5, 3, None, 7.0),
        reading(1.4, 3, 9.0, None),
        reading(1.5, 3, 9.0, 9.0, cluster="other"),
        reading(10.1, 3, 9.0, 9.0),
        reading(-1.0, 3, 9.0, 9.0),
    ]
    write(tmp_path, rows)
    found = read_flush_history(settings(tmp_path), NOW_MS)
    assert list(found.brokers) == [1, 3]
    assert found.flush_s == pytest.approx(np.array([[1.5, 0.07], [0.02, np.nan]]), nan_ok=True)
    assert found.bytes_in_per_s == pytest.approx(np.array([[9.0, 5.0], [7.0, np.nan]]), nan_ok=True)
    assert found.missing is None


def test_without_a_table_or_a_reading_there_is_a_reason(tmp_path: Path) -> None:
    assert "does not exist yet" in str(read_flush_history(settings(tmp_path), NOW_MS).missing)
    write(tmp_path, [reading(1.0, 1, None, 5.0)])
    found = read_flush_history(settings(tmp_path), NOW_MS)
    assert found.missing == "silver/broker_performance has no log flush times of cluster c"
    assert found.flush_s.shape == (0, 0)
