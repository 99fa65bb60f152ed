"""Alert path: evaluates the ticks of the alert partition, stores the events, then passes them to listeners.

On a local disk it then writes the rows that it has evaluated to the gold tables (``streaming.jobs.alert_path_gold``).
"""

from __future__ import annotations

import logging
import threading
import uuid
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headroom.alerts.engine import AlertEngine
from headroom.alerts.faults import Faults
from headroom.alerts.inputs.throttle_status import ThrottleStatus, throttle_status_of
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.keys import Tick
from headroom.streaming.jobs.alert_path_gold import AlertPathGold, Evaluated
from headroom.streaming.jobs.listener import AlertPathListener
from headroom.streaming.jobs.without_store import WithoutStore
from headroom.streaming.machine import this_machine
from headroom.streaming.queries.batch_gate import BatchGate
from headroom.streaming.queries.batch_offsets import alert_offsets, next_alert_offset
from headroom.streaming.queries.caching import cached_frames
from headroom.streaming.queries.warm_up import WarmUp
from headroom.streaming.queries.whole_ticks import CompleteTicks, CompleteTicksReader
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.store.store import writer_id
from headroom.streaming.transforms.gold import headroom_rows
from headroom.streaming.transforms.migrations import (
    MIGRATION_COLUMNS,
    TickProgress,
    evaluated_migrations,
    ticks_with_migrations,
    ticks_without_migrations,
)
from headroom.streaming.transforms.prepared import Prepared

# Newest records that are evaluated after a start: some minutes of ticks. Alerts are about the present. Older ticks are
# in the tables, and evaluating them would delay the current ones.
_BACKLOG_RECORDS = 1000
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class AlertPathSource:
    """Source of the alert path's query.

    Attributes:
        topic: ticks.
        checkpoint: folder or URL of the query's checkpoint.
        mend: moves the checkpoint aside if it is damaged.
        newest_offset: returns the offset after the newest record of the alert partition; None if unknown.
    """

    topic: TicksTopic
    checkpoint: str
    mend: Callable[[], object] = lambda: None
    newest_offset: Callable[[], int | None] = lambda: None


@dataclass(frozen=True)
class PathState:
    """What an alert path knows that is not in the tables.

    Attributes:
        unstored: events that are not stored yet, each with the writer and version of their commit.
        last_evaluated: offset and record time of the last tick_end that was evaluated.
        trouble: why events cannot be stored; None if unknown.
    """

    unstored: Sequence[tuple[Sequence[AlertEvent], str, int]]
    last_evaluated: tuple[int, int]
    trouble: str | None


class AlertPath:
    """One streaming query over the alert partition, with a batch as soon as a tick arrives.

    Args:
        spark: session.
        source: ticks, and how far they were read.
        log: table of events.
        engine: rules and lifecycle of alerts.
        listener: gets ticks, events and figures.
        gold: writes the evaluated rows to the gold tables; None if only the gold job does.

    Attributes:
        gate: admits its batches.
        warm_up: runs the last batch again until the JIT has compiled it.
    """

    name = "alert_path"

    def __init__(
        self,
        spark: SparkSession,
        source: AlertPathSource,
        log: EventLog,
        engine: AlertEngine,
        listener: AlertPathListener,
        gold: AlertPathGold | None = None,
    ) -> None:
        self._spark = spark
        self._topic = source.topic
        self._checkpoint = source.checkpoint
        self._mend_checkpoint = source.mend
        self._newest_offset = source.newest_offset
        gold_columns = () if gold is None else gold.extra_columns
        self._reader = CompleteTicksReader(source.topic, (*gold_columns, *MIGRATION_COLUMNS))
        self._headroom = Prepared(headroom_rows)
        self._log = log
        self._engine = engine
        self._listener = listener
        self._gold = gold
        self.gate = BatchGate(listener.on_batch)
        self.warm_up = WarmUp(lambda: self.gate.idle_s)
        self._watchdog_version = 0
        self._writer = ""
        self._writing = threading.Lock()
        self._first_batch = True
        self._restored = False
        # Offset and record time of the last tick_end that was evaluated. Repeated ticks are not evaluated again.
        self._last_evaluated = (-1, -1)
        # Events that are not stored yet, each with the writer and version of their commit.
        self._unstored: deque[tuple[Sequence[AlertEvent], str, int]] = deque()
        self._trouble: str | None = None
        self._faults = Faults(logging.getLogger(__name__))
        self._run, self._versions = uuid.uuid4(), count()
        self._without_store: WithoutStore | None = None

    def start(self) -> StreamingQuery:
        """Start the query and return it; the first start restores the alerts from their events."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        # Before the table of events is created, because its loss shows in the checkpoint.
        self._mend_checkpoint()
        self._restore()
        # A new checkpoint has a new id, and counts its batches from 0.
        self._writer = ""
        # The alert partition has grown while the query was stopped.
        self._first_batch = True
        # Only a new checkpoint begins there: what was evaluated without one is not repeated, and nothing is left out.
        last_offset = self._last_evaluated[0]
        stream = self._topic.alert_stream("latest" if last_offset < 0 else self._topic.starting_at(last_offset + 1))
        writer = stream.writeStream.queryName(self.name).option("checkpointLocation", self._checkpoint)
        return writer.foreachBatch(self.gate.wrap(self._process_batch)).start()

    def start_without_store(self) -> None:
        """Evaluate ticks without a checkpoint, on a thread of its own, while the query's files cannot be written."""
        if self._without_store is None:
            self._restore()
            self._without_store = WithoutStore(self._evaluate_since, self._first_offset)
            self._without_store.start()

    def stop_without_store(self) -> None:
        """Stop the evaluation without a checkpoint, if it runs."""
        if self._without_store is not None:
            self._without_store.stop()
            self._without_store = None

    def state(self) -> PathState:
        """Return what is not in the tables, for the alert path that replaces this one."""
        with self._writing:
            return PathState(tuple(self._unstored), self._last_evaluated, self._trouble)

    def take_over(self, state: PathState) -> None:
        """Continue where another alert path with the same engine has ended; call it before the start."""
        self._unstored.extend(state.unstored)
        self._last_evaluated = state.last_evaluated
        self._trouble = state.trouble
        self._restored = True

    def _restore(self) -> None:
        """Restore the alerts from their events, once."""
        if not self._restored:
            self._engine.restore(self._log.last_events())
            self._restored = True

    def _first_offset(self) -> int | None:
        """Return where an evaluation without a checkpoint begins: where the last one ended, or at the newest record."""
        if self._last_evaluated[0] >= 0:
            return self._last_evaluated[0] + 1
        offset = next_alert_offset(self._spark, self._checkpoint)
        return self._newest_offset() if offset is None else offset

    @property
    def trouble(self) -> str | None:
        """Why events cannot be stored yet; None if all are stored."""
        return self._trouble

    def store_pending(self) -> None:
        """Store the events that are not stored yet, as far as the store can be written.

        If their table was removed, that is noticed, and the alerts that are active are stored again.
        """
        with self._writing:
            self._store_all()

    def _evaluate_since(self, offset: int) -> int:
        """Evaluate the records of the alert partition from an offset on, and return the offset of the next call."""
        records = self._topic.alert_messages_since(offset)
        writer = f"without-store-{self._run}"
        # Gold tables cannot be written either.
        evaluate = self.gate.wrap(
            lambda batch, _: self._evaluate(self._without_backlog(batch), writer, next(self._versions), None)
        )
        evaluate(records, 0)
        return max(offset, self._last_evaluated[0] + 1)

    def _process_batch(self, batch: DataFrame, batch_id: int) -> None:
        self._writer = self._writer or writer_id(self._spark, self._checkpoint)
        self._evaluate(self._without_backlog(batch, batch_id), self._writer, batch_id, self._gold)

    def _evaluate(self, batch: DataFrame, writer: str, version: int, gold: AlertPathGold | None) -> None:
        """Evaluate the new complete ticks of a batch, store their events, and call the listener.

        Args:
            batch: Kafka records.
            writer: identifies the query or run, permanently.
            version: number of the batch, unique for the writer.
            gold: gets the evaluated rows; None if they are not written.
        """
        with ExitStack() as held:
            complete = held.enter_context(self._reader.read(batch))
            new = [row for row in complete.status if not _is_evaluated(_position(row), self._last_evaluated)]
            if not new:
                return
            cache = held.enter_context(cached_frames())
            large = None if gold is None else gold.large(complete.messages, new, cache)
            headroom = self._headroom.on(complete.messages) if large is None else large.headroom
            rows_of_tick: dict[Tick, list[Mapping[str, Any]]] = {(row["cluster"], row["tick_ms"]): [] for row in new}
            for row in headroom.collect():
                if (row["cluster"], row["tick_ms"]) in rows_of_tick:
                    rows_of_tick[row["cluster"], row["tick_ms"]].append(row.asDict(recursive=True))
            self.warm_up.schedule(lambda: self._compute_again(*complete.last_offsets))
            self._last_evaluated = max(map(_position, new))
            self._decide(complete, rows_of_tick, writer, version)
            # Afterwards: thousands of partitions take seconds, and alerts on throttles do not wait for them.
            migrations = evaluated_migrations(complete.messages, ticks_with_migrations(new))
            known: TickProgress = {**dict.fromkeys(ticks_without_migrations(new), ()), **migrations}
            self._decide_migrations(rows_of_tick, known, f"{writer}-migrations", version)
            if gold is not None:
                gold.write(Evaluated(complete, rows_of_tick, large, self.gate.batch_s, held.pop_all(), migrations))

    def _decide(
        self,
        complete: CompleteTicks,
        rows_of_tick: Mapping[Tick, Sequence[Mapping[str, Any]]],
        writer: str,
        version: int,
    ) -> None:
        """Evaluate ticks without their migrations, store their events, and call the listener.

        Args:
            complete: ticks of the batch.
            rows_of_tick: rows of ``gold/throttle_headroom`` by tick, in order of time.
            writer: identifies the query or run, permanently.
            version: number of the batch, unique for the writer.
        """
        statuses: dict[Tick, list[ThrottleStatus]] = {}
        events: list[AlertEvent] = []
        for tick, rows in rows_of_tick.items():
            try:
                of_tick = [throttle_status_of(row) for row in rows]
                events.extend(self._engine.evaluate(*tick, of_tick))
            except Exception as error:
                # An error in one cluster must not affect the others. The cluster itself gets the alert for missing
                # ticks, because none of its ticks is evaluated.
                what = f"tick {tick[1]} of cluster {tick[0]} has no verdict, because its evaluation failed"
                self._faults.report(tick[0], what, error)
                continue
            statuses[tick] = of_tick
        if events:
            self._commit(events, writer, version)
        for tick in rows_of_tick:
            self._listener.on_collected(tick[0], complete.collected[tick])
            if tick in statuses:
                self._listener.on_tick(*tick, statuses[tick])

    def _decide_migrations(self, ticks: Iterable[Tick], migrations: TickProgress, writer: str, version: int) -> None:
        """Evaluate the migrations of ticks, store their events, and call the listener.

        Args:
            ticks: evaluated ticks, in order of time.
            migrations: progress of migrations, of the ticks that have any, or are known to have none.
            writer: identifies the query or run, permanently, apart from the other alerts of the batch.
            version: number of the batch, unique for the writer.
        """
        events: list[AlertEvent] = []
        for tick in ticks:
            try:
                events.extend(self._engine.evaluate_migrations(*tick, migrations.get(tick)))
            except Exception as error:
                what = f"migrations in tick {tick[1]} of cluster {tick[0]} have no verdict: their evaluation failed"
                self._faults.report(tick[0], what, error)
        if events:
            self._commit(events, writer, version)
        for tick, progress in migrations.items():
            self._listener.on_migrations(*tick, progress)

    def _without_backlog(self, batch: DataFrame, batch_id: int | None = None) -> DataFrame:
        """Return a batch; only the newest records of the first batch after a start, which may be a long backlog.

        Args:
            batch: micro-batch of Kafka records.
            batch_id: its number in the checkpoint; None if it belongs to no query.
        """
        if not self._first_batch:
            return batch
        self._first_batch = False
        span = alert_offsets(self._spark, self._checkpoint, batch_id) or _read_span(batch)
        if span is None or span[1] - span[0] <= _BACKLOG_RECORDS:
            return batch
        begin, end = span
        first = end - _BACKLOG_RECORDS
        log.info("%d older records of a backlog are not evaluated: alerts are about the present", first - begin)
        return self._topic.alert_range(first, end)

    def _compute_again(self, first: int, end: int) -> None:
        """Compute the throttle statuses of a tick again, and discard them."""
        with self._reader.read(self._topic.alert_range(first, end)) as complete:
            self._headroom.on(complete.messages).collect()

    def check_missing_ticks(self, writer: str) -> None:
        """Raise ``no_data`` for clusters without recent ticks. The pipeline calls this about once a second.

        Args:
            writer: identifies this run, permanently.
        """
        events = self._engine.check_missing_ticks(self.gate.batch_s, this_machine())
        if events:
            self._watchdog_version += 1
            self._commit(events, writer, self._watchdog_version)

    def _commit(self, events: Sequence[AlertEvent], writer: str, version: int) -> None:
        """Store events, then pass them to the listener; if the store cannot be written, pass them on unstored."""
        with self._writing:
            self._unstored.append((events, writer, version))
            stored = self._store_all()
        if not stored:
            events = [replace(event, summary=f"{event.summary} (not kept yet)") for event in events]
        self._listener.on_events(events)

    def _store_all(self) -> bool:
        """Store the pending events in their order, and return whether all of them are stored now."""
        try:
            if self._log.was_removed():
                # Those that are active must not be missing in the new table.
                pending = {event for events, _, _ in self._unstored for event in events}
                active = [event for event in self._engine.active() if event not in pending]
                self._log.append(active, f"removed-{self._run}", next(self._versions))
            while self._unstored:
                self._log.append(*self._unstored[0])
                self._unstored.popleft()
        except (KeyboardInterrupt, SystemExit):
            raise
        # The Delta library panics, with no Exception, where a disk is full.
        except BaseException as error:
            trouble = self._log.trouble(error)
            if trouble != self._trouble:
                log.error("events cannot be stored yet, and are sent nevertheless: %s", trouble)
            self._trouble = trouble
            return False
        if self._trouble:
            log.warning("events that could not be stored are stored now")
        self._trouble = None
        return True


def _read_span(batch: DataFrame) -> tuple[int, int] | None:
    """Return the first offset of a batch and its end (exclusive), by reading it; None if it has no records."""
    # In one partition: a shuffle would write to a disk that may be full.
    span = batch.coalesce(1).agg(F.min("offset"), F.max("offset")).first()
    return None if span is None or span[0] is None else (span[0], span[1] + 1)


def _position(row: Row) -> tuple[int, int]:
    return row["end_offset"], row["record_ms"]


def _is_evaluated(position: tuple[int, int], last: tuple[int, int]) -> bool:
    """Return whether a tick was evaluated before, by offset and record time of its end and of the last evaluated one.

    Both must be no later: if the topic was created again, its offsets are lower but its times are later.
    """
    return position[0] <= last[0] and position[1] <= last[1]
