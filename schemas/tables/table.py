"""What a Delta table is made of, and the columns that most tables begin with."""

from __future__ import annotations

from dataclasses import dataclass

# Delta collects minimum and maximum per file for these columns only.
_SKIP_BY = ("cluster", "tick_ms", "hour_ms", "timestamp")


@dataclass(frozen=True)
class Column:
    """One column: name, Spark type, and meaning with its unit and the meaning of null."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One Delta table.

    Attributes:
        path: path below ``store.path``.
        grain: content of one row.
        keys: columns that identify a row.
        partition_by: columns of the folder layout.
        columns: columns in the order of the table.
    """

    path: str
    grain: str
    keys: tuple[str, ...]
    partition_by: tuple[str, ...]
    columns: tuple[Column, ...]

    def ddl(self) -> str:
        """Return the Spark DDL of the columns."""
        return ", ".join(f"{c.name} {c.type}" for c in self.columns)

    def names(self) -> list[str]:
        """Return the column names in order."""
        return [c.name for c in self.columns]

    @property
    def skip_by(self) -> tuple[str, ...]:
        """Columns with minimum and maximum statistics per file, by which a query skips files."""
        return tuple(name for name in self.names() if name in _SKIP_BY)


def columns_of(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    """Return columns from (name, Spark type, meaning) rows."""
    return tuple(Column(*row) for row in rows)


TICK_COLUMNS = (
    ("cluster", "STRING", "name of the watched cluster"),
    ("tick_ms", "BIGINT", "time of the tick, epoch milliseconds UTC"),
    ("date", "DATE", "day of tick_ms in UTC; folder of the row"),
)
PARTITION_COLUMNS = (
    ("topic", "STRING", "topic"),
    ("partition", "INT", "partition"),
)
