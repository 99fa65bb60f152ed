"""The checkpoints of all queries: what each one loses if it begins again, and how it may contradict its tables."""

from __future__ import annotations

import logging
import os
from collections.abc import Callable, Iterator, Mapping
from functools import partial

from deltalake import DeltaTable

from headroom.schemas.config import StoreSettings
from headroom.schemas.tables import ALERT_EVENTS, BRONZE_TICKS, Table
from headroom.streaming.delta.append import without_panic
from headroom.streaming.delta.locations import is_table, local_path
from headroom.streaming.delta.query import table_url
from headroom.streaming.durability.checkpoint import Checkpoint, Contradiction, Progress
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_BEHIND = "is older than the newest batch in the query's table"
_AHEAD = "is of a batch that the query's table has lost"
_EVENTS_GONE = "is of a table alerts/events that is gone: alerts that still fire are announced again"
_BRONZE_GONE = "is of a table bronze/ticks that is gone"
_OTHER_SOURCE = "is of a table bronze/ticks that was replaced"
_SHORTER_SOURCE = "is later than the newest commit of bronze/ticks"
_FROM_TOPIC = "nothing that the topic still has: it is read again, and ticks that the tables have are skipped"
# Query to what is lost if its checkpoint begins again.
_LOST = {
    "alert_path": "no event; ticks until the next one are not evaluated",
    "gold": _FROM_TOPIC,
    "balance": _FROM_TOPIC,
    "bronze": "nothing that the topic still has: it is read on from the newest record in bronze/ticks",
    "silver": "nothing that bronze/ticks still has: it is read again, and messages that silver has are skipped",
}
# Job to the checkpoints of its queries. One process at a time runs a job.
CHECKPOINTS_OF_JOBS: Mapping[str, tuple[str, ...]] = {
    "alerts": ("alert_path",),
    "gold": ("gold", "balance"),
    "record": ("bronze", "silver"),
}


def query_checkpoint(location: str, table_location: Callable[[Table], str]) -> Checkpoint:
    """Return the checkpoint of a query.

    Args:
        location: folder or URL, whose last part is the name of the query.
        table_location: returns the folder or URL of a table.
    """
    name = location.rstrip("/").rpartition("/")[2]
    if name == "alert_path":
        return Checkpoint(location, _LOST[name], partial(_behind_events, table_location(ALERT_EVENTS)))
    if name in ("bronze", "silver"):
        bronze = table_location(BRONZE_TICKS)
        return Checkpoint(location, _LOST[name], partial(_not_of_sink if name == "bronze" else _not_of_source, bronze))
    return Checkpoint(location, _LOST.get(name, _FROM_TOPIC))


def checkpoints_of(store: StoreSettings) -> Iterator[tuple[str, str, Checkpoint]]:
    """Yield the name, the job and the checkpoint of each query."""
    for job, names in CHECKPOINTS_OF_JOBS.items():
        for name in names:
            location = f"{store.checkpoints().rstrip('/')}/{name}"
            yield name, job, query_checkpoint(location, lambda table: table_url(store.path, table.path))


def _unknown_if_unreadable(ask: Contradiction, location: str, progress: Progress) -> str | None:
    """Return an answer about a table; None if there is no readable table, whose own check reports that."""
    path = local_path(location)
    if path is None or not is_table(path):
        return None
    try:
        with without_panic(path):
            return ask(progress)
    except Exception as error:
        log.debug("%s is not compared with its checkpoint: %s", location, cause_of(error))
        return None


def _is_gone(location: str, progress: Progress) -> bool:
    """Return whether a table is not there although batches were written to it."""
    path = local_path(location)
    return path is not None and progress.done is not None and not os.path.lexists(path)


def _behind_events(location: str, progress: Progress) -> str | None:
    if _is_gone(location, progress):
        return _EVENTS_GONE

    def ask(progress: Progress) -> str | None:
        # As in LowLatencyTable, with the first line of the metadata as the writer.
        version = DeltaTable(location).transaction_version(f"{progress.metadata.splitlines()[0]}/{ALERT_EVENTS.path}")
        return _BEHIND if version is not None and version > progress.planned else None

    return _unknown_if_unreadable(ask, location, progress)


def _not_of_sink(location: str, progress: Progress) -> str | None:
    if _is_gone(location, progress):
        return _BRONZE_GONE

    def ask(progress: Progress) -> str | None:
        # Delta's streaming sink commits the number of each batch under the id of the stream.
        version = DeltaTable(location).transaction_version(progress.stream_id)
        if version is not None and version > progress.planned:
            return _BEHIND
        return _AHEAD if progress.done is not None and (version is None or version < progress.done) else None

    return _unknown_if_unreadable(ask, location, progress)


def _not_of_source(location: str, progress: Progress) -> str | None:
    def ask(progress: Progress) -> str | None:
        table = DeltaTable(location)
        if progress.offset.get("reservoirId", table.metadata().id) != table.metadata().id:
            return _OTHER_SOURCE
        # The offset may be the version of the next commit.
        version = progress.offset.get("reservoirVersion")
        return _SHORTER_SOURCE if isinstance(version, int) and version > table.version() + 1 else None

    return _unknown_if_unreadable(ask, location, progress)
