"""Rows become objects by the names of the tables' columns, as ``schemas.tables`` has them: none is misspelt."""

from __future__ import annotations

import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest

from headroom.alerts.delivery.delivery_log import DeliveryAttempt
from headroom.alerts.delivery.suppression import SuppressionRecord
from headroom.alerts.inputs.broker_load import BrokerLoadState
from headroom.alerts.inputs.leader_balance import leader_balance_of, plan_summary
from headroom.alerts.inputs.throttle_status import throttle_status_of
from headroom.planning.reassignments.run.journal import JournalRow
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.errors import HeadroomError
from headroom.schemas.records import record
from headroom.schemas.tables import (
    ACTION_JOURNAL,
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALERT_MARKS,
    BROKER_LOAD,
    ELECTION_PLAN,
    LEADER_IMBALANCE,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.streaming.tables.rows import row_records, usable_records

# Two values of each type.
SCALARS: dict[str, tuple[Any, Any]] = {
    "STRING": ("x", "y"),
    "BIGINT": (1, 2),
    "INT": (1, 2),
    "DOUBLE": (1.0, 2.0),
    "BOOLEAN": (True, False),
    "DATE": (None, None),
}
# Columns with one of a few texts.
TEXTS = {"role": ("follower", "leader"), "verdict": ("starved", "losing")}
# Columns that an object does not need: dates, those of other readers, and those from which others are computed.
NOT_READ = {
    BROKER_LOAD: {"cluster", "date", "counter_bytes", "minute_ms", "read_ms"},
    THROTTLE_HEADROOM: {"cluster", "tick_ms", "date", "headroom_bytes_per_s", "rate_window_ms"},
    LEADER_IMBALANCE: {"cluster", "date", "imbalance_ratio", "metadata_age_ms", "rate_window_ms"},
    ELECTION_PLAN: {"cluster", "date"},
}


def parts(text: str) -> list[str]:
    """The parts between the commas of a type that are in no bracket."""
    found, depth = [""], 0
    for sign in text:
        depth += {"<": 1, ">": -1}.get(sign, 0)
        if sign == "," and depth == 0:
            found.append("")
        else:
            found[-1] += sign
    return [one.strip() for one in found]


def sample(name: str, of: str, changed: str = "", path: str = "") -> Any:
    """A value of a column of a type; arrays have one element. That of the changed path is another one."""
    path = f"{path}{name}"
    if array := re.fullmatch(r"ARRAY<(.*)>", of):
        return [sample(name, array[1], changed, path.removesuffix(name))]
    if struct := re.fullmatch(r"STRUCT<(.*)>", of):
        return {field: sample(field, kind, changed, f"{path}.") for field, kind in fields(struct[1])}
    return TEXTS.get(name, SCALARS[of])[path == changed]


def fields(struct: str) -> list[tuple[str, str]]:
    """Names and types of the fields of a struct."""
    return [(name, kind.strip()) for name, kind in (field.split(" ", 1) for field in parts(struct))]


def paths(name: str, of: str) -> list[str]:
    """Path of each scalar in a column, through arrays and structs: ``peers.broker``."""
    if array := re.fullmatch(r"ARRAY<(.*)>", of):
        return paths(name, array[1])
    if struct := re.fullmatch(r"STRUCT<(.*)>", of):
        return [f"{name}.{inner}" for field, kind in fields(struct[1]) for inner in paths(field, kind)]
    return [name]


def row_of(table: Table, changed: str = "") -> dict[str, Any]:
    return {column.name: sample(column.name, column.type, changed) for column in table.columns}


@pytest.mark.parametrize(
    ("table", "reader"),
    [
        (ACTION_JOURNAL, partial(record, JournalRow)),
        (ALERT_EVENTS, partial(record, AlertEvent)),
        (ALERT_DELIVERIES, partial(record, DeliveryAttempt)),
        (ALERT_MARKS, partial(record, SuppressionRecord)),
        (BROKER_LOAD, partial(record, BrokerLoadState)),
        (THROTTLE_HEADROOM, throttle_status_of),
        (LEADER_IMBALANCE, leader_balance_of),
        (ELECTION_PLAN, plan_summary),
    ],
    ids=lambda value: value.path if isinstance(value, Table) else "",
)
def test_a_row_is_read_by_the_columns_of_its_table(table: Table, reader: Callable[[Any], Any]) -> None:
    """Each column changes what is read, through arrays and structs, but for those that are not needed."""
    read = reader(row_of(table))
    unread = {
        path
        for column in table.columns
        for path in paths(column.name, column.type)
        if reader(row_of(table, path)) == read
    }
    assert unread == NOT_READ.get(table, set())


def test_a_column_of_a_newer_version_is_ignored() -> None:
    assert record(AlertEvent, {**row_of(ALERT_EVENTS), "new": 1}) == record(AlertEvent, row_of(ALERT_EVENTS))


@pytest.mark.parametrize(
    ("changes", "problem"),
    [
        ({"tick_ms": None}, "tick_ms: input should be a valid integer"),
        ({"tick_ms": "soon"}, "tick_ms: input should be a valid integer, unable to parse string as an integer"),
        ({"severity": 3}, "severity: input should be a valid string"),
    ],
)
def test_a_value_of_another_type_is_named(changes: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^{problem}$"):
        record(AlertEvent, row_of(ALERT_EVENTS) | changes)


def test_a_missing_value_without_a_default_is_named() -> None:
    row = row_of(ALERT_EVENTS)
    del row["kind"]
    with pytest.raises(ValueError, match=r"^kind: "):
        record(AlertEvent, row)


def test_a_wrong_row_of_a_table_of_which_none_may_be_overlooked_is_an_error() -> None:
    rows = [row_of(ACTION_JOURNAL), row_of(ACTION_JOURNAL) | {"step": None}]
    with pytest.raises(HeadroomError, match=f"^{ACTION_JOURNAL.path}: has a row that cannot be used: step: "):
        row_records(JournalRow, rows, ACTION_JOURNAL)


def test_other_tables_lose_only_their_wrong_rows_and_the_log_says_so(caplog: pytest.LogCaptureFixture) -> None:
    rows = [row_of(ALERT_EVENTS) | {"kind": None}, row_of(ALERT_EVENTS)]
    assert usable_records(AlertEvent, rows, ALERT_EVENTS) == [record(AlertEvent, rows[1])]
    assert "1 rows are left out" in caplog.text
    assert "kind: input should be a valid string" in caplog.text
