"""Rows appended by the Delta library alone."""

from __future__ import annotations

import json
from pathlib import Path

from deltalake import CommitProperties, DeltaTable, Field, Schema, Transaction
from deltalake.schema import ArrayType, PrimitiveType

from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.query import rows

EVENT = AlertEvent("a", "no_data", "critical", "firing", "orders", "ticks", "…", "{}", "{}", 1, 2)


def test_columns_that_a_newer_version_added_are_null_in_what_this_one_appends(tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    columns = [Field(c.name, PrimitiveType({"BIGINT": "long"}.get(c.type, "string"))) for c in ALERT_EVENTS.columns]
    newer = [Field("not_yet_known", PrimitiveType("string")), Field("nor_this", ArrayType("long", True))]
    # Added in the middle, as a table is that the newer version made.
    delta_append.create(path, ALERT_EVENTS, Schema([*columns[:3], *newer, *columns[3:]]))
    guard = CommitProperties(app_transactions=[Transaction("w", 7)])
    delta_append.append(DeltaTable(path), [EVENT], ALERT_EVENTS, guard)
    (row,) = rows({"data": path}, "SELECT * FROM data")
    assert row == vars(EVENT) | {"not_yet_known": None, "nor_this": None}
    assert DeltaTable(path).transaction_version("w") == 7
    # The table stays what the newer version made it.
    (commit,) = (tmp_path / "events" / "_delta_log").glob("*1.json")
    assert "metaData" not in {name for line in commit.read_text().splitlines() for name in json.loads(line)}
