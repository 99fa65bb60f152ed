"""Records of the rows of tables that other programs may have written too."""

from __future__ import annotations

import logging
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar

from headroom.schemas.errors import HeadroomError
from headroom.schemas.records import record
from headroom.schemas.tables import Table

log = logging.getLogger(__name__)

T = TypeVar("T")
Row = Mapping[str, Any]


def row_records(kind: type[T], rows: Iterable[Row], table: Table) -> list[T]:
    """Return the records of rows, for tables of which no row may be overlooked.

    Raises:
        HeadroomError: a row is not of the table's types.
    """
    read = []
    for row in rows:
        try:
            read.append(record(kind, row))
        except ValueError as error:
            remedy = "No version of Headroom writes that. Delete the row, or restore the table from a copy."
            raise HeadroomError(table.path, f"has a row that cannot be used: {error}", remedy) from None
    return read


def usable_records(kind: type[T], rows: Iterable[Row], table: Table) -> list[T]:
    """Return the records of rows, for tables of which each row is useful alone; others are left out, and logged."""
    usable, problems = [], []
    for row in rows:
        try:
            usable.append(record(kind, row))
        except ValueError as error:
            problems.append(error)
    if problems:
        log.warning("%s: %d rows are left out, because they cannot be used: %s", table.path, len(problems), problems[0])
    return usable
