"""The record job: the topic to bronze untouched, bronze to silver decoded; the rejected to quarantine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import reduce

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from schemas.tables import BRONZE_TICKS, MESSAGES, QUARANTINE, Table
from schemas.tick_messages import KINDS
from streaming.delta.store import Store
from streaming.jobs.heads import MessageHeaders, headers_of
from streaming.queries.batch_gate import BatchGate
from streaming.queries.caching import Hold, cached_frames
from streaming.queries.written import Written
from streaming.session import COMPILED, INTERPRETED, configure
from streaming.sources.ticks_topic import TicksTopic
from streaming.transforms.decode import MESSAGE_KEYS, NOT_A_MESSAGE, with_headers, with_message
from streaming.transforms.gold import as_table
from streaming.transforms.silver import SILVER

_COORDINATES = ["topic", "partition", "offset"]
# A topic that was made anew has the offsets of the old one.
_PLACE = [*_COORDINATES, "timestamp"]
_RECORD = [*_COORDINATES, "timestamp", "date", "value", "head"]
# Of the largest messages, as of 10,000 rows, a gigabyte as text and a fifth of that in files: a backlog is worked off
# in such parts, whatever its size. A part of the silver job, kept while it is worked on, is an eighth, or one file.
_BRONZE_OFFSETS = 2000
_SILVER_BYTES = "24m"
# The silver job follows the commits to bronze, which keep the pace.
_SILVER_TRIGGER_S = 1.0
# So many pay for compiling the plans of the silver tables.
_MANY_ROWS = 50_000
# One table's rows are made while another's are committed.
_SIDE_BY_SIDE = 2
_WITHOUT_TABLE = [kind for kind in KINDS if not any(kind in kinds for kinds in SILVER.values())]


class HistoryJob:
    """Two streaming queries: topic to bronze, bronze to silver.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoints: folder or URL under which both keep their checkpoints.
        trigger_s: least time between two commits.
        give_way: called before each table of silver; returns when that may be written.
    """

    name = "record"

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        store: Store,
        checkpoints: str,
        trigger_s: float,
        give_way: Callable[[], None] = lambda: None,
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._store = store
        self._bronze_checkpoint = f"{checkpoints}/bronze"
        self._silver_checkpoint = f"{checkpoints}/silver"
        self._trigger_s = trigger_s
        self._give_way = give_way
        self.gate = BatchGate()
        self._written = Written()

    def prepare(self) -> None:
        """Make the tables where they are not there yet, and learn what is written."""
        self._written.learn(self._store, (BRONZE_TICKS, *SILVER, QUARANTINE, MESSAGES))

    def start(self) -> list[StreamingQuery]:
        """Start; the running queries are returned."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        self.prepare()
        return [self._start_bronze(), self._start_silver()]

    def _start_bronze(self) -> StreamingQuery:
        writer = bronze(self._topic.stream(_BRONZE_OFFSETS)).writeStream.format("delta").queryName("bronze")
        writer = writer.option("checkpointLocation", self._bronze_checkpoint).partitionBy(*BRONZE_TICKS.partition_by)
        return writer.trigger(processingTime=_ms(self._trigger_s)).start(self._store.location(BRONZE_TICKS))

    def _start_silver(self) -> StreamingQuery:
        # Days that are no longer kept are dropped from bronze, long after they were read.
        reader = self._spark.readStream.format("delta").option("ignoreDeletes", "true")
        records = reader.option("maxBytesPerTrigger", _SILVER_BYTES).load(self._store.location(BRONZE_TICKS))
        writer = records.writeStream.queryName("silver").option("checkpointLocation", self._silver_checkpoint)
        paced = writer.trigger(processingTime=_ms(min(self._trigger_s, _SILVER_TRIGGER_S)))
        return paced.foreachBatch(self.gate.through(self.write_silver)).start()

    def write_silver(self, batch: DataFrame, batch_id: int) -> None:
        """Write the silver rows of a micro-batch of bronze rows; messages that are written already are passed over."""
        # The plans of the batch belong to the session of its query. Files of large messages are read by compiled plans
        # alone without a copy of each message.
        configure(batch.sparkSession, COMPILED)
        with cached_frames() as hold:
            heads = headers_of(hold(with_headers(batch, self._topic.trust.clusters)))
            if heads.rows or heads.any_rejected:
                if not heads.has_rows(_MANY_ROWS):
                    configure(batch.sparkSession, INTERPRETED)
                bad = [header_rejected(heads.records)] if heads.any_rejected else []
                self._write(self._not_written(heads, hold), bad)
        self._written.add(heads.last_tick.items())

    def _write(self, fresh: MessageHeaders, rejected: list[DataFrame]) -> None:
        there = {table: [kind for kind in kinds if kind in fresh.rows] for table, kinds in SILVER.items()}
        in_job = inheritable_thread_target(fresh.records.sparkSession)
        write = in_job(lambda table: self._write_table(fresh, table, there[table]))
        with ThreadPoolExecutor(_SIDE_BY_SIDE, "silver") as pool:
            for bad in pool.map(write, [table for table, kinds in there.items() if kinds]):
                rejected += bad
        rejected += [value_rejected(fresh.valid, kind) for kind in _WITHOUT_TABLE if kind in fresh.rows]
        self._write_ledger(fresh.valid, rejected)

    def _write_table(self, fresh: MessageHeaders, table: Table, kinds: Sequence[str]) -> list[DataFrame]:
        """Write the rows of a table, and return where to look for messages that were rejected."""
        self._give_way()
        decoded = Observation()
        rows = silver_rows(fresh.valid, table, kinds).observe(decoded, F.count(F.lit(1)).alias("rows"))
        self._store.append(self._not_cut_short(rows, table, fresh.first_tick), table)
        # A message is parsed once, on its way to its table, and looked at again only if rows are missing there.
        if decoded.get["rows"] == fresh.rows_of(kinds):
            return []
        return [value_rejected(fresh.valid, kind) for kind in kinds]

    def _not_cut_short(self, rows: DataFrame, table: Table, first_tick: Mapping[str, int]) -> DataFrame:
        """Return the rows without those that a batch has written which was then cut short: the first is that again."""
        if not self._written.first_batch:
            return rows
        last_tick = self._store.last_ticks(table)
        if all(tick_ms > last_tick.get(cluster, 0) for cluster, tick_ms in first_tick.items()):
            return rows
        return not_in(rows, self._store.read_since(table, min(first_tick.values())), table.keys)

    def _write_ledger(self, fresh: DataFrame, rejected: Sequence[DataFrame]) -> None:
        """Write what was rejected, then what was not: the ledger comes last, for it says that a message is written."""
        good = fresh
        with cached_frames() as hold:
            bad = hold(reduce(DataFrame.unionByName, rejected)) if rejected else None
            if bad is not None and bad.limit(1).count():
                rows = quarantine(bad)
                if self._written.first_batch:
                    rows = not_in(rows, self._store.read(QUARANTINE), (*QUARANTINE.keys, "timestamp"))
                self._store.append(rows, QUARANTINE)
                good = fresh.join(bad.select(*_COORDINATES), _COORDINATES, "left_anti")
            self._store.append(ledger(good), MESSAGES)

    def _not_written(self, heads: MessageHeaders, hold: Hold) -> MessageHeaders:
        """Return each valid record once, and none that an earlier batch wrote."""
        if not self._written.may_have(heads.first_tick.items()) and not heads.doubled:
            return heads
        # Keys alone are grouped and compared: a message may have a megabyte.
        keys = heads.valid.selectExpr(
            *[f"head.{key} AS {key}" for key in MESSAGE_KEYS], f"struct({', '.join(_PLACE)}) AS place"
        )
        written = self._store.read_since(MESSAGES, min(heads.first_tick.values())).select(*MESSAGE_KEYS)
        once = keys.groupBy(*MESSAGE_KEYS).agg(F.expr("min(place) AS place")).join(written, MESSAGE_KEYS, "left_anti")
        kept = hold(once.select("place.*"))
        return headers_of(heads.records.join(F.broadcast(kept), _PLACE, "left_semi"))


def _ms(seconds: float) -> str:
    return f"{round(seconds * 1000)} milliseconds"


def not_in(rows: DataFrame, there: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows whose keys, of which some may be null, ``there`` does not have."""
    same = " AND ".join(f"new.{key} <=> old.{key}" for key in keys)
    return rows.alias("new").join(there.select(*keys).alias("old"), F.expr(same), "left_anti")


def bronze(records: DataFrame) -> DataFrame:
    """Return the rows of ``bronze/ticks`` from Kafka records."""
    dated = records.withColumn("date", F.to_date("timestamp"))
    return dated.select(*[F.col(c.name).cast(c.type).alias(c.name) for c in BRONZE_TICKS.columns])


def header_rejected(records: DataFrame) -> DataFrame:
    """Return the records that are rejected for their head, as ``quarantine`` takes them."""
    return records.where("reason IS NOT NULL").select(*_RECORD, "reason")


def value_rejected(records: DataFrame, kind: str) -> DataFrame:
    """Return the records of a kind that are rejected for their value, as ``quarantine`` takes them."""
    rejected = with_message(records, kind).where("reason IS NOT NULL")
    # Of a value that is broken in itself Spark reads what is asked for: the condition may find it so, the reason not.
    return rejected.select(*_RECORD, F.coalesce("reason", F.lit(NOT_A_MESSAGE)).alias("reason"))


def quarantine(rejected: DataFrame) -> DataFrame:
    """Return the rows of ``silver/quarantine`` from rejected records."""
    rows = rejected.withColumns(
        {"cluster": F.col("head.cluster"), "tick_ms": F.col("head.tick_ms"), "payload": F.col("value").cast("string")}
    )
    return rows.select(*[F.col(c.name).cast(c.type).alias(c.name) for c in QUARANTINE.columns])


def ledger(records: DataFrame) -> DataFrame:
    """Return the rows of ``silver/messages`` from valid records."""
    # Only this of tick_end stands in the value; other values are not looked at.
    age = "CASE WHEN head.kind = 'tick_end' THEN get_json_object(CAST(value AS STRING), '$.metadata_age_ms') END"
    # What is no such number is null there, as it is where the value is parsed.
    rows = records.selectExpr("head.*", "head.row_count AS rows", f"try_cast({age} AS BIGINT) AS metadata_age_ms")
    return as_table(rows, MESSAGES)


def silver_rows(records: DataFrame, table: Table, kinds: Sequence[str]) -> DataFrame:
    """Return the rows of a silver table from the valid messages of some kinds."""
    parts = []
    for kind in kinds:
        # Not a filter on the reason: the optimizer would parse the message once for it and once more for the rows.
        rows = with_message(records, kind).selectExpr(
            "head.cluster AS cluster", "head.tick_ms AS tick_ms", "inline(CASE WHEN reason IS NULL THEN rows END)"
        )
        parts.append(SILVER[table][kind](rows))
    return reduce(DataFrame.unionByName, parts)
