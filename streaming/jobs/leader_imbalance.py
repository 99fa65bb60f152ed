"""The balance job: from ticks to the tables of leader imbalance and of the elections against it, beside the gold job.

What it counts is every partition, whose rows lie outside the alert lane: it waits for a tick's end in the lane, and
reads from the other partitions just what the end says.
"""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from planning.elections.planner import BatchLimits
from schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from streaming.delta.low_latency_table import LowLatencyTable
from streaming.delta.store import Store
from streaming.jobs.election_plans import ElectionPlanScheduler
from streaming.queries.caching import Hold, cached_frames
from streaming.queries.tick_query import TickQuery
from streaming.queries.whole_ticks import CompleteTicks
from streaming.sources.ticks_topic import TicksTopic
from streaming.transforms.decode import MESSAGE_KEYS, message_rows, with_headers
from streaming.transforms.gold import as_table
from streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from streaming.transforms.prepared import Prepared
from streaming.transforms.tick_status import Tick, in_ticks, rows_of

log = logging.getLogger(__name__)

# Kinds of message that are read of a tick.
KINDS = ("leaders", "logs", "meters")
# Of the largest messages, 100 MB, kept while they are worked on: a backlog is worked off in such parts, one tick at
# least.
_PART_RECORDS = 150
# So many of a tick, of some thousand partitions, and so many of all ticks are worked on by one task with plans that are
# not compiled: shuffles and the compiler would take longer than the rows.
_FEW_OF_TICK = 20
_FEW_RECORDS = 100


@dataclass(frozen=True)
class TickEnd:
    """What the end of a tick says of its messages outside the alert lane.

    Attributes:
        tick: cluster and time.
        leaders: how many messages tell leaders; 0: none, or it does not say.
        ranges: by partition, where they lie: first offset and end.
    """

    tick: Tick
    leaders: int
    ranges: Mapping[int, tuple[int, int]] = field(default_factory=dict)

    @property
    def records(self) -> int:
        """Return how many records lie there at most."""
        return sum(end - first for first, end in self.ranges.values())


class LeaderImbalanceJob(TickQuery):
    """One streaming query over the alert lane that writes ``gold/leader_imbalance`` and ``gold/election_plan``.

    Args:
        spark: session.
        topic: ticks.
        topic_for_many: the same by a session for many rows.
        store: tables.
        checkpoint: folder or URL of this query's checkpoint.
        trigger_s: least time between two commits.
        setting_ratio: threshold of brokers that have none of their own, 0 to 1.
        limits: of one batch of elections.
    """

    name = "balance"
    # First what to do, then the rows that ask for it: who reads these finds the other.
    tables = (ELECTION_PLAN, LEADER_IMBALANCE)
    max_offsets = 300
    besides = MappingProxyType({"leaders": "max(sent_messages['leaders'])", "ranges": "first(ranges, true)"})

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        topic_for_many: TicksTopic,
        store: Store,
        checkpoint: str,
        trigger_s: float,
        setting_ratio: float,
        limits: BatchLimits,
    ) -> None:
        super().__init__(spark, topic, store, checkpoint, trigger_s)
        self._topic_for_many = topic_for_many
        self._found = Prepared(_found)
        self._rows = Prepared(
            lambda records, lane: as_table(leader_imbalance(_seen(records, lane), setting_ratio), LEADER_IMBALANCE)
        )
        self._planner = ElectionPlanScheduler(spark, limits)
        self._balances = LowLatencyTable(spark, store, LEADER_IMBALANCE)

    def _write(self, whole: CompleteTicks) -> None:
        ends = [end for end in map(tick_end, whole.status) if end.ranges and end.leaders]
        for part in parts(ends, _PART_RECORDS):
            self._write_part(part, whole.messages)

    def _write_part(self, ends: Sequence[TickEnd], lane: DataFrame) -> None:
        since_ms = self._written_since([end.tick for end in ends])
        with cached_frames() as hold:
            records = self._records(ends, hold)
            # As many as there are brokers.
            rows = self._rows.on(records, lane).collect()
            due = self._planner.due(rows)
            if due:
                plans = self._planner.plans(due, _seen(records, lane), rows_of(lane, "moves"), rows, hold)
                if plans is not None:
                    self._append(plans, ELECTION_PLAN, since_ms)
            if since_ms is not None:
                written = self._store.ticks_since(LEADER_IMBALANCE, since_ms)
                rows = [row for row in rows if (row["cluster"], row["tick_ms"]) not in written]
            if rows:
                self._balances.append(rows)

    def _records(self, ends: Sequence[TickEnd], hold: Hold) -> DataFrame:
        """Return the records of the ticks whose leaders are all there, each once."""
        few = sum(end.records for end in ends) <= _FEW_RECORDS and max(end.records for end in ends) <= _FEW_OF_TICK
        topic = self._topic if few else self._topic_for_many
        there = with_headers(topic.ranges(offset_ranges(ends)))
        of_ends = F.expr("reason IS NULL") & F.col("kind").isin(*KINDS) & in_ticks([end.tick for end in ends], "head.")
        records = hold((there.coalesce(1) if few else there).where(of_ends))
        found = {(row["cluster"], row["tick_ms"]): row for row in self._found.on(records).collect()}
        whole = [end.tick for end in ends if end.tick in found and found[end.tick]["leaders"] == end.leaders]
        for cluster, tick_ms in {end.tick for end in ends} - set(whole):
            log.warning("leaders of tick %s of cluster %s are not all there; it gives no balance", tick_ms, cluster)
        if any(row["messages"] != row["distinct_messages"] for row in found.values()):
            keys = {key: F.col(f"head.{key}") for key in MESSAGE_KEYS}
            records = records.withColumns(keys).dropDuplicates(MESSAGE_KEYS).select(*records.columns)
        return records.where(in_ticks(whole, "head."))


def tick_end(row: Row) -> TickEnd:
    """Return what the end of a whole tick says, from its row of ``tick_status`` with ``LeaderImbalanceJob.besides``."""
    ranges = {r["partition"]: (r["first_offset"], r["end_offset"]) for r in row["ranges"] or ()}
    return TickEnd((row["cluster"], row["tick_ms"]), row["leaders"] or 0, ranges)


def parts(ends: Sequence[TickEnd], most_records: int) -> Iterator[list[TickEnd]]:
    """Yield the ticks in parts, each of at most so many records, or one tick.

    Args:
        ends: ticks in order of time.
        most_records: most records of a part.
    """
    part: list[TickEnd] = []
    for end in ends:
        if part and sum(e.records for e in part) + end.records > most_records:
            yield part
            part = []
        part.append(end)
    if part:
        yield part


def offset_ranges(ends: Sequence[TickEnd]) -> dict[int, tuple[int, int]]:
    """Return by partition the least range that holds those of all ticks."""
    found: dict[int, list[tuple[int, int]]] = defaultdict(list)
    for end in ends:
        for partition, both in end.ranges.items():
            found[partition].append(both)
    return {
        partition: (min(first for first, _ in ranges), max(end for _, end in ranges))
        for partition, ranges in found.items()
    }


def _seen(records: DataFrame, lane: DataFrame) -> ImbalanceInputs:
    leaders, logs, meters = (message_rows(records, kind) for kind in KINDS)
    return ImbalanceInputs(leaders, logs, meters, rows_of(lane, "brokers"))


def _found(records: DataFrame) -> DataFrame:
    """Return by tick how many messages are there, without second deliveries too, and how many tell leaders."""
    return records.groupBy("head.cluster", "head.tick_ms").agg(
        F.expr("count(*) AS messages"),
        F.expr("size(collect_set(head.seq)) AS distinct_messages"),
        F.expr("size(collect_set(CASE WHEN kind = 'leaders' THEN head.seq END)) AS leaders"),
    )
