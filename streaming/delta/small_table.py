"""Small tables that commands write, without a JVM: each append is durable, and the table is kept to few files."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from functools import partial

from deltalake import DeltaTable
from deltalake.exceptions import DeltaError, TableNotFoundError

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.damage import error_of_damage
from headroom.streaming.delta.files.sync import sync_commits
from headroom.streaming.delta.locations import require_absent, require_writable
from headroom.streaming.delta.upgrade import upgrade_opened
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_ATTEMPTS = 5
# Each append is a file of its own. From this number on they are compacted.
_MOST_FILES = 100


def append_durably(location: str, records: Sequence[object], table: Table) -> None:
    """Append records, and create the table if necessary; errors of the library are raised unchanged.

    Args:
        location: folder or URL of the table.
        records: objects with the table's columns as attributes. They are on the disk, synced, when this returns.
        table: definition of the table; all its columns are text, numbers or truth values.

    Raises:
        HeadroomError: the location is not writable, the table is not Headroom's, or the library panicked.
        OSError: the disk did not take the records.
    """
    try:
        require_writable(location)
    except HeadroomError as error:
        raise error_of_damage(location) or error from None
    with delta_append.without_panic(location):
        # Two commands may create the table at the same time.
        opened = delta_append.again_on_conflict(
            partial(_append, location, records, table), _ATTEMPTS, delta_append.APPEND_FOR_S
        )
    try:
        with delta_append.without_panic(location):
            _compact_if_large(location, opened)
    except Exception as error:
        # The records are durable. The next append tries the compaction again.
        log.warning("%s could not be compacted: %s", location, cause_of(error))


def append_or_error(location: str, records: Sequence[object], table: Table, remedy: str) -> None:
    """Append records as ``append_durably`` does, with one kind of error for all problems of the storage.

    Raises:
        HeadroomError: the table cannot be written; with this remedy.
    """
    try:
        append_durably(location, records, table)
    except HeadroomError:
        raise
    # The library raises its own errors, OSError and bare Exceptions for problems of the storage.
    except Exception as error:
        log.debug("writing %s", location, exc_info=True)
        if damage := error_of_damage(location):
            raise damage from error
        raise HeadroomError(location, f"cannot be written ({cause_of(error)})", remedy) from error


def _append(location: str, records: Sequence[object], table: Table) -> DeltaTable:
    """Append records and return the table, upgraded if another version has made it."""
    opened = _open(location, table)
    before = opened.version()
    upgrade_opened(location, opened, table)
    delta_append.append(opened, records, table)
    sync_commits(location, before)
    return opened


def _open(location: str, table: Table) -> DeltaTable:
    """Return the table, created if necessary."""
    try:
        return DeltaTable(location)
    except TableNotFoundError as error:
        require_absent(location, error)
        # A new log would hide the rows of a table that has lost its own.
        if damage := error_of_damage(location):
            raise damage from error
    try:
        delta_append.create(location, table)
    except DeltaError:
        # Another command may have been faster.
        if not DeltaTable.is_deltatable(location):
            raise
    return DeltaTable(location)


def _compact_if_large(location: str, opened: DeltaTable) -> None:
    """Compact the files if there are many, and remove unreferenced ones."""
    opened.update_incremental()
    if len(opened.file_uris()) > _MOST_FILES:
        before = opened.version()
        opened.optimize.compact()
        # The rows are now in other files than those that were synced.
        sync_commits(location, before)
        opened.vacuum(dry_run=False)
