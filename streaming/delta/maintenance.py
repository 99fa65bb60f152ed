"""Maintenance of one table by the Delta library, and the results of any maintenance."""

from __future__ import annotations

import time
from dataclasses import dataclass
from datetime import date
from functools import partial

from deltalake import DeltaTable

from headroom.schemas.tables import DURABLE_TABLES, Table
from headroom.streaming.delta.append import again_on_conflict, without_panic
from headroom.streaming.delta.files.sync import sync_commits

# Same size as in Spark's compaction of the other tables (streaming.session).
_COMPACTED_BYTES = 128 * 1024 * 1024


@dataclass(frozen=True)
class MaintenanceResult:
    """Result of the maintenance of one table.

    Attributes:
        table: path of the table.
        files_before: number of files before.
        files_after: number of files after.
        bytes_after: size after, bytes.
        dropped_before: first day that is kept; None if all are.
        took_s: duration, seconds.
    """

    table: str
    files_before: int
    files_after: int
    bytes_after: int
    dropped_before: date | None
    took_s: float


@dataclass(frozen=True)
class MaintenanceFailure:
    """Failed or incomplete maintenance of a table, which has all of its rows.

    Attributes:
        table: path of the table.
        reason: cause in one line.
    """

    table: str
    reason: str


def maintain_prompt(path: str, table: Table, attempts: int, keep_from: date | None = None) -> MaintenanceResult:
    """Maintain a table on a local disk that another process or thread writes by the Delta library without Spark.

    Spark checks whether a commit exists, and then renames its file. A commit that the library makes in between would be
    lost. The library creates a hard link, which fails for the later of two commits.

    Args:
        path: folder of the table.
        table: definition of the table.
        attempts: most attempts if another maintenance is faster.
        keep_from: first day that is kept, for a table with one folder per day; None if all are.
    """
    with without_panic(path):
        version = DeltaTable(path).version()
        delta, before, began_s = again_on_conflict(partial(_compact, path, keep_from), attempts)
        if table in DURABLE_TABLES:
            # Its rows are now in other files than those that were synced.
            sync_commits(path, version)
        delta.vacuum(dry_run=False, full=True)
        delta.cleanup_metadata()
        files = DeltaTable(path).get_add_actions()
        size_bytes = sum(files.column("size_bytes").to_pylist())
        return MaintenanceResult(table.path, before, files.num_rows, size_bytes, keep_from, time.monotonic() - began_s)


def _compact(path: str, keep_from: date | None) -> tuple[DeltaTable, int, float]:
    """Return the table without expired days and with compacted files, its files before, and when this began."""
    began_s = time.monotonic()
    delta = DeltaTable(path)
    before = delta.get_add_actions().num_rows
    if keep_from is not None:
        # Whole files are deleted, as by Spark.
        delta.delete(f"date < '{keep_from.isoformat()}'")
    delta.optimize.compact(target_size=_COMPACTED_BYTES)
    return delta, before, began_s
