"""Table of alert events, with the query that restores the lifecycle at a start."""

from __future__ import annotations

from collections.abc import Sequence

from pyspark.sql import SparkSession
from pyspark.sql import functions as F

from headroom.alerts.lifecycle import FLAP_MS
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.store.damaged_tables import damage_of, read_undamaged
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of
from headroom.streaming.supervision.in_time import InTime, NoAnswer
from headroom.streaming.tables.rows import usable_records

# A newer version may have added columns.
_EVENT = f"struct({', '.join(ALERT_EVENTS.names())})"


class EventLog:
    """``alerts/events``.

    Args:
        spark: session.
        store: tables.
    """

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._store = store
        self._table = LowLatencyTable(spark, store, ALERT_EVENTS)
        self._in_time = InTime[None](store.location(ALERT_EVENTS))
        self._look = InTime[bool](store.location(ALERT_EVENTS))

    def last_events(self) -> list[AlertEvent]:
        """Return the events that the lifecycle needs at a start.

        These are the first and the last event of the latest alert of each subject, and the first firing events of the
        last FLAP_MS. Damaged files are skipped.

        Raises:
            HeadroomError: something else is at the table's location.
        """
        return read_undamaged(self._store, [ALERT_EVENTS], self._last_events, [])

    def _last_events(self) -> list[AlertEvent]:
        if not self._table.prepare():
            return []
        subject = ["cluster", "kind", "subject"]
        # In one tick an alert has at most two events: pending, then firing.
        latest = (
            self._store.read(ALERT_EVENTS)
            .groupBy(*subject, "alert_id")
            .agg(
                F.expr(f"min_by({_EVENT}, struct(tick_ms, state = 'firing')) AS first"),
                F.expr(f"max_by({_EVENT}, struct(tick_ms, state = 'firing')) AS last"),
            )
            .groupBy(*subject)
            .agg(F.expr("max_by(struct(first, last), last.tick_ms) AS latest"))
            .selectExpr("explode(array(latest.first, latest.last)) AS e")
        )
        recent = (
            self._store.read(ALERT_EVENTS)
            .where("state = 'firing'")
            .groupBy("alert_id")
            .agg(F.expr(f"min_by({_EVENT}, tick_ms) AS e"))
            .where(F.expr(f"e.tick_ms >= unix_millis(current_timestamp()) - {FLAP_MS}"))
            .select("e")
        )
        rows = (row["e"].asDict() for row in latest.unionByName(recent).collect())
        return usable_records(AlertEvent, rows, ALERT_EVENTS)

    def was_removed(self) -> bool:
        """Return whether the table was there, and is not any more; the next append creates it again, if it can.

        Raises:
            NoAnswer: the disk hangs.
        """
        return self._table.path is not None and self._look.call(lambda: self._table.was_removed)

    def append(self, events: Sequence[AlertEvent], writer: str, version: int) -> None:
        """Append events; a second append with the same writer and version is skipped.

        Args:
            events: events.
            writer: permanent name of the stream.
            version: number of the micro-batch.

        Raises:
            NoAnswer: the disk hangs. The append may still succeed later; a repetition with the same writer and version
                is safe.
        """
        if self._table.path is None:
            # Clients of object stores have deadlines of their own.
            self._table.append(events, (writer, version))
        else:
            self._in_time.call(lambda: self._table.append(events, (writer, version)))

    def trouble(self, error: BaseException) -> str:
        """Return the cause of a failed append in a few words: damage of the table, or the error."""
        if isinstance(error, NoAnswer):
            return cause_of(error)
        return damage_of(self._store, [ALERT_EVENTS]) or cause_of(error)
