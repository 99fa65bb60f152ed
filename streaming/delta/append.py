"""Creation of tables, and appends of few rows to tables of flat columns, by the Delta library without a JVM."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from datetime import date
from typing import Any, Literal

from arro3.core import Array, DataType
from arro3.core import Table as ArrowTable
from deltalake import CommitProperties, DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import PrimitiveType

from schemas.errors import ENDINGS, HeadroomError
from schemas.tables import Table
from streaming.delta.properties import properties
from streaming.supervision.failure import cause_of

_ARROW = {
    "STRING": DataType.string(),
    "BIGINT": DataType.int64(),
    "INT": DataType.int32(),
    "DOUBLE": DataType.float64(),
    "BOOLEAN": DataType.bool(),
}
_EPOCH = date(1970, 1, 1).toordinal()
_DELTA = {
    "STRING": PrimitiveType("string"),
    "BIGINT": PrimitiveType("long"),
    "INT": PrimitiveType("integer"),
    "DOUBLE": PrimitiveType("double"),
    "BOOLEAN": PrimitiveType("boolean"),
}


@contextmanager
def without_panic(location: str) -> Iterator[None]:
    """Convert a panic of the Delta library in the block to an error.

    A panic is not an Exception, and a full disk is enough to cause one.

    Args:
        location: folder or URL of the table.

    Raises:
        HeadroomError: the library panicked.
    """
    try:
        yield
    except (Exception, *ENDINGS):
        raise
    except BaseException as error:
        rule = f"the Delta library failed at it ({cause_of(error)})"
        remedy = "Look at the room on its disk, at store.path and the rights on it."
        raise HeadroomError(location, rule, remedy) from error


def create(location: str, table: Table, schema: Schema | None = None) -> None:
    """Create a table; errors of the library are raised unchanged, except for panics.

    Args:
        location: folder or URL.
        table: definition of the table.
        schema: its columns; None if all of them are text, numbers or truth values.
    """
    if schema is None:
        schema = Schema([Field(c.name, _DELTA[c.type], metadata={"comment": c.meaning}) for c in table.columns])
    with without_panic(location):
        DeltaTable.create(
            location,
            schema=schema,
            partition_by=list(table.partition_by),
            description=table.grain,
            configuration=properties(table),
        )


def append(opened: DeltaTable, records: Sequence[object], table: Table, guard: CommitProperties | None = None) -> None:
    """Append rows; the library retries if another process has committed meanwhile.

    Args:
        opened: the table.
        records: rows: objects with the table's columns as attributes.
        table: definition of the table.
        guard: further properties of the commit; None if there are none.

    Raises:
        HeadroomError: the library panicked.
    """
    columns: dict[str, Any] = {
        c.name: _array([getattr(record, c.name) for record in records], c.type) for c in table.columns
    }
    # A newer version of Headroom may have added columns: they are null in these rows.
    mode: Literal["merge"] | None = "merge" if {f.name for f in opened.schema().fields} > columns.keys() else None
    rows = ArrowTable.from_pydict(columns)
    with without_panic(opened.table_uri):
        write_deltalake(opened, rows, mode="append", schema_mode=mode, commit_properties=guard)


def _array(values: Sequence[Any], column_type: str) -> Array:
    if column_type == "DATE":
        # The library does not accept dates, only days since 1970.
        return Array([day.toordinal() - _EPOCH for day in values], DataType.int32()).cast(DataType.date32())
    return Array(values, _ARROW[column_type])
