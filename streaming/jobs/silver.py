"""Record job: copies the topic to bronze, decodes bronze to silver, and writes rejected records to quarantine."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from datetime import datetime
from functools import reduce

from pyspark import inheritable_thread_target
from pyspark.sql import DataFrame, Observation, SparkSession
from pyspark.sql import functions as F
from pyspark.sql.streaming.query import StreamingQuery

from headroom.schemas.tables import BRONZE_TICKS, MESSAGES, QUARANTINE, Table
from headroom.schemas.tick_messages import KINDS
from headroom.streaming.durability.query_checkpoints import query_checkpoint
from headroom.streaming.jobs.heads import MessageHeaders, headers_of
from headroom.streaming.queries.batch_gate import BatchGate
from headroom.streaming.queries.bronze_query import BronzeQuery, milliseconds
from headroom.streaming.queries.caching import Cache, cached_frames
from headroom.streaming.queries.resume import forget_lost_table
from headroom.streaming.queries.written import Written
from headroom.streaming.session import COMPILED, INTERPRETED, configure
from headroom.streaming.sources.ticks_topic import TicksTopic
from headroom.streaming.store.store import Store
from headroom.streaming.transforms.decode import MESSAGE_KEYS, NOT_A_MESSAGE, with_headers, with_message
from headroom.streaming.transforms.gold import as_table
from headroom.streaming.transforms.silver import ROWS_EACH, SILVER

_COORDINATES = ["topic", "partition", "offset"]
# With the timestamp, because a topic that was created again reuses the offsets of the old one.
_POSITION = [*_COORDINATES, "timestamp"]
_RECORD = [*_COORDINATES, "timestamp", "date", "value", "header"]
# Memory: a batch of the silver query, which is cached, is an eighth of one of bronze, or one file.
_SILVER_BYTES = "24m"
# The silver query follows the commits to bronze, whose own trigger sets the pace. Each look at bronze's log costs some
# milliseconds. A batch that takes longer than the interval is followed by the next one at once.
_SILVER_TRIGGER_S, _SILVER_TRIGGER_RATIO = 1.0, 0.1
# From this number on, compiling the plans of the silver tables is faster than interpreting them.
_MANY_ROWS = 50_000
# The rows of one table are computed while those of another are committed.
_PARALLEL_TABLES = 2
_WITHOUT_TABLE = [kind for kind in KINDS if not any(kind in kinds for kinds in SILVER.values())]


class HistoryJob:
    """Two streaming queries: topic to bronze, bronze to silver.

    Args:
        spark: session.
        topic: ticks.
        store: tables.
        checkpoints: folder or URL of the checkpoints of both.
        trigger_s: least time between two commits, seconds.
        wait_for_gold: called before each silver table; returns when the table may be written.
        idle_s: longest time between two commits while few messages arrive, seconds; ``trigger_s`` if it is less.

    Attributes:
        gate: admits the batches of the silver query.
    """

    name = "record"

    def __init__(
        self,
        spark: SparkSession,
        topic: TicksTopic,
        store: Store,
        checkpoints: str,
        trigger_s: float,
        wait_for_gold: Callable[[], None] = lambda: None,
        idle_s: float = 0.0,
    ) -> None:
        self._spark = spark
        self._topic = topic
        self._store = store
        self._bronze = BronzeQuery(spark, topic, store, f"{checkpoints}/bronze", trigger_s, idle_s)
        self._silver_checkpoint = f"{checkpoints}/silver"
        self._silver_state = query_checkpoint(self._silver_checkpoint, store.location)
        self._trigger_s = trigger_s
        self._wait_for_gold = wait_for_gold
        self.gate = BatchGate()
        self._written = Written()
        self._silver: StreamingQuery | None = None
        # What an earlier process has written: newest tick of each cluster by table, and newest rejected record.
        self._earlier_ticks: dict[Table, Mapping[str, int]] = {}
        self._earlier_rejected: tuple[datetime | None] | None = None

    def prepare(self) -> None:
        """Create missing tables, and read which ticks the existing ones have."""
        self._written.load(self._store, (BRONZE_TICKS, *SILVER, QUARANTINE, MESSAGES))
        self._earlier_ticks, self._earlier_rejected = {}, None

    def start(self) -> list[StreamingQuery]:
        """Start both queries and return them."""
        self._spark.sparkContext.setLocalProperty("spark.scheduler.pool", self.name)
        # Silver's first: it is compared with bronze as the last process left it.
        for checkpoint in (self._silver_state, self._bronze.state):
            checkpoint.mend()
        self.prepare()
        return [self._bronze.start(), self._start_silver()]

    def _start_silver(self) -> StreamingQuery:
        if self._silver is not None:
            forget_lost_table(self._spark, self._silver, self._silver_checkpoint, BRONZE_TICKS.path)
        # Maintenance deletes old days from bronze, long after they were read.
        reader = self._spark.readStream.format("delta").option("ignoreDeletes", "true")
        records = reader.option("maxBytesPerTrigger", _SILVER_BYTES).load(self._store.location(BRONZE_TICKS))
        writer = records.writeStream.queryName("silver").option("checkpointLocation", self._silver_checkpoint)
        paced = writer.trigger(processingTime=milliseconds(silver_trigger_s(self._trigger_s)))
        self._silver = paced.foreachBatch(self.gate.wrap(self.write_silver)).start()
        return self._silver

    def write_silver(self, batch: DataFrame, batch_id: int) -> None:
        """Write the silver rows of a micro-batch of bronze rows; skip messages that are written already."""
        # The plans of a batch belong to the session of its query. Only compiled plans read files of large messages
        # without copying each message.
        configure(batch.sparkSession, COMPILED)
        with cached_frames() as cache:
            headers = headers_of(cache(with_headers(batch, self._topic.trust.clusters)))
            if headers.rows or headers.any_rejected:
                if not headers.has_rows(_MANY_ROWS):
                    configure(batch.sparkSession, INTERPRETED)
                rejected = [header_rejected(headers.records)] if headers.any_rejected else []
                self._write(self._not_written(headers, cache), rejected)
        self._written.add(headers.last_tick.items())

    def _write(self, fresh: MessageHeaders, rejected: list[DataFrame]) -> None:
        """Write the silver tables, quarantine and the ledger.

        Args:
            fresh: messages that are not written yet.
            rejected: records with invalid headers. Those with invalid values are added.
        """
        kinds_of = {table: [kind for kind in kinds if kind in fresh.rows] for table, kinds in SILVER.items()}
        in_job = inheritable_thread_target(fresh.records.sparkSession)
        write = in_job(lambda table: self._write_table(fresh, table, kinds_of[table]))
        with ThreadPoolExecutor(_PARALLEL_TABLES, "silver") as pool:
            for more_rejected in pool.map(write, [table for table, kinds in kinds_of.items() if kinds]):
                rejected += more_rejected
        rejected += [value_rejected(fresh.valid, kind) for kind in _WITHOUT_TABLE if kind in fresh.rows]
        self._write_ledger(fresh.valid, rejected)

    def _write_table(self, fresh: MessageHeaders, table: Table, kinds: Sequence[str]) -> list[DataFrame]:
        """Write the rows of a table, and return frames with the messages that were rejected."""
        self._wait_for_gold()
        decoded = Observation()
        rows = silver_rows(fresh.valid, table, kinds)
        if not fresh.has_rows(_MANY_ROWS):
            # One task and one file, instead of one per partition of the topic.
            rows = rows.coalesce(1)
        rows = rows.observe(decoded, F.count(F.lit(1)).alias("rows"))
        self._store.append(self._without_written(rows, table, fresh.first_tick), table)
        # Each message is parsed once, for its table. Only if rows are missing it is parsed again, for the reason.
        sent = fresh.rows_of(kinds)
        if sent is not None and decoded.get["rows"] == sent * ROWS_EACH.get(table, 1):
            return []
        return [value_rejected(fresh.valid, kind) for kind in kinds]

    def _without_written(self, rows: DataFrame, table: Table, first_tick: Mapping[str, int]) -> DataFrame:
        """Return the rows that the table does not have.

        An earlier process may have written some of a batch. It is the first one, or any if bronze is read again. Rows
        that are not of a tick may have come in any earlier one.
        """
        if "tick_ms" not in table.keys:
            return self._never_written(rows, table)
        if not self._written.any_earlier:
            return rows
        if table not in self._earlier_ticks:
            self._earlier_ticks[table] = self._store.last_ticks(table)
        last_tick = self._earlier_ticks[table]
        if all(tick_ms > last_tick.get(cluster, 0) for cluster, tick_ms in first_tick.items()):
            return rows
        return not_in(rows, self._store.read_since(table, min(first_tick.values())), table.keys)

    def _never_written(self, rows: DataFrame, table: Table) -> DataFrame:
        """Return the rows of new keys, each once; only the table's days of these rows are read."""
        (days,) = rows.agg(F.min("date"), F.max("date")).collect()
        written = self._store.read(table).where(F.col("date").between(days[0], days[1]))
        return not_in(first_of_each(rows, table), written, table.keys)

    def _write_ledger(self, fresh: DataFrame, rejected: Sequence[DataFrame]) -> None:
        """Write rejected records to quarantine, then the others to the ledger, which shows what is written."""
        accepted = fresh
        with cached_frames() as cache:
            bad = cache(reduce(DataFrame.unionByName, rejected)) if rejected else None
            first = None if bad is None else bad.agg({"timestamp": "min"}).collect()[0][0]
            if bad is not None and first is not None:
                rows = quarantine(bad)
                if self._may_be_rejected(first):
                    rows = not_in(rows, self._store.read(QUARANTINE), (*QUARANTINE.keys, "timestamp"))
                self._store.append(rows, QUARANTINE)
                accepted = fresh.join(bad.select(*_COORDINATES), _COORDINATES, "left_anti")
            self._store.append(ledger(accepted), MESSAGES)

    def _may_be_rejected(self, timestamp: datetime) -> bool:
        """Return whether an earlier process may have rejected records of this time or later."""
        if not self._written.any_earlier:
            return False
        if self._earlier_rejected is None:
            (newest,) = self._store.read(QUARANTINE).agg({"timestamp": "max"}).collect()
            self._earlier_rejected = (newest[0],)
        (last,) = self._earlier_rejected
        return last is not None and timestamp <= last

    def _not_written(self, headers: MessageHeaders, cache: Cache) -> MessageHeaders:
        """Return the valid records without duplicates and without those that an earlier batch wrote."""
        if not self._written.may_have(headers.first_tick.items()) and not headers.has_duplicates:
            return headers
        # Only keys are grouped and compared, because a message may have a megabyte.
        keys = headers.valid.selectExpr(
            *[f"header.{key} AS {key}" for key in MESSAGE_KEYS], f"struct({', '.join(_POSITION)}) AS record_position"
        )
        written = self._store.read_since(MESSAGES, min(headers.first_tick.values())).select(*MESSAGE_KEYS)
        once = (
            keys.groupBy(*MESSAGE_KEYS)
            .agg(F.expr("min(record_position) AS record_position"))
            .join(written, MESSAGE_KEYS, "left_anti")
        )
        kept = cache(once.select("record_position.*"))
        return headers_of(headers.records.join(F.broadcast(kept), _POSITION, "left_semi"))


def silver_trigger_s(bronze_trigger_s: float) -> float:
    """Return how often the silver query looks for a commit to bronze, seconds.

    Args:
        bronze_trigger_s: least time between two commits to bronze, seconds.
    """
    return min(bronze_trigger_s, max(_SILVER_TRIGGER_S, bronze_trigger_s * _SILVER_TRIGGER_RATIO))


def not_in(rows: DataFrame, written: DataFrame, keys: Sequence[str]) -> DataFrame:
    """Return the rows whose keys are not in ``written``; null keys compare as equal."""
    same = " AND ".join(f"new.{key} <=> old.{key}" for key in keys)
    return rows.alias("new").join(written.select(*keys).alias("old"), F.expr(same), "left_anti")


def first_of_each(rows: DataFrame, table: Table) -> DataFrame:
    """Return one row for each key of a table: that of the earliest tick."""
    others = ["tick_ms", *(name for name in table.names() if name not in (*table.keys, "tick_ms"))]
    first = rows.groupBy(*table.keys).agg(F.min(F.struct(*others)).alias("first"))
    return first.select(*table.keys, "first.*").select(*table.names())


def header_rejected(records: DataFrame) -> DataFrame:
    """Return the records with an invalid header, in the columns that ``quarantine`` reads."""
    return records.where("reason IS NOT NULL").select(*_RECORD, "reason")


def value_rejected(records: DataFrame, kind: str) -> DataFrame:
    """Return the records of a kind with an invalid value, in the columns that ``quarantine`` reads."""
    rejected = with_message(records, kind).where("reason IS NOT NULL")
    # Spark parses only the requested fields of a broken value: it may be found invalid without a reason.
    return rejected.select(*_RECORD, F.coalesce("reason", F.lit(NOT_A_MESSAGE)).alias("reason"))


def quarantine(rejected: DataFrame) -> DataFrame:
    """Return the rows of ``silver/quarantine`` from rejected records."""
    rows = rejected.withColumns(
        {
            "cluster": F.col("header.cluster"),
            "tick_ms": F.col("header.tick_ms"),
            "payload": F.col("value").cast("string"),
        }
    )
    return rows.select(*[F.col(c.name).cast(c.type).alias(c.name) for c in QUARANTINE.columns])


def ledger(records: DataFrame) -> DataFrame:
    """Return the rows of ``silver/messages`` from valid records."""
    # The only field of tick_end that is in the value alone. Other values are not parsed.
    age = "CASE WHEN header.kind = 'tick_end' THEN get_json_object(CAST(value AS STRING), '$.metadata_age_ms') END"
    # try_cast: anything but an integer is null, as it is where the value is parsed.
    rows = records.selectExpr("header.*", "header.row_count AS rows", f"try_cast({age} AS BIGINT) AS metadata_age_ms")
    return as_table(rows, MESSAGES)


def silver_rows(records: DataFrame, table: Table, kinds: Sequence[str]) -> DataFrame:
    """Return the rows of a silver table from the valid messages of some kinds."""
    parts = []
    for kind in kinds:
        # Not a filter on the reason: the optimizer would parse each message twice, for the filter and for the rows.
        rows = with_message(records, kind).selectExpr(
            "header.cluster AS cluster", "header.tick_ms AS tick_ms", "inline(CASE WHEN reason IS NULL THEN rows END)"
        )
        parts.append(SILVER[table][kind](rows))
    return reduce(DataFrame.unionByName, parts)
