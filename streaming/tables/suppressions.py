"""The table of marks, written by commands and read by the watch, both without Spark."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from deltalake import DeltaTable
from deltalake.exceptions import CommitFailedError, DeltaError, TableNotFoundError

from alerts.delivery.suppression import DAY_MS, SuppressionRecord, Suppressions
from schemas.config import MaintenanceWindow
from schemas.tables import ALERT_MARKS
from streaming.delta import append as plain_table
from streaming.delta import query as plain_sql
from streaming.delta.locations import require_absent, require_writable
from streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

ALL_SQL = "SELECT * FROM data"

_ATTEMPTS = 5
# Each mark is a file of its own; this many are put together.
_MOST_FILES = 100
_EVERY_S = 3.0
# What was read holds for so long when it can no longer be read: a storage that is away for a moment lets nothing go.
_HOLDS_MS = 60_000
# Silences that ended before are of no use to an event that is still to be told.
_SINCE_MS = 7 * DAY_MS


def record_of(row: Mapping[str, Any]) -> SuppressionRecord:
    """Return a row as what it stands for; columns of a newer version are left out."""
    return SuppressionRecord(**{name: row[name] for name in ALERT_MARKS.names()})


def append_record(location: str, mark: SuppressionRecord) -> None:
    """Append a row, to a new table if there is none; what goes wrong is raised as the library raises it.

    Args:
        location: folder or URL of the table.
        mark: the row; it is durable when this returns.

    Raises:
        HeadroomError: it cannot be written, by what can be seen before it is tried, or the library panicked.
    """
    require_writable(location)
    with plain_table.without_panic(location):
        table = _appended(location, mark, _ATTEMPTS)
    try:
        with plain_table.without_panic(location):
            _keep_small(table)
    except Exception as error:
        # The mark is kept, and the next one finds as many files.
        log.warning("%s could not be compacted: %s", location, cause_of(error))


def _appended(location: str, mark: SuppressionRecord, attempts: int) -> DeltaTable:
    table = _opened(location)
    try:
        plain_table.append(table, [mark], ALERT_MARKS)
    except CommitFailedError:
        # Nothing was committed: two commands made the table at once.
        if attempts == 1:
            raise
        return _appended(location, mark, attempts - 1)
    return table


def _opened(location: str) -> DeltaTable:
    try:
        return DeltaTable(location)
    except TableNotFoundError as error:
        require_absent(location, error)
    try:
        plain_table.create(location, ALERT_MARKS)
    except DeltaError:
        # Another command may have been faster.
        if not DeltaTable.is_deltatable(location):
            raise
    return DeltaTable(location)


def _keep_small(table: DeltaTable) -> None:
    """Put the files together once there are many, and remove those that nobody reads any more."""
    table.update_incremental()
    if len(table.file_uris()) > _MOST_FILES:
        table.optimize.compact()
        table.vacuum(dry_run=False)


class SuppressionFollower:
    """Hands over what holds of marks whenever that changes, on a thread of its own.

    While the table cannot be read, everything is told: a silence that is not known must hide nothing.

    Args:
        location: folder or URL of the table.
        windows: maintenance windows, which hold whether or not the table can be read.
        take: is given what holds.
        clock_ms: gives the time now, epoch milliseconds.
    """

    def __init__(
        self,
        location: str,
        windows: Sequence[MaintenanceWindow],
        take: Callable[[Suppressions], None],
        clock_ms: Callable[[], int],
    ) -> None:
        self._location = location
        self._windows = windows
        self._take = take
        self._clock_ms = clock_ms
        self._table: DeltaTable | None = None
        # Version that was handed over; None: what comes next is handed over in any case.
        self._version: int | None = None
        self._read_ms: int | None = None
        self._lost = False
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._run, name="marks", daemon=True)

    def start(self) -> None:
        """Hand over what holds now, and start."""
        self.look()
        self._thread.start()

    def stop(self) -> None:
        """Look no more."""
        self._stop.set()

    def look(self) -> None:
        """Hand over what holds if it has changed since the last look."""
        try:
            with plain_table.without_panic(self._location):
                changed = self._changed()
        except Exception as error:
            self._failed(error)
            return
        self._read_ms, self._lost = self._clock_ms(), False
        if changed is not None:
            self._take(Suppressions.of(changed, self._windows).since(self._read_ms - _SINCE_MS))

    def _run(self) -> None:
        while not self._stop.wait(_EVERY_S):
            self.look()

    def _changed(self) -> list[SuppressionRecord] | None:
        """Return all marks; None: they are as they were."""
        version = self._newest()
        if version == self._version:
            return None
        rows = [] if self._table is None else plain_sql.rows({"data": self._table}, ALL_SQL)
        self._version = version
        return [record_of(row) for row in rows]

    def _newest(self) -> int:
        """Return the version of the table, brought up to date; -1: it is not there, for nobody made a mark."""
        if self._table is not None:
            self._table.update_incremental()
            return self._table.version()
        try:
            self._table = DeltaTable(self._location)
        except TableNotFoundError as error:
            require_absent(self._location, error)
            return -1
        return self._table.version()

    def _failed(self, error: Exception) -> None:
        self._table = self._version = None
        held = self._read_ms is not None and self._clock_ms() - self._read_ms < _HOLDS_MS
        if held or self._lost:
            return
        self._lost = True
        log.warning(
            "%s cannot be read, so silences and acknowledgements do not hold: %s", self._location, cause_of(error)
        )
        self._take(Suppressions(windows=self._windows))
