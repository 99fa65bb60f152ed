"""Write rates by hour, from a table that the Delta library has written."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headroom.planning.balance.observation.loads import LoadHistory
from headroom.schemas.config import BalanceSettings, ClusterSettings, Settings, StoreSettings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.tables.load_history import read_load_history
from tests.unit.streaming.tables.test_partition_load import HOUR, HOUR_MS, NAME, NOW_MS, load, write


def read(path: Path, **balance: Any) -> LoadHistory:
    cluster, store = ClusterSettings(name=NAME), StoreSettings(path=str(path))
    return read_load_history(Settings(cluster=cluster, store=store, balance=BalanceSettings(**balance)), NOW_MS)


def test_rates_by_hour_and_partition(tmp_path: Path) -> None:
    rows = [load(0, 5.0), load(2, 3.0), load(2, 7.0, 10), load(0, 9.0, 2, topic="a")]
    write(tmp_path, rows)
    found = read(tmp_path, history=4 * 3600.0)
    assert found.wanted_hours == 4
    assert list(found.names) == [TopicPartition("a", 2), TopicPartition("t", 0), TopicPartition("t", 10)]
    # The hour in between was not seen.
    assert found.hours_ms == (HOUR - 3 * HOUR_MS, HOUR - HOUR_MS)
    expected = [[np.nan, 3.0, 7.0], [9.0, 5.0, np.nan]]
    assert found.write_bytes_per_s == pytest.approx(np.array(expected), nan_ok=True)
    assert found.missing is None


def test_reads_and_requests_by_hour(tmp_path: Path) -> None:
    used = {"mean_read_bytes_per_s": 40.0, "mean_requests_per_s": 7.0}
    write(tmp_path, [load(0, 5.0, **used), load(1, 3.0), load(0, 2.0, 1)])
    found = read(tmp_path, history=2 * 3600.0)
    assert found.read_bytes_per_s == pytest.approx(np.array([[np.nan, np.nan], [40.0, np.nan]]), nan_ok=True)
    assert found.requests_per_s == pytest.approx(np.array([[np.nan, np.nan], [7.0, np.nan]]), nan_ok=True)


def test_a_table_of_an_older_version_has_no_reads(tmp_path: Path) -> None:
    older = replace(PARTITION_LOAD, columns=PARTITION_LOAD.columns[:-2])
    write(tmp_path, [load(0, 5.0)], older)
    found = read(tmp_path, history=2 * 3600.0)
    assert found.write_bytes_per_s.tolist() == [[5.0]]
    assert np.isnan(found.read_bytes_per_s).all()


def test_only_complete_hours_of_the_cluster_that_were_seen_count(tmp_path: Path) -> None:
    rows = [
        load(0, 1.0),
        load(-1, 99.0),
        load(2, 98.0),
        load(1, 97.0, observed_ratio=0.4),
        load(1, None),
        load(0, 96.0, 1, cluster="c2"),
    ]
    write(tmp_path, rows)
    found = read(tmp_path, history=2 * 3600.0)
    assert (list(found.names), found.write_bytes_per_s.tolist()) == ([TopicPartition("t", 0)], [[1.0]])


def test_without_a_table_or_an_hour_there_is_a_reason(tmp_path: Path) -> None:
    assert "does not exist yet" in str(read(tmp_path).missing)
    write(tmp_path, [load(0, 1.0, cluster="c2")])
    found = read(tmp_path)
    assert found.missing == f"gold/partition_load has no hour of cluster {NAME} in the last 24 hours"
    assert (found.hours_ms, found.wanted_hours) == ((), 24)
