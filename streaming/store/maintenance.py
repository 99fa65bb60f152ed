"""Maintenance of the tables: deletes old days, compacts small files, removes unreferenced files.

Each day is a folder of its own in every table, so deleting one rewrites nothing. Maintenance does not conflict with the
jobs: their appends read nothing, compaction changes no row, and columns and properties stay as they are. Only a second
maintenance can conflict.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from datetime import date, datetime, timedelta, timezone

from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    MetadataChangedException,
)
from delta.tables import DeltaTable
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from headroom.schemas.config import StoreSettings
from headroom.schemas.tables import PROMPT_TABLES, TABLES, Table
from headroom.streaming.delta.locations import local_path
from headroom.streaming.delta.maintenance import MaintenanceFailure, MaintenanceResult, maintain_prompt
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.periodic_task import PeriodicTask

log = logging.getLogger(__name__)

# Another maintenance was faster, or a job that started at the same time added a column.
CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    MetadataChangedException,
)
_ATTEMPTS = 5
# The first run comes early, so that a process that ends within a period maintains its tables too.
_FIRST_RUN_RATIO = 0.1


class Maintenance:
    """Maintains the tables of one store.

    Args:
        spark: session.
        store: tables.
        settings: section ``[store]``: days to keep.
        tables: tables to maintain.
    """

    def __init__(
        self, spark: SparkSession, store: Store, settings: StoreSettings, tables: Sequence[Table] = TABLES
    ) -> None:
        self._spark = spark
        self._store = store
        self._settings = settings
        self._tables = tables

    def run(self, today: date | None = None) -> list[MaintenanceResult | MaintenanceFailure]:
        """Maintain all existing tables, and return the results; one failure does not stop the others.

        Args:
            today: current day, UTC; None: by the clock.
        """
        day = today or datetime.now(timezone.utc).date()
        done = [self._try(table, day) for table in self._tables]
        return [one for one in done if one is not None]

    def _try(self, table: Table, today: date) -> MaintenanceResult | MaintenanceFailure | None:
        try:
            return self._maintain(table, today, _ATTEMPTS) if self._store.exists(table) else None
        # Any error: no row changes before the commit, and the next run does the rest.
        except Exception as error:
            reason = cause_of(error)
            log.warning("maintenance of %s failed: %s", table.path, reason)
            log.debug("maintenance of %s", table.path, exc_info=True)
            return MaintenanceFailure(table.path, reason)

    def _maintain(self, table: Table, today: date, attempts: int) -> MaintenanceResult:
        began_s = time.monotonic()
        # Raises if another program's table is here: Headroom must not delete from it.
        self._store.state(table)
        path = local_path(self._store.location(table))
        days = self._settings.keep_days(table.path)
        keep_from = today - timedelta(days=days - 1) if days and table.partition_by else None
        if path is not None and table in PROMPT_TABLES:
            return maintain_prompt(path, table, attempts, keep_from)
        delta = DeltaTable.forPath(self._spark, self._store.location(table))
        before = self._size(delta)
        try:
            if keep_from is not None:
                # The condition uses the partition column only, so whole files are deleted and none is rewritten.
                delta.delete(F.col("date") < F.lit(keep_from))
            # All days: one that passed without maintenance still has small files, and compacted days cost nothing.
            delta.optimize().executeCompaction()
        except CONFLICTS:
            if attempts == 1:
                raise
            return self._maintain(table, today, attempts - 1)
        delta.vacuum()
        after = self._size(delta)
        took_s = time.monotonic() - began_s
        return MaintenanceResult(
            table.path, before["numFiles"], after["numFiles"], after["sizeInBytes"], keep_from, took_s
        )

    @staticmethod
    def _size(delta: DeltaTable) -> Row:
        return delta.detail().select("numFiles", "sizeInBytes").collect()[0]


class MaintenanceSchedule(PeriodicTask):
    """Runs maintenance periodically next to the jobs, for the first time after a tenth of a period.

    Args:
        run: maintains all tables.
        every_s: time from the end of one run to the next, seconds.
    """

    def __init__(self, run: Callable[[], object], every_s: float) -> None:
        super().__init__("maintenance", self._run_safely, every_s, every_s * _FIRST_RUN_RATIO)
        self._maintain = run

    def _run_safely(self) -> None:
        try:
            self._maintain()
        except Exception:
            # Any error leaves the tables consistent, and the next run does the rest.
            log.exception("maintenance of the tables failed; it is tried again in %.0f s", self._every_s)
