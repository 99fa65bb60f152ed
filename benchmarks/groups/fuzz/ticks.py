"""Records of the ticks topic through all their readers: verdicts, alerts, gold, silver and leader imbalance."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.fixtures.synthetic.simulated_week import RECORD_DDL
from benchmarks.groups.fuzz.made import CLUSTERS, TICK_MS, FuzzedRecord
from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import throttle_status_of
from headroom.schemas.config import Settings
from headroom.schemas.tick_messages import KINDS
from headroom.streaming.jobs.gold import TABLES
from headroom.streaming.queries.whole_ticks import CompleteTicksReader
from headroom.streaming.sources.trust import Trust
from headroom.streaming.transforms.decode import message_rows, with_headers, with_message
from headroom.streaming.transforms.gold import GoldQueries, headroom_rows
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from headroom.streaming.transforms.silver import SILVER
from headroom.streaming.transforms.tick_status import rows_of


@dataclass(frozen=True)
class _Topic:
    """A ticks topic without records before a batch.

    Attributes:
        spark: session.
        trust: rules for ticks to accept.
    """

    spark: SparkSession
    trust: Trust

    def alert_range(self, _first: int, _end: int) -> DataFrame:
        """Return no records."""
        return self.spark.createDataFrame([], RECORD_DDL)


class Reader:
    """Reads ticks like a watch and its history process.

    Args:
        spark: session.
    """

    def __init__(self, spark: SparkSession) -> None:
        self._spark = spark
        self._complete_ticks = CompleteTicksReader(_Topic(spark, Trust(CLUSTERS)))  # type: ignore[arg-type]
        self._gold = GoldQueries()
        self._engine = AlertEngine(Settings(), lambda: TICK_MS)
        self.evaluated = 0

    def read(self, ticks: Sequence[Sequence[FuzzedRecord]]) -> None:
        """Read ticks in one micro-batch. Any exception is a crash."""
        records = self._spark.createDataFrame(list(_rows(ticks)), RECORD_DDL).coalesce(1).persist()
        try:
            self._alerts(records)
            self._history(records)
        finally:
            records.unpersist()

    def _alerts(self, records: DataFrame) -> None:
        with self._complete_ticks.read(records) as complete:
            rows_by_tick: dict[tuple[str, int], list[Mapping[str, Any]]] = {tick: [] for tick in complete.ticks}
            for row in headroom_rows(complete.messages).collect():
                rows_by_tick[row["cluster"], row["tick_ms"]].append(row.asDict(recursive=True))
            for (cluster, tick_ms), rows in rows_by_tick.items():
                self._engine.evaluate(cluster, tick_ms, [throttle_status_of(row) for row in rows])
            self.evaluated += len(rows_by_tick)
            rows_of_gold = self._gold.rows(complete.messages)
            for table in TABLES:
                _compute(rows_of_gold.of(table))

    def _history(self, records: DataFrame) -> None:
        headers = with_headers(records, CLUSTERS).persist()
        known = headers.where("reason IS NULL")
        for kind in KINDS:
            _compute(with_message(known, kind))
        for kind, rows_of_table in (of_kind for made_of in SILVER.values() for of_kind in made_of.items()):
            _compute(rows_of_table(message_rows(known, kind)))
        with self._complete_ticks.read(records) as complete:
            leaders, logs, meters = (message_rows(known, kind) for kind in ("leaders", "logs", "meters"))
            _compute(
                leader_imbalance(ImbalanceInputs(leaders, logs, meters, rows_of(complete.messages, "brokers")), 0.1)
            )
        headers.unpersist()


def _compute(frame: DataFrame) -> None:
    """Compute every value of a frame."""
    frame.write.format("noop").mode("overwrite").save()


def _rows(ticks: Sequence[Sequence[FuzzedRecord]]) -> Any:
    offset = 0
    for tick in ticks:
        first = offset
        for record in tick:
            # The first offset of its tick is known only here.
            value = record.value.replace(b'"first_offset": 0, "lane', f'"first_offset": {first}, "lane'.encode())
            at = datetime.fromtimestamp(record.tick_ms / 1000, timezone.utc)
            yield record.key, value, "headroom.ticks", 0, offset, at
            offset += 1
