"""Rows that are appended while another process compacts their table: none is lost, none is there twice."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from datetime import date, timedelta
from pathlib import Path
from types import SimpleNamespace

import pytest
from deltalake import DeltaTable, Field, Schema
from deltalake.schema import PrimitiveType

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import (
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    BROKER_LOAD,
    LEADER_IMBALANCE,
    MIGRATION_GROUPS,
    MIGRATION_PROGRESS,
    PARTITION_WRITE_RATE,
    PROMPT_TABLES,
    REASSIGNMENT_PROGRESS,
    REPLICATION_LAG,
    THROTTLE_HEADROOM,
)
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.maintenance import MaintenanceResult, maintain_prompt
from headroom.streaming.delta.query import rows
from tests.unit.streaming.delta.test_damage import event

# By hand for longer: HEADROOM_RACE_APPENDS=20000 takes some minutes.
APPENDS = int(os.environ.get("HEADROOM_RACE_APPENDS", "100"))
WRITERS = 2
OLD_MS = 1_700_000_000_000
_WRITER = """
import sys
from tests.unit.streaming.delta.test_damage import event
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.delta import append as delta_append
from deltalake import DeltaTable
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    delta_append.append(DeltaTable(sys.argv[1]), [event(number)], ALERT_EVENTS)
"""


TODAY = date(2027, 1, 15)
_TYPES = {"STRING": "string", "BIGINT": "long", "INT": "integer", "DOUBLE": "double", "BOOLEAN": "boolean"}
_BALANCE_WRITER = """
import sys
from datetime import timedelta
from pathlib import Path
from tests.unit.streaming.delta.test_compaction_race import TODAY, balance
from tests.unit.streaming.store.test_delivery_table import PlainStore
from headroom.schemas.tables import LEADER_IMBALANCE
from headroom.streaming.store.low_latency_table import LowLatencyTable
table = LowLatencyTable(None, PlainStore(Path(sys.argv[1])), LEADER_IMBALANCE)
for number in range(int(sys.argv[2]), int(sys.argv[3])):
    table.append([balance(TODAY - timedelta(days=number % 4), number)])
"""


def balance(day: date, number: int) -> SimpleNamespace:
    """A row of leader imbalance that is known by its tick."""
    of_type = {"STRING": "c", "BIGINT": number, "INT": 1, "DOUBLE": 0.5, "BOOLEAN": True, "DATE": day}
    return SimpleNamespace(**{column.name: of_type[column.type] for column in LEADER_IMBALANCE.columns})


def balances(path: Path) -> str:
    """A table of leader imbalance, made as the store makes it."""
    types = _TYPES | {"DATE": "date"}
    schema = Schema([Field(c.name, PrimitiveType(types[c.type])) for c in LEADER_IMBALANCE.columns])
    delta_append.create(str(path), LEADER_IMBALANCE, schema)
    return str(path)


def test_tables_that_are_appended_without_spark_are_maintained_without_it() -> None:
    moves = {THROTTLE_HEADROOM, REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE}
    gold = {*moves, LEADER_IMBALANCE, BROKER_LOAD, REPLICATION_LAG, MIGRATION_PROGRESS, MIGRATION_GROUPS}
    assert set(PROMPT_TABLES) == {ALERT_EVENTS, ALERT_DELIVERIES} | gold


def test_old_days_are_dropped_beside_another_process_that_appends(tmp_path: Path) -> None:
    path = balances(tmp_path / LEADER_IMBALANCE.path)
    keep_from = TODAY - timedelta(days=1)
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", _BALANCE_WRITER, str(tmp_path), str(n * APPENDS), str((n + 1) * APPENDS)]
        )
        for n in range(WRITERS)
    ]
    while any(writer.poll() is None for writer in writers):
        # Both writers also append to the days that are dropped, as no job does: that may need many attempts.
        maintain_prompt(path, LEADER_IMBALANCE, 200, keep_from)
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    done = maintain_prompt(path, LEADER_IMBALANCE, 5, keep_from)
    found = rows({"data": path}, "SELECT tick_ms FROM data ORDER BY tick_ms")
    # Of four days in turn the first two are kept, a file each.
    assert [row["tick_ms"] for row in found] == [n for n in range(WRITERS * APPENDS) if n % 4 < 2]
    assert (done.files_after, done.dropped_before) == (2, keep_from)


def test_the_log_of_a_table_is_cleaned_up(tmp_path: Path) -> None:
    path = balances(tmp_path / "imbalance")
    # A checkpoint at every fiftieth version, from which on the log is needed.
    for number in range(52):
        delta_append.append(DeltaTable(path), [balance(TODAY, number)], LEADER_IMBALANCE)
    log = tmp_path / "imbalance" / "_delta_log"
    for file in log.iterdir():
        os.utime(file, (OLD_MS / 1000, OLD_MS / 1000))
    maintain_prompt(path, LEADER_IMBALANCE, 1)
    assert min(int(file.name[:20]) for file in log.glob("0*")) >= 49
    assert len(rows({"data": path}, "SELECT tick_ms FROM data")) == 52


class Panic(BaseException):
    """What the Delta library raises at times."""


def test_a_panic_of_the_library_is_an_error_of_one_table(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def panic(*_: object, **__: object) -> None:
        raise Panic("No space left on device")

    path = balances(tmp_path / "imbalance")
    monkeypatch.setattr(DeltaTable, "vacuum", panic)
    with pytest.raises(HeadroomError, match="No space left on device"):
        maintain_prompt(path, LEADER_IMBALANCE, 1)


def test_no_row_is_lost_or_doubled_by_a_compaction_in_another_process(tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    delta_append.create(path, ALERT_EVENTS)
    writers = [
        subprocess.Popen([sys.executable, "-c", _WRITER, path, str(n * APPENDS), str((n + 1) * APPENDS)])
        for n in range(WRITERS)
    ]
    done: list[MaintenanceResult] = []
    while any(writer.poll() is None for writer in writers):
        done.append(maintain_prompt(path, ALERT_EVENTS, attempts=5))
    assert [writer.returncode for writer in writers] == [0] * WRITERS
    done.append(maintain_prompt(path, ALERT_EVENTS, attempts=5))
    found = rows({"data": path}, "SELECT tick_ms FROM data ORDER BY tick_ms")
    assert [row["tick_ms"] for row in found] == list(range(WRITERS * APPENDS))
    assert DeltaTable(path).version() > WRITERS * APPENDS
    # What is appended during a compaction counts among the files after it, so not every one shows fewer.
    assert sum(one.files_after < one.files_before for one in done) >= 1
    assert done[-1].files_after == 1


def test_files_that_a_compaction_left_behind_are_removed_once_they_are_old(tmp_path: Path) -> None:
    path = tmp_path / "events"
    delta_append.create(str(path), ALERT_EVENTS)
    for number in range(3):
        delta_append.append(DeltaTable(str(path)), [event(number)], ALERT_EVENTS)
    maintain_prompt(str(path), ALERT_EVENTS, attempts=1)
    assert len(list(path.glob("*.parquet"))) == 4
    # Older than two hours, in the log and on the disk.
    for commit in (path / "_delta_log").glob("*.json"):
        text = commit.read_text("utf-8")
        commit.write_text(re.sub(r'"deletionTimestamp":\d+', f'"deletionTimestamp":{OLD_MS}', text), "utf-8")
    for file in path.glob("*.parquet"):
        os.utime(file, (OLD_MS / 1000, OLD_MS / 1000))
    maintain_prompt(str(path), ALERT_EVENTS, attempts=1)
    assert len(list(path.glob("*.parquet"))) == 1
    assert len(rows({"data": str(path)}, "SELECT tick_ms FROM data")) == 3
