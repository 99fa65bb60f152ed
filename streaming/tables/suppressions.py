"""Table of silences and acknowledgements: written by commands, followed by the watch process, without Spark."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence

from deltalake import DeltaTable
from deltalake.exceptions import TableNotFoundError

from headroom.alerts.delivery.suppression import DAY_MS, SuppressionRecord, Suppressions
from headroom.schemas.config import MaintenanceWindow
from headroom.schemas.tables import ALERT_MARKS
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.locations import STORE_REMEDY, require_absent
from headroom.streaming.delta.small_table import append_or_error
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.periodic_task import PeriodicTask
from headroom.streaming.tables.rows import row_records

log = logging.getLogger(__name__)

ALL_SQL = "SELECT * FROM data"

_EVERY_S = 3.0
# While the table cannot be read, the last read stays in force for this time: a short outage must not end a silence.
_VALID_MS = 60_000
# Silences that ended earlier do not affect undelivered events.
_SINCE_MS = 7 * DAY_MS


def append_record(location: str, record: SuppressionRecord) -> None:
    """Append a record, and create the table if necessary.

    Args:
        location: folder or URL of the table.
        record: the record. It is durable when this returns.

    Raises:
        HeadroomError: the table cannot be written.
    """
    append_or_error(location, [record], ALERT_MARKS, STORE_REMEDY)


class SuppressionFollower:
    """Follows the table on a thread of its own, and passes on the suppressions in force whenever they change.

    While the table cannot be read, all events are notified, because an unknown silence must not hide an alert.

    Args:
        location: folder or URL of the table.
        windows: maintenance windows. They stay in force while the table cannot be read.
        on_change: gets the suppressions in force.
        clock_ms: returns the time now, epoch milliseconds.
    """

    def __init__(
        self,
        location: str,
        windows: Sequence[MaintenanceWindow],
        on_change: Callable[[Suppressions], None],
        clock_ms: Callable[[], int],
    ) -> None:
        self._location = location
        self._windows = windows
        self._on_change = on_change
        self._clock_ms = clock_ms
        self._table: DeltaTable | None = None
        # Version that was passed on last; None: the next read is passed on in any case.
        self._version: int | None = None
        self._read_ms: int | None = None
        self._is_unreadable = False
        self._task = PeriodicTask("marks", self.poll, _EVERY_S)

    def start(self) -> None:
        """Read the table once, and start the thread."""
        self.poll()
        self._task.start()

    def stop(self) -> None:
        """Stop following."""
        self._task.stop()

    def poll(self) -> None:
        """Read the table, and pass the suppressions on if they have changed since the last read."""
        try:
            with delta_append.without_panic(self._location):
                changed = self._changed_records()
        except Exception as error:
            self._handle_error(error)
            return
        self._read_ms, self._is_unreadable = self._clock_ms(), False
        if changed is not None:
            self._on_change(Suppressions.of(changed, self._windows).since(self._read_ms - _SINCE_MS))

    def _changed_records(self) -> list[SuppressionRecord] | None:
        """Return all records; None if they have not changed."""
        version = self._current_version()
        if version == self._version:
            return None
        rows = [] if self._table is None else delta_query.rows({"data": self._table}, ALL_SQL)
        self._version = version
        return row_records(SuppressionRecord, rows, ALERT_MARKS)

    def _current_version(self) -> int:
        """Update the table and return its version; -1 if it does not exist yet."""
        if self._table is not None:
            self._table.update_incremental()
            return self._table.version()
        try:
            self._table = DeltaTable(self._location)
        except TableNotFoundError as error:
            require_absent(self._location, error)
            return -1
        return self._table.version()

    def _handle_error(self, error: Exception) -> None:
        """End all silences and acknowledgements if the last read is too old, and log that once."""
        self._table = self._version = None
        is_valid = self._read_ms is not None and self._clock_ms() - self._read_ms < _VALID_MS
        if is_valid or self._is_unreadable:
            return
        self._is_unreadable = True
        log.warning(
            "%s cannot be read, so silences and acknowledgements are not in force: %s", self._location, cause_of(error)
        )
        self._on_change(Suppressions(windows=self._windows))
