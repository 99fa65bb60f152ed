"""Rates of the busy hour, from a table that the Delta library has written."""

from __future__ import annotations

from datetime import datetime, timezone
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType
from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.schemas.config import ClusterSettings, ReassignSettings, Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tables import PARTITION_LOAD, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.tables.partition_load import BusyHourRates, read_busy_hour

HOUR_MS = 3_600_000
# 2027-01-15 08:00:00 UTC, and 20 minutes into that hour.
HOUR = 1_800_000_000_000
NOW_MS = HOUR + 20 * 60_000
TYPES = {"STRING": "string", "BIGINT": "long", "INT": "integer", "DOUBLE": "double", "DATE": "date"}
NAME = "it's c1"
T0, T1 = TopicPartition("t", 0), TopicPartition("t", 1)


def load(hours_ago: int, mean: float | None, partition: int = 0, **more: Any) -> SimpleNamespace:
    """A row of an hour that ended so many hours before HOUR."""
    hour_ms = HOUR - (hours_ago + 1) * HOUR_MS
    row = {
        "cluster": NAME,
        "hour_ms": hour_ms,
        "date": datetime.fromtimestamp(hour_ms / 1000, timezone.utc).date(),
        "topic": "t",
        "partition": partition,
        "mean_write_bytes_per_s": mean,
        "p95_write_bytes_per_s": 1e9,
        "peak_write_bytes_per_s": 1e9,
        "size_bytes": None,
        "observed_ratio": 1.0,
        "hour_messages": 9,
        "mean_read_bytes_per_s": None,
        "mean_requests_per_s": None,
    }
    assert list(row) == PARTITION_LOAD.names()
    return SimpleNamespace(**(row | more))


def write(path: Path, rows: list[SimpleNamespace], table: Table = PARTITION_LOAD) -> None:
    location = str(path / table.path)
    schema = Schema([Field(column.name, PrimitiveType(TYPES[column.type])) for column in table.columns])
    delta_append.create(location, table, schema)
    delta_append.append(DeltaTable(location), rows, table)


def read(path: Path, **reassign: Any) -> BusyHourRates:
    cluster, store = ClusterSettings(name=NAME), StoreSettings(path=str(path))
    return read_busy_hour(Settings(cluster=cluster, store=store, reassign=ReassignSettings(**reassign)), NOW_MS)


def test_the_rate_is_the_percentile_of_the_hourly_means(tmp_path: Path) -> None:
    # 24 hours with 0 to 23, in no order; partition 1 has 3 of them.
    rows = [load(n, float(n * 7 % 24)) for n in range(24)] + [load(n, 10.0 * n, 1) for n in range(3)]
    write(tmp_path, rows)
    found = read(tmp_path)
    # The 23rd of 24 (95 % are 22.8) and the 3rd of 3 (2.85).
    assert found.write_bytes_per_s == {T0: 22.0, T1: 20.0}
    assert (found.from_ms, found.until_ms, found.hours, found.missing) == (HOUR - 24 * HOUR_MS, HOUR, 24, None)
    assert str(found) == (
        "percentile 95 of the hourly means from 2027-01-14 08:00:00 UTC to 2027-01-15 08:00:00 UTC (24 hours seen)"
    )
    assert read(tmp_path, rate_percentile=50).write_bytes_per_s == {T0: 11.0, T1: 10.0}
    assert read(tmp_path, rate_percentile=100).write_bytes_per_s == {T0: 23.0, T1: 20.0}


def test_only_the_hours_asked_for_count(tmp_path: Path) -> None:
    # The hour that has begun, of which a table has nothing yet, and one before the span.
    write(tmp_path, [load(-1, 99.0), load(0, 1.0), load(1, 2.0), load(2, 50.0), load(2, 50.0, 1)])
    found = read(tmp_path, rate_hours=2)
    assert (found.write_bytes_per_s, found.hours, found.from_ms) == ({T0: 2.0}, 2, HOUR - 2 * HOUR_MS)


def test_other_clusters_and_hours_that_were_hardly_seen_do_not_count(tmp_path: Path) -> None:
    rows = [
        load(0, 99.0, cluster="c2"),
        load(1, 98.0, observed_ratio=0.49),
        load(2, None, observed_ratio=1.0),
        load(3, 1.0, observed_ratio=0.5),
        load(1, 98.0, 1, observed_ratio=0.49),
    ]
    write(tmp_path, rows)
    found = read(tmp_path)
    assert (found.write_bytes_per_s, found.hours) == ({T0: 1.0}, 1)
    assert (found.from_ms, found.until_ms) == (HOUR - 4 * HOUR_MS, HOUR - 3 * HOUR_MS)


def test_without_a_table_there_is_a_reason(tmp_path: Path) -> None:
    found = read(tmp_path)
    assert found == BusyHourRates(95.0, missing=found.missing)
    assert str(found) == "gold/partition_load does not exist yet; `headroom watch` writes it every hour"


@pytest.mark.parametrize(
    ("row", "reason"),
    [
        (load(0, 1.0, cluster="c2"), "gold/partition_load has no complete hour of cluster it's c1"),
        (
            load(30, 1.0),
            "gold/partition_load has no hour of cluster it's c1 in the last 24 hours of which at least half was seen; "
            "its last hour began 2027-01-14 01:00:00 UTC",
        ),
        (
            load(0, 1.0, observed_ratio=0.1),
            "gold/partition_load has no hour of cluster it's c1 in the last 24 hours of which at least half was seen; "
            "its last hour began 2027-01-15 07:00:00 UTC",
        ),
    ],
)
def test_too_little_history_is_a_reason(tmp_path: Path, row: SimpleNamespace, reason: str) -> None:
    write(tmp_path, [row])
    found = read(tmp_path)
    assert (found.missing, str(found), dict(found.write_bytes_per_s)) == (reason, reason, {})
    assert (found.from_ms, found.until_ms, found.hours) == (None, None, 0)


def test_a_table_that_cannot_be_read_is_an_error(tmp_path: Path) -> None:
    write(tmp_path, [load(0, 1.0)])
    (tmp_path / PARTITION_LOAD.path / "_delta_log" / f"{0:020d}.json").write_bytes(b"{")
    with pytest.raises(HeadroomError, match=r"gold/partition_load: is damaged"):
        read(tmp_path)


# Every example is a table of its own.
@settings(max_examples=20)
@given(st.lists(st.integers(0, 1_000_000), min_size=1, max_size=24), st.integers(1, 100))
def test_the_rate_is_that_of_an_hour_and_enough_hours_are_no_busier(
    tmp_path_factory: pytest.TempPathFactory, means: list[int], percentile: int
) -> None:
    path = tmp_path_factory.mktemp("load")
    write(path, [load(n, float(mean)) for n, mean in enumerate(means)])
    rate = read(path, rate_percentile=float(percentile)).write_bytes_per_s[T0]
    assert rate in means
    no_busier = sum(mean <= rate for mean in means)
    less_busy = sum(mean < rate for mean in means)
    # The smallest rate that at least this share of the hours does not exceed, in whole numbers.
    assert no_busier * 100 >= percentile * len(means) > less_busy * 100
