"""Balance job: from ticks to the tables of leader imbalance, election plans and broker loads, next to the gold job.

The job counts all partitions, whose rows lie outside the alert partition. It waits for a tick's end in the alert
partition, and reads exactly the offset ranges that the end contains from the other partitions.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headroom.alerts.inputs.leader_balance import leader_balance_of
from headroom.planning.elections.planner import BatchLimits
from headroom.schemas.config import BalanceSettings
from headroom.schemas.keys import Tick
from headroom.schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from headroom.streaming.jobs.election_plans import ElectionPlanScheduler
from headroom.streaming.jobs.loads.broker_load import BrokerLoadWriter
from headroom.streaming.queries.caching import Cache, cached_frames
from headroom.streaming.queries.idle_pace import IdlePace
from headroom.streaming.queries.tick_query import TickQuery
from headroom.streaming.queries.whole_ticks import CompleteTicks
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.decode import MESSAGE_KEYS, alert_messages, message_rows, with_headers
from headroom.streaming.transforms.gold import as_table
from headroom.streaming.transforms.leaders.imbalance import EXTRA_COLUMNS, ImbalanceInputs, broker_rows
from headroom.streaming.transforms.prepared import Prepared
from headroom.streaming.transforms.tick_status import ExtraTickColumn, in_ticks, rows_of

log = logging.getLogger(__name__)

# Kinds of message that are read of a tick.
KINDS = ("leaders", "logs", "meters")
# 100 MB of the largest messages, cached during the work. A backlog is processed in chunks of this size, at least one
# tick each.
_CHUNK_RECORDS = 150
# Up to this many records per tick (a cluster of some thousand partitions), and in all ticks, one task does all of the
# work with interpreted plans: shuffles and the compiler would take longer than the rows.
_FEW_OF_TICK = 20
_FEW_RECORDS = 100


@dataclass(frozen=True)
class TickEnd:
    """The messages of a tick outside the alert partition, from its ``tick_end``.

    Attributes:
        tick: cluster and time.
        leaders: number of messages of the kind ``leaders``; 0 also if ``tick_end`` does not contain it.
        ranges: partition to first offset and end (exclusive).
    """

    tick: Tick
    leaders: int
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Return the number of records in the ranges, other collectors' included."""
        return sum(end - first for first, end in self.ranges.values())


@dataclass(frozen=True)
class BalanceConfig:
    """What the balance job needs besides the arguments of every ``TickQuery``.

    Attributes:
        throughput_topic: the topic of the ticks, read by a session for many rows.
        threshold_ratio: threshold of imbalance of brokers without a threshold of their own, 0 to 1.
        limits: limits of one batch of elections.
        loads: section ``[balance]`` of each cluster, for its broker loads.
    """

    throughput_topic: TicksTopic
    threshold_ratio: float
    limits: BatchLimits
    loads: Mapping[str, BalanceSettings] = field(default_factory=dict)


class LeaderImbalanceJob(TickQuery):
    """One streaming query over the alert partition: leader imbalance, election plans, and broker loads once a minute.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoint: folder or URL of this query's checkpoint.
        trigger_s: least time between two commits, seconds.
        balance: what else this job needs.
        pace: holds it back while nothing moves and no broker is out of balance.
    """

    name = "balance"
    # Plans first: a reader that finds imbalance rows then also finds their plan.
    tables = (ELECTION_PLAN, LEADER_IMBALANCE)
    max_offsets = 300
    # Rows of moves are read when elections are planned.
    row_kinds = ("brokers",)
    extra_columns = (
        # Messages of the kind leaders that were sent; null if tick_end does not contain it.
        ExtraTickColumn("leaders", "max(sent_messages['leaders'])"),
        # Where the tick's records are in the other partitions.
        ExtraTickColumn("ranges", "first(ranges, true)"),
    )

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        store: Store,
        checkpoint: str,
        trigger_s: float,
        balance: BalanceConfig,
        pace: IdlePace | None = None,
    ) -> None:
        super().__init__(spark, topic, store, checkpoint, trigger_s, pace)
        self._throughput_topic = balance.throughput_topic
        self._counts = Prepared(_message_counts)
        self._rows = Prepared(
            lambda records, alert: as_table(
                broker_rows(_inputs(records, alert), balance.threshold_ratio), LEADER_IMBALANCE, EXTRA_COLUMNS
            )
        )
        self._scheduler = ElectionPlanScheduler(spark, balance.limits)
        self._balances = LowLatencyTable(spark, store, LEADER_IMBALANCE)
        self._loads = BrokerLoadWriter(spark, store, balance.loads)
        self._is_balanced = True

    def prepare(self) -> None:
        """Create missing tables, and read what the existing ones have."""
        super().prepare()
        self._loads.prepare()

    def _is_settled(self) -> bool:
        """Return whether no broker was out of balance: one that is may be so no longer after the next election."""
        return self._is_balanced

    def _write(self, complete: CompleteTicks) -> None:
        ends = [end for end in map(tick_end, complete.status) if end.ranges and end.leaders]
        for chunk in chunks_of(ends, _CHUNK_RECORDS):
            self._write_chunk(chunk, complete)

    def _write_chunk(self, ends: Sequence[TickEnd], complete: CompleteTicks) -> None:
        """Write the rows of some ticks.

        Args:
            ends: their ends.
            complete: these ticks and others.
        """
        alert = complete.messages
        since_ms = self._written_since([end.tick for end in ends])
        with cached_frames() as cache:
            records = self._records(ends, cache)
            # One row per tick and broker: few enough for the driver.
            of_brokers = self._rows.on(records, alert).collect()
            rows = [row for row in of_brokers if row["has_balance"]]
            self._is_balanced = not any(leader_balance_of(row.asDict()).is_out_of_balance for row in rows)
            due = self._scheduler.due(rows)
            if due:
                plans = self._scheduler.plans(due, _inputs(records, alert), self._moves(complete, due), rows, cache)
                if plans is not None:
                    self._append(plans, ELECTION_PLAN, since_ms)
            self._loads.append(of_read_ticks(of_brokers))
            if since_ms is not None:
                written = self._store.ticks_since(LEADER_IMBALANCE, since_ms)
                rows = [row for row in rows if (row["cluster"], row["tick_ms"]) not in written]
            if rows:
                self._balances.append(rows)

    def _moves(self, complete: CompleteTicks, ticks: Sequence[Tick]) -> DataFrame:
        """Return the rows of the kind ``moves`` of some ticks, and perhaps of others between them."""
        statuses = [row for row in complete.status if (row["cluster"], row["tick_ms"]) in ticks]
        first, end = min(row["first_offset"] for row in statuses), max(row["end_offset"] for row in statuses)
        return rows_of(alert_messages(self._topic.alert_range(first, end + 1).coalesce(1), ("moves",)), "moves")

    def _records(self, ends: Sequence[TickEnd], cache: Cache) -> DataFrame:
        """Return the records of the ticks with all of their ``leaders`` messages, without duplicates.

        Messages of logs that have no preferred leader are omitted: the collector sends them last (``encode_rows``).
        """
        few = sum(end.records for end in ends) <= _FEW_RECORDS and max(end.records for end in ends) <= _FEW_OF_TICK
        topic = self._topic if few else self._throughput_topic
        read = with_headers(topic.ranges(offset_ranges(ends)))
        of_ends = (
            F.expr("reason IS NULL")
            & F.col("kind").isin(*KINDS)
            & F.expr("kind != 'logs' OR contains(CAST(value AS STRING), '\"preferred\"')")
            & in_ticks([end.tick for end in ends], "header.")
        )
        records = cache((read.coalesce(1) if few else read).where(of_ends))
        counts = {(row["cluster"], row["tick_ms"]): row for row in self._counts.on(records).collect()}
        complete = [end.tick for end in ends if end.tick in counts and counts[end.tick]["leaders"] == end.leaders]
        for cluster, tick_ms in {end.tick for end in ends} - set(complete):
            log.warning("leaders of tick %s of cluster %s are incomplete; it has no balance", tick_ms, cluster)
        if any(row["messages"] != row["distinct_messages"] for row in counts.values()):
            keys = {key: F.col(f"header.{key}") for key in MESSAGE_KEYS}
            records = records.withColumns(keys).dropDuplicates(MESSAGE_KEYS).select(*records.columns)
        return records.where(in_ticks(complete, "header."))


def of_read_ticks(rows: Sequence[Row]) -> list[Row]:
    """Return the rows of ticks whose partitions were read, completely or in part.

    The alert partition has the brokers of other ticks too, which another chunk writes, or which are incomplete.

    Args:
        rows: rows of ``broker_rows``.
    """
    read = {(row["cluster"], row["tick_ms"]) for row in rows if row["has_balance"] or row["led_partitions"] is None}
    return [row for row in rows if (row["cluster"], row["tick_ms"]) in read]


def tick_end(row: Row) -> TickEnd:
    """Return the end of a complete tick, from its row of ``tick_status`` with ``LeaderImbalanceJob.extra_columns``."""
    ranges = {r["partition"]: (r["first_offset"], r["end_offset"]) for r in row["ranges"] or ()}
    return TickEnd((row["cluster"], row["tick_ms"]), row["leaders"] or 0, ranges)


def chunks_of(ends: Sequence[TickEnd], most_records: int) -> Iterator[list[TickEnd]]:
    """Yield the ticks in chunks of a limited number of records; a larger tick is a chunk of its own.

    Args:
        ends: ticks in order of time.
        most_records: most records of a chunk.
    """
    chunk: list[TickEnd] = []
    for end in ends:
        if chunk and sum(e.records for e in chunk) + end.records > most_records:
            yield chunk
            chunk = []
        chunk.append(end)
    if chunk:
        yield chunk


def offset_ranges(ends: Sequence[TickEnd]) -> dict[int, tuple[int, int]]:
    """Return for each partition the smallest range that contains the ranges of all ticks, end exclusive."""
    by_partition: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for end in ends:
        for partition, offsets in end.ranges.items():
            by_partition[partition].append(offsets)
    return {
        partition: (min(first for first, _ in ranges), max(end for _, end in ranges))
        for partition, ranges in by_partition.items()
    }


def _inputs(records: DataFrame, alert: DataFrame) -> ImbalanceInputs:
    leaders, logs, meters = (message_rows(records, kind) for kind in KINDS)
    return ImbalanceInputs(leaders, logs, meters, rows_of(alert, "brokers"))


def _message_counts(records: DataFrame) -> DataFrame:
    """Return the number of messages per tick: all, without duplicates, and of the kind ``leaders``."""
    return records.groupBy("header.cluster", "header.tick_ms").agg(
        F.expr("count(*) AS messages"),
        F.expr("size(collect_set(header.seq)) AS distinct_messages"),
        F.expr("size(collect_set(CASE WHEN kind = 'leaders' THEN header.seq END)) AS leaders"),
    )
