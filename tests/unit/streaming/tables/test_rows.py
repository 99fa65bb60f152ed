"""Rows become objects by the names of the tables' columns, as ``schemas.tables`` has them: none is misspelt."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import pytest

from headroom.alerts.inputs.leader_balance import leader_balance_of, plan_summary
from headroom.alerts.inputs.throttle_status import throttle_status_of
from headroom.schemas.tables import (
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALERT_MARKS,
    ELECTION_PLAN,
    LEADER_IMBALANCE,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.streaming.tables.events import event_of
from headroom.streaming.tables.suppressions import record_of
from headroom.streaming.tables.undelivered import attempt_of

SCALARS: dict[str, Any] = {"STRING": "x", "BIGINT": 1, "INT": 1, "DOUBLE": 1.0, "BOOLEAN": True, "DATE": None}
# Columns with one of a few texts.
TEXTS = {"role": "follower", "verdict": "starved"}
# Columns that an object does not need: dates, those of other readers, and those from which others are computed.
NOT_READ = {
    THROTTLE_HEADROOM: {"cluster", "tick_ms", "date", "headroom_bytes_per_s", "rate_window_ms"},
    LEADER_IMBALANCE: {"cluster", "date", "imbalance_ratio", "metadata_age_ms", "rate_window_ms"},
    ELECTION_PLAN: {"cluster", "date"},
}


class Fields(dict[str, Any]):
    """A row or struct that notes which of its fields are read; one that it does not have fails, as in a real row."""

    def __init__(self, name: str, fields: dict[str, Any]) -> None:
        super().__init__(fields)
        self.name = name
        self.read: set[str] = set()

    def __getitem__(self, name: str) -> Any:
        self.read.add(name)
        return super().__getitem__(name)

    def get(self, name: str, default: Any = None) -> Any:
        assert name in self, f"{self.name} has no {name}"
        return self[name]

    def unread(self) -> set[str]:
        """Paths of the fields that were not read, in structs too."""
        nested = [found[0] if isinstance(found, list) and found else found for found in self.values()]
        inner = [one.unread() for one in nested if isinstance(one, Fields)]
        return {f"{self.name}{name}" for name in self.keys() - self.read}.union(*inner)


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


def sample(name: str, of: str) -> Any:
    """A value of a column of a type; arrays have one element."""
    if array := re.fullmatch(r"ARRAY<(.*)>", of):
        return [sample(name, array[1])]
    if struct := re.fullmatch(r"STRUCT<(.*)>", of):
        fields = [field.split(" ", 1) for field in parts(struct[1])]
        return Fields(f"{name}.", {field: sample(field, kind.strip()) for field, kind in fields})
    return TEXTS.get(name, SCALARS[of])


@pytest.mark.parametrize(
    ("table", "reader"),
    [
        (ALERT_EVENTS, event_of),
        (ALERT_DELIVERIES, attempt_of),
        (ALERT_MARKS, record_of),
        (THROTTLE_HEADROOM, throttle_status_of),
        (LEADER_IMBALANCE, leader_balance_of),
        (ELECTION_PLAN, plan_summary),
    ],
    ids=lambda value: value.path if isinstance(value, Table) else "",
)
def test_a_row_is_read_by_the_columns_of_its_table(table: Table, reader: Callable[[Any], Any]) -> None:
    row = Fields("", {column.name: sample(column.name, column.type) for column in table.columns})
    reader(row)
    assert row.unread() == NOT_READ.get(table, set())
