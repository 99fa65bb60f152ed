"""Keeping the tables fast: old days dropped, small files made large, files that nobody reads any more removed.

A day is a folder of its own in every table, so that dropping one rewrites nothing. Compaction takes the days that still
grow; it and the jobs' appends do not conflict, for an append never looks at what is there.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

from delta.tables import DeltaTable
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from schemas.config import StoreSettings
from schemas.tables import TABLES, Table
from streaming.sinks import PROPERTIES, Store

log = logging.getLogger(__name__)

# Days that still get rows: ticks may come late over midnight.
_GROWING_DAYS = 2


@dataclass(frozen=True)
class Maintained:
    """What was done to one table.

    Attributes:
        table: its path.
        files_before: files of the table before.
        files_after: files of the table after.
        bytes_after: size of the table after, bytes.
        dropped_before: the first day that is kept; None: all days are.
    """

    table: str
    files_before: int
    files_after: int
    bytes_after: int
    dropped_before: date | None


class Maintenance:
    """Looks after the tables of one store.

    Args:
        spark: session.
        store: tables.
        settings: how long to keep what.
        tables: those to look after.
    """

    def __init__(
        self, spark: SparkSession, store: Store, settings: StoreSettings, tables: Sequence[Table] = TABLES
    ) -> None:
        self._spark = spark
        self._store = store
        self._settings = settings
        self._tables = tables

    def run(self, today: date | None = None) -> list[Maintained]:
        """Return what was done to each table that is there.

        Args:
            today: the day it is, UTC; None: by the clock.
        """
        day = today or datetime.now(timezone.utc).date()
        return [self._maintain(table, day) for table in self._tables if self._store.exists(table)]

    def _maintain(self, table: Table, today: date) -> Maintained:
        delta = DeltaTable.forPath(self._spark, self._store.location(table))
        before = self._detail(delta)
        self._set_properties(table, before["properties"])
        keep_from = self._keep_from(table, today)
        if keep_from is not None:
            # The condition names the folder's column alone: whole files go, none is rewritten.
            delta.delete(F.col("date") < F.lit(keep_from))
        optimize = delta.optimize()
        if table.partition_by:
            optimize = optimize.where(f"date >= DATE'{today - timedelta(days=_GROWING_DAYS - 1)}'")
        optimize.executeCompaction()
        delta.vacuum()
        after = self._detail(delta)
        return Maintained(table.path, before["numFiles"], after["numFiles"], after["sizeInBytes"], keep_from)

    def _set_properties(self, table: Table, has: Mapping[str, str]) -> None:
        """Give a table that an older version made the properties of today."""
        if any(has.get(key) != value for key, value in PROPERTIES.items()):
            pairs = ", ".join(f"'{key}' = '{value}'" for key, value in PROPERTIES.items())
            self._spark.sql(f"ALTER TABLE delta.`{self._store.location(table)}` SET TBLPROPERTIES ({pairs})")

    def _keep_from(self, table: Table, today: date) -> date | None:
        days = self._settings.keep_days(table.path)
        return today - timedelta(days=days - 1) if days and table.partition_by else None

    @staticmethod
    def _detail(delta: DeltaTable) -> Row:
        return delta.detail().select("numFiles", "sizeInBytes", "properties").collect()[0]


class Schedule:
    """Runs maintenance now and then on a thread of its own, beside the jobs.

    Args:
        run: what to run.
        every_s: time from the end of one run to the next, seconds.
    """

    def __init__(self, run: Callable[[], object], every_s: float) -> None:
        self._run = run
        self._every_s = every_s
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._work, name="maintenance", daemon=True)

    def start(self) -> None:
        """Start; the first run is one period from now."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no further run."""
        self._stop.set()

    def _work(self) -> None:
        while not self._stop.wait(self._every_s):
            try:
                self._run()
            except Exception:
                # The tables are whole whatever fails here, and the next run does what this one did not.
                log.exception("maintenance of the tables failed; it is tried again in %.0f s", self._every_s)
