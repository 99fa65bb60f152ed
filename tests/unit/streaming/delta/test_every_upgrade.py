"""A table that any version has made is opened, read and written by this one, and one of this version by any other."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from datetime import date
from pathlib import Path
from typing import Any

import pytest
import table_definitions
from deltalake import DeltaTable

from headroom.schemas.tables import ALERT_EVENTS, ALL_TABLES, Column, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta import upgrade as delta_upgrade
from headroom.streaming.delta.query import rows as query
from headroom.streaming.delta.schema import delta_schema
from headroom.streaming.delta.small_table import append_durably
from headroom.streaming.delta.upgrade import upgrade_without_spark
from tests.unit.builders.gold_rows import gold_row

TODAY = {table.path: table for table in ALL_TABLES}
MADE = [
    pytest.param(made, id=f"{path}-{number}")
    for path, definitions in table_definitions.definitions().items()
    for number, made in enumerate(definitions)
]


def mark(table: Table) -> str:
    """The column that tells the rows of a test apart."""
    return next(column.name for column in table.columns if column.type == "STRING")


def row(table: Table, number: int) -> dict[str, Any]:
    """A value in every column, nested ones too."""
    values = gold_row(table, ("c", 7)) | {"date": date(2027, 1, 15), mark(table): str(number)}
    return {name: values[name] for name in table.names()}


def write(path: str, table: Table, number: int) -> None:
    # The library takes no times.
    values = {name: value for name, value in row(table, number).items() if name != "timestamp"}
    delta_append.append_columns(DeltaTable(path), {name: [value] for name, value in values.items()})


def read(path: str, table: Table) -> list[dict[str, Any]]:
    """The rows by their number."""
    return sorted(query({"data": path}, "SELECT * FROM data"), key=lambda one: str(one[mark(table)]))


def without(value: Any, wanted: Any) -> Any:
    """A value with the fields of another one only: what is left must be that."""
    if isinstance(wanted, dict):
        return {name: without(value[name], wanted[name]) for name in wanted}
    if isinstance(wanted, list):
        return [without(one, of) for one, of in zip(value, wanted, strict=True)]
    return value


def beyond(value: Any, known: Any) -> Iterator[Any]:
    """Every value in a row, nested ones too, that another row has no column or field for."""
    if isinstance(value, dict) and isinstance(known, dict):
        for name, one in value.items():
            if name in known:
                yield from beyond(one, known[name])
            else:
                yield one
    elif isinstance(value, list) and isinstance(known, list):
        for one, of in zip(value, known, strict=True):
            yield from beyond(one, of)


def made_with_a_row(folder: Path, made: Table, number: int) -> str:
    path = str(folder / made.path)
    delta_append.create(path, made)
    write(path, made, number)
    return path


def assert_kept(found: dict[str, Any], written: dict[str, Any]) -> None:
    """The row is the one that a version has written, with nulls in all that it did not know."""
    assert without(found, written) == written
    assert set(map(str, beyond(found, written))) <= {"None"}


@pytest.mark.parametrize("made", MADE)
def test_a_table_of_any_version_keeps_its_rows_and_takes_those_of_this_one(tmp_path: Path, made: Table) -> None:
    table = TODAY[made.path]
    path = made_with_a_row(tmp_path, made, 1)
    upgrade_without_spark(path, table)
    write(path, table, 2)
    old, new = read(path, table)
    assert_kept(old, row(made, 1))
    assert without(new, row(table, 2)) == row(table, 2)
    comments = {f.name: f.metadata.get("comment") for f in DeltaTable(path).schema().fields}
    assert comments == {column.name: column.meaning for column in table.columns}
    version = DeltaTable(path).version()
    upgrade_without_spark(path, table)
    assert DeltaTable(path).version() == version


@pytest.mark.parametrize("older", MADE)
def test_any_version_writes_to_a_table_of_this_one_and_leaves_its_columns(tmp_path: Path, older: Table) -> None:
    table = TODAY[older.path]
    path = made_with_a_row(tmp_path, table, 1)
    upgrade_without_spark(path, older)
    write(path, older, 2)
    upgrade_without_spark(path, table)
    new, old = read(path, table)
    assert without(new, row(table, 1)) == row(table, 1)
    assert_kept(old, row(older, 2))


def test_todays_definitions_are_in_the_record() -> None:
    assert table_definitions.sets()[-1] == sorted(ALL_TABLES, key=lambda table: table.path), (
        "the definitions of tables have changed: add them to the record by "
        ".venv/bin/python scripts/table_definitions.py"
    )


def test_a_set_is_recorded_once_and_those_before_stay(tmp_path: Path) -> None:
    record = tmp_path / "record.json"
    older = replace(ALERT_EVENTS, columns=ALERT_EVENTS.columns[:-1])
    assert table_definitions.add([older], "2027-01-01", record)
    assert table_definitions.add(ALL_TABLES, "2027-01-02", record)
    assert not table_definitions.add(ALL_TABLES, "2027-01-03", record)
    assert table_definitions.sets(record) == [[older], sorted(ALL_TABLES, key=lambda table: table.path)]
    assert table_definitions.definitions(record)[ALERT_EVENTS.path] == [older, ALERT_EVENTS]


def test_comments_that_cannot_be_replaced_stop_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    reworded = replace(ALERT_EVENTS, columns=tuple(Column(c.name, c.type, "old") for c in ALERT_EVENTS.columns[:-1]))
    path = made_with_a_row(tmp_path, reworded, 1)
    library = delta_upgrade.write_deltalake

    def refusing(*given: Any, **named: Any) -> None:
        if named["mode"] == "overwrite":
            raise OSError("no")
        library(*given, **named)

    monkeypatch.setattr(delta_upgrade, "write_deltalake", refusing)
    upgrade_without_spark(path, ALERT_EVENTS)
    monkeypatch.undo()
    write(path, ALERT_EVENTS, 2)
    assert [one["event_ms"] for one in read(path, ALERT_EVENTS)] == [None, 7]


def test_new_comments_remove_no_file_and_need_one_commit(tmp_path: Path) -> None:
    path = str(tmp_path / "events")
    old = replace(ALERT_EVENTS, columns=tuple(Column(c.name, c.type, "old") for c in ALERT_EVENTS.columns))
    delta_append.create(path, old)
    for number in range(3):
        write(path, old, number)
    files, version = sorted(DeltaTable(path).file_uris()), DeltaTable(path).version()
    upgrade_without_spark(path, ALERT_EVENTS)
    assert (sorted(DeltaTable(path).file_uris()), DeltaTable(path).version()) == (files, version + 1)
    assert len(read(path, ALERT_EVENTS)) == 3


def test_a_table_that_commands_write_gets_what_is_new_with_the_first_row(tmp_path: Path) -> None:
    path = str(tmp_path / ALERT_EVENTS.path)
    older = replace(ALERT_EVENTS, columns=ALERT_EVENTS.columns[:-1])
    delta_append.create(path, older, delta_schema(older))
    event = type("Event", (), row(ALERT_EVENTS, 2))()
    append_durably(path, [event], ALERT_EVENTS)
    assert [one["event_ms"] for one in read(path, ALERT_EVENTS)] == [7]
