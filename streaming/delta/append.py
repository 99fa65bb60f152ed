"""Tables made, and small ones of flat columns written, by the Delta library alone, without a JVM."""

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
_DELTA = {"STRING": PrimitiveType("string"), "BIGINT": PrimitiveType("long")}


@contextmanager
def without_panic(location: str) -> Iterator[None]:
    """Let a panic of the Delta library be an error: it is no Exception, and a full disk is enough for one.

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
    """Make a table where there is none; what goes wrong is raised as the library raises it.

    Args:
        location: folder or URL.
        table: what it is to be.
        schema: its columns; None: they are all of text and whole numbers.
    """
    with without_panic(location):
        DeltaTable.create(
            location,
            schema=schema or _flat(table),
            partition_by=list(table.partition_by),
            description=table.grain,
            configuration=properties(table),
        )


def _flat(table: Table) -> Schema:
    return Schema([Field(c.name, _DELTA[c.type], metadata={"comment": c.meaning}) for c in table.columns])


def append(there: DeltaTable, records: Sequence[object], table: Table, guard: CommitProperties | None = None) -> None:
    """Append rows; of two that append at once the later tries again.

    Args:
        there: the table, opened.
        records: rows: objects with its columns as attributes.
        table: its columns.
        guard: what the commit says besides; None: nothing.

    Raises:
        HeadroomError: the library panicked.
    """
    columns: dict[str, Any] = {
        c.name: _array([getattr(record, c.name) for record in records], c.type) for c in table.columns
    }
    # A newer version may have added columns: in these rows they are null.
    mode: Literal["merge"] | None = "merge" if {f.name for f in there.schema().fields} > columns.keys() else None
    rows = ArrowTable.from_pydict(columns)
    with without_panic(there.table_uri):
        write_deltalake(there, rows, mode="append", schema_mode=mode, commit_properties=guard)


def _array(values: Sequence[Any], of: str) -> Array:
    if of == "DATE":
        # The library takes no dates, but days since 1970.
        return Array([day.toordinal() - _EPOCH for day in values], DataType.int32()).cast(DataType.date32())
    return Array(values, _ARROW[of])
