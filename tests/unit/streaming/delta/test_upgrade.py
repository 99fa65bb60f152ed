"""Tables of an older version get what is new without Spark, while other processes do the same."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import THROTTLE_HEADROOM, Column, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.maintenance import maintain_prompt
from headroom.streaming.delta.properties import properties
from headroom.streaming.delta.query import rows as query
from headroom.streaming.delta.schema import delta_schema
from headroom.streaming.delta.tick_table import TickTable
from headroom.streaming.delta.upgrade import schema_difference, upgrade_without_spark
from tests.unit.builders.gold_rows import gold_row

TICKS = [("c1", 1_800_000_000_000 + 1000 * n) for n in range(3)]


def older() -> Table:
    """Without a column, and without two fields of its nested structs."""
    columns = (
        Column(c.name, c.type.replace(" followers INT,", "").replace(", stalled BOOLEAN", ""), c.meaning)
        for c in THROTTLE_HEADROOM.columns
        if c.name != "eta_high_s"
    )
    return replace(THROTTLE_HEADROOM, columns=tuple(columns))


def missing(path: str, table: Table) -> dict[str, str]:
    opened = DeltaTable(path)
    return schema_difference(table, opened.schema(), opened.metadata().partition_columns).new


def old_table(folder: Path, table: Table) -> str:
    path = str(folder / table.path)
    DeltaTable.create(path, schema=delta_schema(table), partition_by=["date"])
    TickTable(path, table).append({TICKS[0]: [gold_row(table, TICKS[0])]})
    return path


def test_columns_and_nested_fields_are_added_and_rows_of_both_versions_are_read_and_compacted(tmp_path: Path) -> None:
    path = old_table(tmp_path, older())
    new = {"eta_high_s", "partitions.element.followers", "partitions.element.stalled"}
    assert set(missing(path, THROTTLE_HEADROOM)) == new
    upgrade_without_spark(path, THROTTLE_HEADROOM)
    assert missing(path, THROTTLE_HEADROOM) == {}
    table = DeltaTable(path)
    assert properties(THROTTLE_HEADROOM).items() <= table.metadata().configuration.items()
    comments = {field.name: field.metadata.get("comment") for field in table.schema().fields}
    assert comments == {c.name: c.meaning for c in THROTTLE_HEADROOM.columns}
    TickTable(path, THROTTLE_HEADROOM).append({tick: [gold_row(THROTTLE_HEADROOM, tick)] for tick in TICKS})
    for _ in range(2):
        old, new, _ = query({"data": path}, "SELECT * FROM data ORDER BY tick_ms")
        assert {name: new[name] for name in gold_row(THROTTLE_HEADROOM, TICKS[1])} == gold_row(
            THROTTLE_HEADROOM, TICKS[1]
        )
        assert old["eta_high_s"] is None
        evidence = old["partitions"][0]
        assert (evidence["topic"], evidence["leader"], evidence["followers"], evidence["stalled"]) == (
            "s",
            3,
            None,
            None,
        )
        maintain_prompt(path, THROTTLE_HEADROOM, 1)


def test_what_cannot_be_upgraded_is_left_as_it_is(tmp_path: Path) -> None:
    types = (Column(c.name, "STRING" if c.name == "verdict" else c.type, c.meaning) for c in older().columns)
    wrong = replace(older(), columns=tuple(c for c in types if c.name != "broker"))
    path = old_table(tmp_path, replace(wrong, keys=()))
    version = DeltaTable(path).version()
    with pytest.raises(HeadroomError, match="but broker is missing") as error:
        upgrade_without_spark(path, THROTTLE_HEADROOM)
    assert error.value.subject == path
    assert "move it away" in error.value.remedy
    assert DeltaTable(path).version() == version


_UPGRADE = """
import sys
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.delta.upgrade import upgrade_without_spark
upgrade_without_spark(sys.argv[1], THROTTLE_HEADROOM)
"""


def test_processes_upgrade_the_same_table_at_the_same_time(tmp_path: Path) -> None:
    path = old_table(tmp_path, older())
    processes = [subprocess.Popen([sys.executable, "-c", _UPGRADE, path]) for _ in range(3)]
    assert [process.wait() for process in processes] == [0, 0, 0]
    assert missing(path, THROTTLE_HEADROOM) == {}
    fields = json.loads(DeltaTable(path).schema().to_json())["fields"]
    assert {field["name"] for field in fields} == set(THROTTLE_HEADROOM.names())
    assert len(query({"data": path}, "SELECT * FROM data")) == 1


def test_the_first_version_of_a_table_needs_no_upgrade(tmp_path: Path) -> None:
    path = str(tmp_path / "new")
    delta_append.create(path, THROTTLE_HEADROOM)
    version = DeltaTable(path).version()
    upgrade_without_spark(path, THROTTLE_HEADROOM)
    assert DeltaTable(path).version() == version
