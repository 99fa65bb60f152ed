"""Group ``upgrades``: can every recorded version of the tables be upgraded to this one, and back?

`tests/table_definitions.json` records each set of definitions that was ever released to the main branch. One store per
set is used as by the person who upgrades, and then returns to the older version:

1. The older version creates all its tables, and writes a row with a value in every column, nested ones too.
2. This version upgrades each table, adds the tables that are new, and writes a row.
3. The older version upgrades the tables to its own definitions, and writes a row.
4. This version upgrades them again.

A set has failed in the upgrade or in the downgrade if a step raises an error, if a row is missing or has another value,
or if a column that its version did not have is not null. `upgrades_failed` is the number of failed upgrades and
downgrades, two per set. These use the Delta library alone, as Headroom's commands and alert path do.

The history process opens tables by Spark. So Spark opens one more store of the oldest set, reads all its rows, appends
to each table, and the older version writes afterwards; that is one upgrade and one downgrade more. `upgrades_tables` is
the number of tables in all these stores.

`--parts` chooses some of the parts `library` and `spark`.
"""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import date
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.options.fields import parts_option
from benchmarks.results import Figure
from headroom.schemas.config import SparkSettings
from headroom.schemas.tables import ALL_TABLES, Table
from headroom.streaming.delta.append import append_columns, create
from headroom.streaming.delta.query import rows as query
from headroom.streaming.delta.upgrade import upgrade_without_spark
from headroom.streaming.session import build_session
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of
from scripts.table_definitions import sets
from tests.unit.builders.gold_rows import gold_row

_DAY = date(2027, 1, 15)
_TODAY = {table.path: table for table in ALL_TABLES}
# Numbers of the rows, by the version that writes them.
_OLD_ROW, _NEW_ROW, _RETURNED_ROW = 1, 2, 3


@dataclass(frozen=True)
class UpgradeOutcome:
    """What became of one store.

    Attributes:
        tables: number of its tables.
        upgrade: faults after the upgrade, one per table.
        downgrade: faults after the return to the older version, one per table.
    """

    tables: int
    upgrade: Sequence[str]
    downgrade: Sequence[str]

    @property
    def failed(self) -> int:
        """Return how many of its upgrade and its downgrade failed."""
        return bool(self.upgrade) + bool(self.downgrade)


# Upgrades the tables of a store to this version, and writes a row to each.
Opening = Callable[[Path], None]


@dataclass(frozen=True)
class UpgradesOptions:
    """Options of the group ``upgrades``."""

    parts: tuple[str, ...] = parts_option("library", "spark")


def measure(on_progress: OnProgress, options: UpgradesOptions) -> list[Figure]:
    """Return the number of failed upgrades and downgrades."""
    outcomes = []
    recorded = sets()
    if "library" in options.parts:
        for number, older in enumerate(recorded):
            outcomes.append(_report(f"set {number + 1} of {len(recorded)}", played(older), on_progress))
    if "spark" in options.parts:
        outcomes.append(_report("the oldest set, by Spark", played(recorded[0], _open_by_spark), on_progress))
    return figures(outcomes)


def figures(outcomes: Sequence[UpgradeOutcome]) -> list[Figure]:
    """Return the figures over some stores."""
    return [
        Figure("upgrades_failed", sum(one.failed for one in outcomes), "upgrades", 2 * len(outcomes)),
        Figure("upgrades_tables", sum(one.tables for one in outcomes), "tables", len(outcomes)),
    ]


def _report(name: str, outcome: UpgradeOutcome, on_progress: OnProgress) -> UpgradeOutcome:
    on_progress(f"{name}: {outcome.tables} tables, {outcome.failed} of upgrade and downgrade failed")
    for fault in (*outcome.upgrade, *outcome.downgrade):
        on_progress(f"    {fault}")
    return outcome


def played(older: Sequence[Table], opening: Opening | None = None) -> UpgradeOutcome:
    """Return what became of a store that an older version made, this one upgraded, and the older one used again.

    Args:
        older: the tables of the older version.
        opening: upgrades the store; None: by the Delta library.
    """
    with tempfile.TemporaryDirectory(prefix="headroom-bench-") as place:
        store = Path(place)
        for table in older:
            create(str(store / table.path), table)
            write_row(store, table, _OLD_ROW)
        opened = _fault_of(lambda: (opening or _open_by_library)(store))
        upgrade = list(opened or _faults(store, older, _read_after_upgrade))
        downgrade = list(_faults(store, older, _return_to)) if not upgrade else ["downgrade: not tried"]
        return UpgradeOutcome(len(_TODAY), upgrade, downgrade)


def _open_by_library(store: Path) -> None:
    for table in ALL_TABLES:
        path = str(store / table.path)
        if DeltaTable.is_deltatable(path):
            upgrade_without_spark(path, table)
        else:
            create(path, table)
        write_row(store, table, _NEW_ROW)


def _open_by_spark(store: Path) -> None:
    spark = build_session(SparkSettings(master="local[2]", driver_memory="1g"), "upgrades")
    try:
        tables = Store(spark, str(store))
        tables.ensure(*ALL_TABLES)
        for table in ALL_TABLES:
            frame = tables.read(table)
            rows = frame.collect()
            new = spark.createDataFrame([row(table, _NEW_ROW)], frame.schema)
            new.write.format("delta").mode("append").save(tables.location(table))
            if tables.read(table).count() != len(rows) + 1:
                raise ValueError(f"{table.path}: Spark reads other rows than it has appended")
    finally:
        spark.stop()


def _faults(store: Path, older: Sequence[Table], check: Callable[[Path, Table], None]) -> Iterator[str]:
    for table in older:
        yield from _fault_of(lambda table=table: check(store, table), table.path)  # type: ignore[misc]


def _fault_of(act: Callable[[], None], name: str = "store") -> list[str]:
    """Return the fault of an act in one line; none if it succeeds."""
    try:
        act()
    # Whatever it is: an upgrade that ends with any error has failed.
    except Exception as error:
        return [f"{name}: {cause_of(error)}"]
    return []


def _read_after_upgrade(store: Path, older: Table) -> None:
    """Check the rows of both versions."""
    table = _TODAY[older.path]
    old, new = _rows(store, table)
    _require(old, older, _OLD_ROW)
    _require(new, table, _NEW_ROW)


def _return_to(store: Path, older: Table) -> None:
    """Let the older version write, this one upgrade again, and check all rows."""
    table, path = _TODAY[older.path], str(store / older.path)
    upgrade_without_spark(path, older)
    write_row(store, older, _RETURNED_ROW)
    upgrade_without_spark(path, table)
    old, new, returned = _rows(store, table)
    _require(old, older, _OLD_ROW)
    _require(new, table, _NEW_ROW)
    _require(returned, older, _RETURNED_ROW)


def row(table: Table, number: int) -> dict[str, Any]:
    """Return a row with a value in every column but times.

    Args:
        table: definition of the table.
        number: number of the row, in its first column of text.
    """
    values = gold_row(table, ("c", 7)) | {"date": _DAY, _text_column(table): str(number)}
    return {name: values[name] for name in table.names()}


def write_row(store: Path, table: Table, number: int) -> None:
    """Append a row to a table, as a version with this definition does."""
    # The Delta library takes no times.
    columns = {name: [value] for name, value in row(table, number).items() if value is not None}
    append_columns(DeltaTable(str(store / table.path)), columns)


def _rows(store: Path, table: Table) -> list[dict[str, Any]]:
    rows = query({"data": str(store / table.path)}, "SELECT * FROM data")
    return sorted(rows, key=lambda one: str(one[_text_column(table)]))


def _text_column(table: Table) -> str:
    return next(column.name for column in table.columns if column.type == "STRING")


def _require(actual: Any, table: Table, number: int) -> None:
    """Check a row that is read.

    Raises:
        ValueError: a value differs from the written one, or one that was not written is not null.
    """
    if wrong := difference(actual, row(table, number)):
        raise ValueError(f"row {number}: {wrong}")


def difference(actual: Any, wanted: Any, at: str = "") -> str:
    """Return where a value that is read differs from the one that was written, apart from nulls; empty if nowhere."""
    if isinstance(actual, dict) and isinstance(wanted, dict):
        parts = [difference(actual.get(name), wanted.get(name), f"{at}.{name}") for name in (*wanted, *actual)]
    elif isinstance(actual, list) and isinstance(wanted, list) and len(actual) == len(wanted):
        parts = [difference(one, other, f"{at}[]") for one, other in zip(actual, wanted, strict=True)]
    elif isinstance(actual, dict) and wanted is None:
        parts = [difference(value, None, f"{at}.{name}") for name, value in actual.items()]
    else:
        parts = [] if actual == wanted else [f"{at.lstrip('.')} is {actual!r}, not {wanted!r}"]
    return next((part for part in parts if part), "")
