"""No message stops a job: of what is wrong in one place, each is written or in quarantine with a reason."""

from __future__ import annotations

import json
from collections import defaultdict
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, Row, SparkSession
from pyspark.sql import functions as F

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import throttle_status_of
from headroom.planning.elections.planner import BatchLimits
from headroom.schemas.config import AlertSettings, ClusterSettings, Settings
from headroom.schemas.tables import LEADER_IMBALANCE, MESSAGES, QUARANTINE
from headroom.schemas.tick_messages import ALERT_KINDS, KINDS
from headroom.streaming.jobs.gold import TABLES, GoldJob
from headroom.streaming.jobs.leader_imbalance import BalanceConfig, LeaderImbalanceJob
from headroom.streaming.jobs.silver import HistoryJob
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.queries.whole_ticks import CompleteTicks
from headroom.streaming.sources.trust import Trust
from headroom.streaming.transforms.decode import MESSAGE_KEYS, with_headers
from headroom.streaming.transforms.gold import headroom_rows
from tests.spark.edges import garbled, good, spoilt
from tests.spark.support import ListTopic, MemoryStore, SpreadTopic, checkpoint, rows_of
from tests.spark.ticks import RECORDS_DDL, TICK_MS, envelope

SECOND_MS = 1000
GARBLED = 2000
ONLY_C1 = Trust({"c1"}, lambda: TICK_MS)


def as_record(value: bytes, key: bytes | None, offset: int) -> tuple[Any, ...]:
    return key, value, "headroom.ticks", 0, offset


def frame(spark: SparkSession, rows: list[tuple[Any, ...]]) -> DataFrame:
    ddl = RECORDS_DDL.removesuffix(", timestamp TIMESTAMP")
    return spark.createDataFrame(rows, ddl).withColumn("timestamp", F.timestamp_millis(F.lit(TICK_MS)))


def of_kinds() -> Iterator[tuple[str, dict[str, Any]]]:
    """What is wrong in one place, with the kind that it was made of."""
    return ((kind, m) for kind in KINDS for m in spoilt(kind))


def of_tick(kind: str, of: dict[str, Any]) -> bool:
    """Whether it is a message of a tick still, as a collector would count it."""
    return (of["kind"], of["cluster"], of["tick_ms"]) == (kind, "c1", TICK_MS)


def key_of(row: Row | dict[str, Any]) -> tuple[Any, ...]:
    return tuple(row[key] for key in MESSAGE_KEYS)


def text_of(of: dict[str, Any]) -> bytes:
    return json.dumps(of).encode()


def test_every_record_is_written_once_or_in_quarantine_with_a_reason(spark: SparkSession, tmp_path: Path) -> None:
    # Of the same message one alone is written: each has a number of its own, where that is not what is wrong.
    wrong = [m | {"seq": 100 + n} if m["seq"] == good(kind)["seq"] else m for n, (kind, m) in enumerate(of_kinds())]
    sent = [(text_of(m), envelope(m)) for m in wrong]
    sent += garbled(GARBLED, 5)
    sent += [(value, key[: len(key) // 2]) for value, key in garbled(GARBLED, 6)]
    raw = frame(spark, [as_record(value, key, offset) for offset, (value, key) in enumerate(sent)])
    store = MemoryStore(spark)
    checkpoint(tmp_path, "silver")
    job = HistoryJob(spark, ListTopic(spark, [], trust=ONLY_C1), store, str(tmp_path), 1.0)  # type: ignore[arg-type]
    job.prepare()
    job.write_silver(bronze(raw), 0)
    bad = {row["offset"]: row["reason"] for row in rows_of(store, QUARANTINE)}
    written = {key_of(row) for row in rows_of(store, MESSAGES)}
    headers = with_headers(raw, ["c1"]).select("offset", "header.*").collect()
    lost = [sent[row["offset"]] for row in headers if row["offset"] not in bad and key_of(row) not in written]
    assert (len(headers), lost, [sent[o] for o, why in bad.items() if not why]) == (len(sent), [], [])
    # Neither is all of it bad, nor all good.
    assert len(sent) / 4 < len(bad) < len(sent) * 3 / 4


def test_no_tick_that_is_wrong_in_one_place_stops_the_alert_path_or_gold(spark: SparkSession, tmp_path: Path) -> None:
    alert_partition: list[tuple[bytes, bytes]] = []
    for number, (spoilt_kind, wrong) in enumerate(pair for pair in of_kinds() if pair[0] in ALERT_KINDS):
        tick_ms, first = TICK_MS - number, len(alert_partition)
        for kind in ALERT_KINDS:
            sent = wrong if kind == spoilt_kind else good(kind)
            sent = {name: tick_ms if (name, value) == ("tick_ms", TICK_MS) else value for name, value in sent.items()}
            if kind == "tick_end" and sent["first_offset"] == 0:
                sent["first_offset"] = first
            alert_partition.append((text_of(sent), envelope(sent)))
    raw = frame(spark, [as_record(value, key, offset) for offset, (value, key) in enumerate(alert_partition)])
    store = MemoryStore(spark)
    topic: Any = ListTopic(spark, [], trust=ONLY_C1)
    job = BothJobs(spark, topic, store, checkpoint(tmp_path, "gold"), 1.0)
    job.prepare()
    job.write(raw, 0)
    assert len(job.evaluated) > len(alert_partition) / 9
    assert {cluster for cluster, _ in job.evaluated} == {"c1"}
    assert all(store.rows[table.path] for table in TABLES)


class BothJobs(GoldJob):
    """The gold job, which also does what the alert path does with a tick, so that the messages are read once.

    Attributes:
        evaluated: ticks with a verdict.
    """

    evaluated: Sequence[tuple[str, int]] = ()

    def _write(self, complete: CompleteTicks) -> None:
        engine = AlertEngine(Settings(cluster=ClusterSettings(name="c1"), alerts=AlertSettings()), lambda: TICK_MS)
        sides: dict[tuple[str, int], list[Any]] = defaultdict(list)
        for row in headroom_rows(complete.messages).collect():
            sides[row["cluster"], row["tick_ms"]].append(throttle_status_of(row.asDict(recursive=True)))
        for tick in complete.ticks:
            engine.evaluate(*tick, sides[tick])
        self.evaluated = complete.ticks
        super()._write(complete)


def test_no_history_that_is_wrong_in_one_place_stops_the_balance(spark: SparkSession, tmp_path: Path) -> None:
    topic, store = SpreadTopic(spark), MemoryStore(spark)
    wrong = [m for kind in ("leaders", "logs", "meters") for m in spoilt(kind) if of_tick(kind, m)]
    for number in range(0, len(wrong), 200):
        tick_ms = TICK_MS + number
        alert_partition = [good("brokers") | {"tick_ms": tick_ms}]
        topic.send(
            alert_partition,
            [m | {"tick_ms": tick_ms, "seq": 10 + i} for i, m in enumerate(wrong[number : number + 200])],
        )
    job = LeaderImbalanceJob(
        spark,
        topic,  # type: ignore[arg-type]
        store,
        checkpoint(tmp_path, "balance"),
        1.0,
        BalanceConfig(topic, 0.1, BatchLimits()),  # type: ignore[arg-type]
    )
    job.prepare()
    raw = frame(spark, [as_record(text_of(m), envelope(m), offset) for offset, m in enumerate(topic.alert_partition)])
    job.write(raw, 0)
    assert LEADER_IMBALANCE.path in store.rows
