"""Every table contains the cluster, and has keys that identify its rows."""

from __future__ import annotations

import pytest

import headroom.schemas.tables
from headroom.schemas.tables import (
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALL_TABLES,
    BROKER_LOAD,
    BRONZE_TICKS,
    MIGRATION_SYNCS,
    PARTITION_LOAD,
    QUARANTINE,
    TABLES,
    Table,
)

# Tables whose keys are offsets of the ticks topic, which all clusters share, or an id derived from the cluster's name.
# A sync is the same one in whichever tick it comes.
OTHER_KEYS = (BRONZE_TICKS, QUARANTINE, ALERT_EVENTS, ALERT_DELIVERIES, MIGRATION_SYNCS)


@pytest.mark.parametrize("table", [t for t in TABLES if t not in OTHER_KEYS], ids=lambda table: table.path)
def test_a_key_starts_with_cluster_and_time(table: Table) -> None:
    times = {PARTITION_LOAD: "hour_ms", BROKER_LOAD: "minute_ms"}
    assert table.keys[:2] == ("cluster", times.get(table, "tick_ms"))


@pytest.mark.parametrize("table", [t for t in TABLES if t.partition_by], ids=lambda table: table.path)
def test_files_can_be_skipped_by_the_time_of_a_row(table: Table) -> None:
    assert {"tick_ms", "hour_ms", "timestamp"} & set(table.skip_by)


@pytest.mark.parametrize("table", [t for t in TABLES if t is not BRONZE_TICKS], ids=lambda table: table.path)
def test_every_table_has_a_cluster_column(table: Table) -> None:
    assert "cluster" in table.names()


def test_the_catalogue_has_every_table() -> None:
    assert {value for value in vars(headroom.schemas.tables).values() if isinstance(value, Table)} == set(ALL_TABLES)
