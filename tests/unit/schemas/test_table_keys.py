"""Every row says which cluster it is of, and by what it is known for ever."""

from __future__ import annotations

import pytest

from schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS, BRONZE_TICKS, QUARANTINE, TABLES, Table

# Known by their place in the ticks topic, which all clusters share, or by an id that is made from the cluster's name.
OTHERWISE_KNOWN = (BRONZE_TICKS, QUARANTINE, ALERT_EVENTS, ALERT_DELIVERIES)


@pytest.mark.parametrize("table", [t for t in TABLES if t not in OTHERWISE_KNOWN], ids=lambda table: table.path)
def test_a_row_is_known_by_its_cluster_and_tick_first(table: Table) -> None:
    assert table.keys[:2] == ("cluster", "tick_ms")


@pytest.mark.parametrize("table", [t for t in TABLES if t is not BRONZE_TICKS], ids=lambda table: table.path)
def test_a_row_says_which_cluster_it_is_of(table: Table) -> None:
    assert "cluster" in table.names()
