"""Keeping the tables fast: old days dropped, small files made large, files that nobody reads any more removed.

A day is a folder of its own in every table, so that dropping one rewrites nothing. Nothing here fights with the jobs:
their appends look at nothing that is there, and compaction changes no row, so that either commits after the other; and
what writers depend on, columns and properties, is not touched. Only a second maintenance can come in the way.
"""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from datetime import date, datetime, timedelta, timezone

import deltalake
from delta.exceptions import (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    MetadataChangedException,
)
from delta.tables import DeltaTable
from deltalake.exceptions import CommitFailedError
from pyspark.sql import Row, SparkSession
from pyspark.sql import functions as F

from schemas.config import StoreSettings
from schemas.tables import PROMPT_TABLES, TABLES, Table
from streaming.delta.append import without_panic
from streaming.delta.locations import local_path
from streaming.delta.store import Store
from streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

# Another maintenance was faster, or a job that started just then gave the table a new column.
_CONFLICTS = (
    ConcurrentAppendException,
    ConcurrentDeleteDeleteException,
    ConcurrentDeleteReadException,
    ConcurrentWriteException,
    MetadataChangedException,
)
_ATTEMPTS = 5
# As Spark compacts the others.
_COMPACTED_BYTES = 128 * 1024 * 1024
# A process that does not live for a whole period shall look after its tables too.
_FIRST_RUN_RATIO = 0.1


@dataclass(frozen=True)
class MaintenanceResult:
    """What was done to one table.

    Attributes:
        table: its path.
        files_before: files of the table before.
        files_after: files of the table after.
        bytes_after: size of the table after, bytes.
        dropped_before: the first day that is kept; None: all days are.
        took_s: how long it took, seconds.
    """

    table: str
    files_before: int
    files_after: int
    bytes_after: int
    dropped_before: date | None
    took_s: float


@dataclass(frozen=True)
class MaintenanceFailure:
    """A table that was not looked after, or not to the end; its rows are all there.

    Attributes:
        table: its path.
        reason: why.
    """

    table: str
    reason: str


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

    def run(self, today: date | None = None) -> list[MaintenanceResult | MaintenanceFailure]:
        """Return what was done to each table that is there; one that fails does not keep the others waiting.

        Args:
            today: the day it is, UTC; None: by the clock.
        """
        day = today or datetime.now(timezone.utc).date()
        done = [self._try(table, day) for table in self._tables]
        return [one for one in done if one is not None]

    def _try(self, table: Table, today: date) -> MaintenanceResult | MaintenanceFailure | None:
        try:
            return self._maintain(table, today, _ATTEMPTS) if self._store.exists(table) else None
        # Whatever fails in here: no row is touched before the commit, and the next run does what this one did not.
        except Exception as error:
            reason = cause_of(error)
            log.warning("maintenance of %s failed: %s", table.path, reason)
            log.debug("maintenance of %s", table.path, exc_info=True)
            return MaintenanceFailure(table.path, reason)

    def _maintain(self, table: Table, today: date, attempts: int) -> MaintenanceResult:
        began_s = time.monotonic()
        # What another program put at the place is not ours to delete from.
        self._store.found(table)
        path = local_path(self._store.location(table))
        keep_from = self._keep_from(table, today)
        if path is not None and table in PROMPT_TABLES:
            return maintain_prompt(path, table, attempts, keep_from)
        delta = DeltaTable.forPath(self._spark, self._store.location(table))
        before = self._size(delta)
        try:
            if keep_from is not None:
                # The condition names the folder's column alone: whole files go, none is rewritten.
                delta.delete(F.col("date") < F.lit(keep_from))
            # Of every day: one that passed while nobody looked after it is in pieces, and whole ones cost nothing.
            delta.optimize().executeCompaction()
        except _CONFLICTS:
            if attempts == 1:
                raise
            return self._maintain(table, today, attempts - 1)
        delta.vacuum()
        after = self._size(delta)
        took_s = time.monotonic() - began_s
        return MaintenanceResult(
            table.path, before["numFiles"], after["numFiles"], after["sizeInBytes"], keep_from, took_s
        )

    def _keep_from(self, table: Table, today: date) -> date | None:
        days = self._settings.keep_days(table.path)
        return today - timedelta(days=days - 1) if days and table.partition_by else None

    @staticmethod
    def _size(delta: DeltaTable) -> Row:
        return delta.detail().select("numFiles", "sizeInBytes").collect()[0]


def maintain_prompt(path: str, table: Table, attempts: int, keep_from: date | None = None) -> MaintenanceResult:
    """Look after a table on a disk that another process, or thread, writes by the Delta library without Spark.

    On a disk Spark looks whether a commit is there and then renames: one that the library makes in between would be
    lost with its rows. The library itself links, which fails for the later of two.

    Args:
        path: folder of the table.
        table: the table.
        attempts: how often it is tried where another maintenance is faster.
        keep_from: the first day that is kept, of a table with a folder for each; None: all are.
    """
    with without_panic(path):
        return _maintain_prompt(path, table, attempts, keep_from)


def _maintain_prompt(path: str, table: Table, attempts: int, keep_from: date | None) -> MaintenanceResult:
    began_s = time.monotonic()
    delta = deltalake.DeltaTable(path)
    before = delta.get_add_actions().num_rows
    try:
        if keep_from is not None:
            # As by Spark: whole files go.
            delta.delete(f"date < '{keep_from.isoformat()}'")
        delta.optimize.compact(target_size=_COMPACTED_BYTES)
    except CommitFailedError:
        if attempts == 1:
            raise
        return _maintain_prompt(path, table, attempts - 1, keep_from)
    delta.vacuum(dry_run=False, full=True)
    delta.cleanup_metadata()
    files = deltalake.DeltaTable(path).get_add_actions()
    size_bytes = sum(files.column("size_bytes").to_pylist())
    return MaintenanceResult(table.path, before, files.num_rows, size_bytes, keep_from, time.monotonic() - began_s)


class MaintenanceSchedule:
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
        """Start; the first run is a tenth of a period from now."""
        self._thread.start()

    def stop(self) -> None:
        """Begin no further run."""
        self._stop.set()

    def _work(self) -> None:
        wait_s = self._every_s * _FIRST_RUN_RATIO
        while not self._stop.wait(wait_s):
            wait_s = self._every_s
            try:
                self._run()
            except Exception:
                # The tables are whole whatever fails here, and the next run does what this one did not.
                log.exception("maintenance of the tables failed; it is tried again in %.0f s", self._every_s)
