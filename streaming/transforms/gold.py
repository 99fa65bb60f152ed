"""Rows of the gold tables, from complete ticks."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import cached_property

from pyspark.sql import DataFrame, Row

from headroom.schemas.keys import Tick
from headroom.schemas.tables import PARTITION_WRITE_RATE, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from headroom.streaming.transforms.moves.progress import reassignment_progress
from headroom.streaming.transforms.moves.replicas import MOVES_OR_LISTED, followers_of, moves_or_listed, replicas
from headroom.streaming.transforms.moves.throttle_headroom import AT_THROTTLE, throttle_headroom
from headroom.streaming.transforms.moves.write_rate import with_write_rate
from headroom.streaming.transforms.prepared import Prepared
from headroom.streaming.transforms.tick_status import ExtraTickColumn, rows_of

_ADDING = f"filter({followers_of('r.')}, x -> coalesce(array_contains(r.adding, x), false))"
# Table to the number of its rows for a message of the kind moves.
_ROWS_OF_MOVES = {
    REASSIGNMENT_PROGRESS: f"aggregate(rows, 0, (sum, r) -> sum + coalesce(size({_ADDING}), 0))",
    PARTITION_WRITE_RATE: f"size(filter(rows, r -> {moves_or_listed('r.')}))",
}
# Further columns of ``tick_status`` for ``move_row_counts``.
MOVE_ROW_COLUMNS = tuple(
    ExtraTickColumn(table.path.replace("/", "_"), f"coalesce(sum(CASE WHEN kind = 'moves' THEN {count} END), 0)")
    for table, count in _ROWS_OF_MOVES.items()
)


class Gold:
    """The rows of the gold tables for the same ticks, in the tables' columns; each frame is made when it is read.

    Args:
        queries: planned queries.
        messages: of ``streaming.transforms.tick_status.complete_ticks``.
        cache: computes a frame that several tables are made from, keeps its rows, and returns it.
    """

    def __init__(self, queries: GoldQueries, messages: DataFrame, cache: Callable[[DataFrame], DataFrame]) -> None:
        self._queries, self._messages = queries, messages
        self._followers = cache(queries.followers.on(messages))
        self._wide_headroom = cache(queries.wide_headroom.on(self._followers, messages))

    @cached_property
    def headroom(self) -> DataFrame:
        """Return the rows of ``gold/throttle_headroom``."""
        return self._queries.headroom.on(self._wide_headroom)

    @cached_property
    def progress(self) -> DataFrame:
        """Return the rows of ``gold/reassignment_progress``."""
        return self._queries.progress.on(self._followers, self._wide_headroom)

    @cached_property
    def write_rate(self) -> DataFrame:
        """Return the rows of ``gold/partition_write_rate``."""
        return self._queries.write_rate.on(self._messages)

    @cached_property
    def moves(self) -> DataFrame:
        """Return the rows of both tables of moves, for one job: structs ``progress`` and ``write_rate``, one null."""
        return self._queries.moves.on(self._followers, self._wide_headroom, self._messages)

    def of(self, table: Table) -> DataFrame:
        """Return the rows of one of the tables."""
        if table is THROTTLE_HEADROOM:
            return self.headroom
        return self.progress if table is REASSIGNMENT_PROGRESS else self.write_rate


def headroom_rows(messages: DataFrame) -> DataFrame:
    """Return the rows of ``gold/throttle_headroom`` except for ``date``, which the alert path does not need.

    They are not cast to the table's types, which differ only in the width of some integers: 60 casts would add 10 % to
    the planning time of a batch.

    Args:
        messages: of ``streaming.transforms.tick_status.complete_ticks``.
    """
    return throttle_headroom(_followers(messages), rows_of(messages, "brokers"))


def move_row_counts(status: Sequence[Row]) -> dict[Table, dict[Tick, int]]:
    """Return for each gold table of moves the ticks that have rows in it, with their number.

    Args:
        status: rows of ``tick_status`` with ``MOVE_ROW_COLUMNS``, one per tick.
    """
    return {
        table: {(row["cluster"], row["tick_ms"]): row[column.name] for row in status if row[column.name]}
        for table, column in zip(_ROWS_OF_MOVES, MOVE_ROW_COLUMNS, strict=True)
    }


class GoldQueries:
    """Queries of the gold tables, planned once and run on the rows of each batch.

    Attributes:
        followers: messages to replicas of the partitions that move.
        wide_headroom: replicas and messages to rows of ``gold/throttle_headroom`` with the column that progress needs.
        headroom: these rows to those of the table.
        progress: replicas and wide rows to ``gold/reassignment_progress``.
        write_rate: messages to ``gold/partition_write_rate``.
        moves: replicas, wide rows and messages to the rows of the two tables of moves in one frame.
    """

    def __init__(self) -> None:
        self.followers = Prepared(_followers)
        self.wide_headroom = Prepared(_headroom)
        self.headroom = Prepared(_headroom_table)
        self.progress = Prepared(_progress)
        self.write_rate = Prepared(_write_rate)
        self.moves = Prepared(_moves)

    def rows(self, messages: DataFrame, cache: Callable[[DataFrame], DataFrame] = lambda frame: frame) -> Gold:
        """Return the rows of the gold tables; arguments as of ``Gold``."""
        return Gold(self, messages, cache)


def _followers(messages: DataFrame) -> DataFrame:
    return replicas(rows_of(messages, "moves"), rows_of(messages, "brokers"))


def _headroom(followers: DataFrame, messages: DataFrame) -> DataFrame:
    """Return the rows of ``gold/throttle_headroom`` with the extra column that progress needs."""
    rows = throttle_headroom(followers, rows_of(messages, "brokers"), [AT_THROTTLE])
    return as_table(rows, THROTTLE_HEADROOM, [AT_THROTTLE])


def _headroom_table(headroom: DataFrame) -> DataFrame:
    return headroom.select(*THROTTLE_HEADROOM.names())


def _progress(followers: DataFrame, headroom: DataFrame) -> DataFrame:
    return as_table(reassignment_progress(followers, headroom), REASSIGNMENT_PROGRESS)


def _write_rate(messages: DataFrame) -> DataFrame:
    return as_table(with_write_rate(rows_of(messages, "moves").where(MOVES_OR_LISTED)), PARTITION_WRITE_RATE)


def _moves(followers: DataFrame, headroom: DataFrame, messages: DataFrame) -> DataFrame:
    no_progress, no_rate = (
        f"CAST(NULL AS STRUCT<{table.ddl()}>)" for table in (REASSIGNMENT_PROGRESS, PARTITION_WRITE_RATE)
    )
    progress = _progress(followers, headroom).selectExpr("struct(*) AS progress", f"{no_rate} AS write_rate")
    return progress.union(_write_rate(messages).selectExpr(no_progress, "struct(*)"))


def as_table(rows: DataFrame, table: Table, extra_columns: Iterable[str] = (), time: str = "tick_ms") -> DataFrame:
    """Return the rows in a table's columns and types, with ``date`` computed from their time.

    Args:
        rows: rows with every column of the table except for ``date``.
        table: table.
        extra_columns: further columns of the rows, kept unchanged.
        time: column with the time, epoch milliseconds.
    """
    # As text, because each Column made in Python is several calls into the JVM, and there is a batch per second.
    made = {"date": f"to_date(timestamp_millis({time}))"}
    return rows.selectExpr(
        *[f"CAST({made.get(c.name, c.name)} AS {c.type}) AS {c.name}" for c in table.columns], *extra_columns
    )
