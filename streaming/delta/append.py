"""Creation of tables, and appends of few rows, by the Delta library without a JVM."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from typing import Any, Literal, TypeVar

from deltalake import CommitProperties, DeltaTable, Schema, write_deltalake
from deltalake.exceptions import CommitFailedError

from headroom.schemas.errors import ENDINGS, HeadroomError
from headroom.schemas.tables import Table
from headroom.streaming.delta.arrow import arrow_table
from headroom.streaming.delta.files.sync import sync_commits
from headroom.streaming.delta.locations import DISK_REMEDY
from headroom.streaming.delta.properties import properties
from headroom.streaming.delta.schema import delta_schema
from headroom.streaming.supervision.failure import cause_of

_BETWEEN_CONFLICTS_S = 0.2
# Rows that are appended can wait this long while others commit more quickly.
APPEND_FOR_S = 3.0

T = TypeVar("T")


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
        raise HeadroomError(location, rule, DISK_REMEDY) from error


def again_on_conflict(attempt: Callable[[], T], attempts: int, for_s: float = 0.0) -> T:
    """Return the result of an attempt, which is made again as long as another process was faster to commit.

    Args:
        attempt: opens the table and commits to it. A commit that failed by a conflict has changed nothing.
        attempts: number of attempts after which the conflict is raised, unless the time is not over.
        for_s: time for which it is tried in any case, seconds. On a busy machine a process of low priority may be
            slower than the others many times in turn.
    """
    until_s = time.monotonic() + for_s
    number = 1
    while number < attempts or time.monotonic() < until_s:
        with suppress(CommitFailedError):
            return attempt()
        if number >= attempts:
            time.sleep(_BETWEEN_CONFLICTS_S)
        number += 1
    return attempt()


def create(location: str, table: Table, schema: Schema | None = None) -> None:
    """Create a table; errors of the library are raised unchanged, except for panics.

    Its columns are synced to the disk, because no other file of a table has them.

    Args:
        location: folder or URL.
        table: definition of the table.
        schema: its columns; None: those of the definition.
    """
    with without_panic(location):
        DeltaTable.create(
            location,
            schema=schema or delta_schema(table),
            partition_by=list(table.partition_by),
            description=table.grain,
            configuration=properties(table),
        )
    sync_commits(location, -1)


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
    columns = {name: [getattr(record, name) for record in records] for name in table.names()}
    append_columns(opened, columns, guard)


def append_columns(
    opened: DeltaTable, columns: Mapping[str, Sequence[Any]], guard: CommitProperties | None = None
) -> None:
    """Append rows that are given as columns; the library retries if another process has committed meanwhile.

    Args:
        opened: the table.
        columns: values by column; see ``streaming.delta.arrow``. Columns of the table without values are null.
        guard: further properties of the commit; None if there are none.

    Raises:
        HeadroomError: the library panicked.
    """
    fields = opened.schema().fields
    known = [f for f in fields if f.name in columns]
    rows = arrow_table(columns, Schema(known).to_arrow())
    # A newer version may have added columns, of types that only the library can make nulls of.
    mode: Literal["merge"] | None = "merge" if len(known) < len(fields) else None
    with without_panic(opened.table_uri):
        write_deltalake(opened, rows, mode="append", schema_mode=mode, commit_properties=guard)
