"""The alert path: from the alert lane to events, decided first, made durable, then told."""

from __future__ import annotations

import logging
import threading
import uuid
from collections import defaultdict, deque
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from itertools import count

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from alerts.engine import AlertEngine
from alerts.faults import Faults
from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus, throttle_status_of
from alerts.metrics import Collected
from schemas.alerts import AlertEvent
from streaming.delta.store import writer_id
from streaming.jobs.without_store import WithoutStore
from streaming.queries.batch_gate import BatchGate
from streaming.queries.batch_offsets import alert_offsets
from streaming.queries.warm_up import WarmUp
from streaming.queries.whole_ticks import CompleteTicksReader
from streaming.sources.ticks_topic import TicksTopic
from streaming.tables.events import EventLog
from streaming.transforms.gold import headroom_rows
from streaming.transforms.prepared import Prepared

# Records of the lane that are judged after a start: some minutes of ticks. Alerts are about now; what came before,
# while nobody judged, is in the tables, and would keep the driver from looking at what is the matter now.
_BACKLOG_RECORDS = 1000
log = logging.getLogger(__name__)


@dataclass(frozen=True)
class Listeners:
    """Who is told.

    Attributes:
        on_tick: cluster, tick and its sides, after the events of its batch are durable.
        on_events: events, after they are durable.
        on_batch: for how many seconds a batch was worked on, once it is done.
        on_collected: cluster and how its tick was collected, before that is told.
        on_balances: cluster, tick and how leaders are shared out, once the table has it.
    """

    on_tick: Callable[[str, int, Sequence[ThrottleStatus]], None] = lambda cluster, tick_ms, sides: None
    on_events: Callable[[Sequence[AlertEvent]], None] = lambda events: None
    on_batch: Callable[[float], None] = lambda seconds: None
    on_collected: Callable[[str, Collected], None] = lambda cluster, collected: None
    on_balances: Callable[[str, int, Sequence[LeaderBalance]], None] = lambda cluster, tick_ms, balances: None


def in_turn(listeners: Sequence[Listeners]) -> Listeners:
    """Return listeners that tell all of these, the first one first."""

    def on_tick(cluster: str, tick_ms: int, sides: Sequence[ThrottleStatus]) -> None:
        for listener in listeners:
            listener.on_tick(cluster, tick_ms, sides)

    def on_events(events: Sequence[AlertEvent]) -> None:
        for listener in listeners:
            listener.on_events(events)

    def on_batch(seconds: float) -> None:
        for listener in listeners:
            listener.on_batch(seconds)

    def on_collected(cluster: str, collected: Collected) -> None:
        for listener in listeners:
            listener.on_collected(cluster, collected)

    def on_balances(cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        for listener in listeners:
            listener.on_balances(cluster, tick_ms, balances)

    return Listeners(on_tick, on_events, on_batch, on_collected, on_balances)


class AlertPath:
    """One streaming query over the alert lane, a batch as soon as a tick is there.

    Args:
        spark: session.
        topic: ticks.
        log: table of events.
        desk: rules and lifecycle.
        listeners: who is told.
        checkpoint: folder or URL of this query's checkpoint.
        max_offsets: most records in one micro-batch; None: no limit.

    Attributes:
        gate: what its batches go through.
    """

    name = "alert_path"

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        log: EventLog,
        desk: AlertEngine,
        listeners: Listeners,
        checkpoint: str,
        max_offsets: int | None = None,
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._lane = CompleteTicksReader(topic)
        self._headroom = Prepared(headroom_rows)
        self._log = log
        self._desk = desk
        self._listeners = listeners
        self._checkpoint = checkpoint
        self._max_offsets = max_offsets
        self.gate = BatchGate(listeners.on_batch)
        self.rehearsal = WarmUp(lambda: self.gate.idle_s)
        self._watchdog_version = 0
        self._writer = ""
        self._writing = threading.Lock()
        self._first_batch = True
        self._restored = False
        # Place and time in the lane of the last end of a tick that was judged: what comes again is not judged again.
        self._judged = (-1, -1)
        # Events that were told and are not kept yet, each with the writer and version that they are kept under.
        self._owed: deque[tuple[Sequence[AlertEvent], str, int]] = deque()
        self._trouble: str | None = None
        self._faults = Faults(logging.getLogger(__name__))
        self._run, self._versions = uuid.uuid4(), count()
        self._without_store: WithoutStore | None = None

    def start(self) -> StreamingQuery:
        """Restore the alerts from their events, at the first start, and start; the running query is returned."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        if not self._restored:
            self._desk.restore(self._log.last_events())
            self._restored = True
        # While it was stopped the lane has grown, however long.
        self._first_batch = True
        stream = self._topic.alert_stream("latest", self._max_offsets)
        writer = stream.writeStream.queryName(self.name).option("checkpointLocation", self._checkpoint)
        return writer.foreachBatch(self.gate.through(self._decide)).start()

    def go_on_without_store(self) -> None:
        """Judge without a checkpoint, on a thread of its own: what the query needs cannot be written."""
        if self._without_store is None:
            self._without_store = WithoutStore(self._judge_since)
            self._without_store.start(self._judged[0] + 1)

    def end_without_store(self) -> None:
        """End that, if it was begun."""
        if self._without_store is not None:
            self._without_store.stop()
            self._without_store = None

    @property
    def trouble(self) -> str | None:
        """Why events that were told cannot be kept yet; None: all are kept."""
        return self._trouble

    def pay(self) -> None:
        """Keep what was told and is not kept yet, as far as that can be done now."""
        with self._writing:
            self._keep_owed()

    def _judge_since(self, offset: int) -> int:
        """Judge what has come to the lane from an offset on, and return from where to look next."""
        records = self._topic.alert_messages_since(offset)
        writer = f"without-store-{self._run}"
        self.gate.through(lambda batch, _: self._judge(self._newest(batch), writer, next(self._versions)))(records, 0)
        return max(offset, self._judged[0] + 1)

    def _decide(self, batch: DataFrame, batch_id: int) -> None:
        self._writer = self._writer or writer_id(self._spark, self._checkpoint)
        self._judge(self._newest(batch, batch_id), self._writer, batch_id)

    def _judge(self, batch: DataFrame, writer: str, version: int) -> None:
        with self._lane.whole(batch) as whole:
            new = [row for row in whole.status if not _is_before(_place(row), self._judged)]
            if not new:
                return
            rows = self._headroom.on(whole.messages).collect()
        self.rehearsal.play(lambda: self._rehearse(*whole.last_offsets))
        found = _by_tick(rows)
        ticks = [(row["cluster"], row["tick_ms"]) for row in new]
        self._judged = max(map(_place, new))
        sides: dict[tuple[str, int], list[ThrottleStatus]] = {}
        events: list[AlertEvent] = []
        for tick in ticks:
            try:
                of_tick = [throttle_status_of(row.asDict(recursive=True)) for row in found[tick]]
                events.extend(self._desk.evaluate(*tick, of_tick))
            except Exception as error:
                # What is wrong with one cluster is no reason to leave the others alone. That this one is not judged is
                # told as that its ticks stay away.
                what = f"tick {tick[1]} of cluster {tick[0]} gives no verdict, for its evaluation failed"
                self._faults.report(tick[0], what, error)
                continue
            sides[tick] = of_tick
        if events:
            self._commit(events, writer, version)
        for tick in ticks:
            self._listeners.on_collected(tick[0], whole.collected[tick])
            if tick in sides:
                self._listeners.on_tick(*tick, sides[tick])

    def _newest(self, batch: DataFrame, batch_id: int | None = None) -> DataFrame:
        """Return a batch, but of the first one after a start, which may be a long backlog, its end alone.

        Args:
            batch: micro-batch of Kafka records.
            batch_id: its number in the checkpoint; None: it is of no query.
        """
        if not self._first_batch:
            return batch
        self._first_batch = False
        span = alert_offsets(self._spark, self._checkpoint, batch_id) or _read_span(batch)
        if span is None or span[1] - span[0] <= _BACKLOG_RECORDS:
            return batch
        begin, end = span
        first = end - _BACKLOG_RECORDS
        log.info("%d older records of a backlog are not judged: alerts are about now", first - begin)
        return self._topic.alert_range(first, end)

    def _rehearse(self, first: int, end: int) -> None:
        """Judge a tick that is judged already, and tell nobody."""
        with self._lane.whole(self._topic.alert_range(first, end)) as whole:
            self._headroom.on(whole.messages).collect()

    def check_silence(self, writer: str) -> None:
        """Raise ``no_data`` for clusters whose ticks stay away; called now and then by a thread of its own.

        Args:
            writer: names this run for ever.
        """
        events = self._desk.check_missing_ticks(self.gate.batch_s)
        if events:
            self._watchdog_version += 1
            self._commit(events, writer, self._watchdog_version)

    def _commit(self, events: Sequence[AlertEvent], writer: str, version: int) -> None:
        """Make events durable, then tell of them; if that cannot be done they are told first, and kept later."""
        with self._writing:
            self._owed.append((events, writer, version))
            kept = self._keep_owed()
        self._listeners.on_events(events if kept else [_unkept(event) for event in events])

    def _keep_owed(self) -> bool:
        """Make durable what was told, in its order, and return whether all of it is now."""
        try:
            while self._owed:
                self._log.append(*self._owed[0])
                self._owed.popleft()
        except (KeyboardInterrupt, SystemExit):
            raise
        # The Delta library panics, with no Exception, where a disk is full.
        except BaseException as error:
            trouble = self._log.trouble(error)
            if trouble != self._trouble:
                log.error("events cannot be kept yet, and are told all the same: %s", trouble)
            self._trouble = trouble
            return False
        if self._trouble:
            log.warning("events that could not be kept are kept now")
        self._trouble = None
        return True


def _read_span(batch: DataFrame) -> tuple[int, int] | None:
    """Return from which offset, and up to but without which, a batch has records, by reading it; None: it has none."""
    span = batch.agg(F.min("offset"), F.max("offset")).first()
    return None if span is None or span[0] is None else (span[0], span[1] + 1)


def _place(row: Row) -> tuple[int, int]:
    return row["end_offset"], row["record_ms"]


def _is_before(place: tuple[int, int], judged: tuple[int, int]) -> bool:
    """Return whether a place and time in the lane is no later than another; of a topic made anew only the time is."""
    return place[0] <= judged[0] and place[1] <= judged[1]


def _unkept(event: AlertEvent) -> AlertEvent:
    return replace(event, summary=f"{event.summary} (not kept yet)")


def _by_tick(rows: Iterable[Row]) -> dict[tuple[str, int], list[Row]]:
    found: dict[tuple[str, int], list[Row]] = defaultdict(list)
    for row in rows:
        found[row["cluster"], row["tick_ms"]].append(row)
    return found
