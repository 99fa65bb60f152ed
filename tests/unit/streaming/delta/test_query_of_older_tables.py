"""Commands read a store that this version has not upgraded yet: what its tables do not have is null."""

from __future__ import annotations

from datetime import date
from pathlib import Path

import pytest
import table_definitions
from deltalake import DeltaTable

from headroom.operations.throttles.expected_finish import expected_finish
from headroom.operations.throttles.needs.watch_needs import watch_needs
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings
from headroom.schemas.tables import ALL_TABLES, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.query_table import query
from tests.unit.builders.gold_rows import gold_row

TICK_MS = 1_800_000_000_000
DEFINITIONS = table_definitions.definitions()


def write(settings: Settings, made: Table, **more: object) -> None:
    path = f"{settings.store.path}/{made.path}"
    delta_append.create(path, made)
    row = gold_row(made, ("orders", TICK_MS)) | {"date": date(2027, 1, 15)} | more
    delta_append.append_columns(DeltaTable(path), {c.name: [row[c.name]] for c in made.columns})


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return Settings(cluster=ClusterSettings(name="orders"), store=StoreSettings(path=str(tmp_path)))


@pytest.mark.parametrize("table", ALL_TABLES, ids=lambda table: table.path)
def test_every_column_of_today_can_be_read_of_the_oldest_table(table: Table, tmp_path: Path) -> None:
    delta_append.create(str(tmp_path / table.path), DEFINITIONS[table.path][0])
    names = ", ".join(f'"{name}"' for name in table.names())
    assert query(str(tmp_path), table.path, f"SELECT {names} FROM data") == []


def test_an_older_watch_has_no_range_of_the_finish(settings: Settings) -> None:
    write(settings, DEFINITIONS[REASSIGNMENT_PROGRESS.path][0], state="catching_up", eta_s=50.0)
    found = expected_finish(settings, TICK_MS + 1000)
    assert found is not None
    assert (found.eta_low_s, found.eta_s, found.eta_high_s) == (None, 50.0, None)


def test_a_need_that_an_older_watch_does_not_state_is_unknown(settings: Settings) -> None:
    write(settings, DEFINITIONS[THROTTLE_HEADROOM.path][0])
    needs = watch_needs(settings, TICK_MS + 1000)
    assert needs is not None
    assert [(need.required_bytes_per_s, need.moving_bytes_per_s) for need in needs.needs] == [(0.5, None)]
