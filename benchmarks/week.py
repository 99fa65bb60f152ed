"""``python -m benchmarks.week FOLDER``: some simulated days of ticks of two clusters, into two stores.

The record and gold jobs write them by their own code, batch by batch, and the real maintenance follows the simulated
days. The other store gets the gold rows and no maintenance. After each day a line of JSON tells how the tables stand.
"""

from __future__ import annotations

import dataclasses
import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass
from datetime import date, datetime, timezone
from pathlib import Path
from typing import Any

from pyspark.sql import DataFrame, SparkSession

from benchmarks.workload import BEGIN_MS, WINDOW_MS, SyntheticCluster, Tick, Workload
from cluster.encode import Message, encode_end, encode_rows
from cluster.publisher import Sent, tick_end
from schemas.config import SparkSettings, StoreSettings
from schemas.messages import ALERT_LANE
from schemas.tables import BRONZE_TICKS, TABLES
from streaming.jobs.gold import TABLES as GOLD
from streaming.jobs.gold import GoldJob
from streaming.jobs.record import RecordJob, bronze
from streaming.maintenance import Maintained, Maintenance
from streaming.session import COMPILED, INTERPRETED, build_session
from streaming.sinks import Store
from streaming.sources import TicksTopic

CLUSTERS = ("orders", "payments")
BROKERS = 12
DAY_MS, HOUR_MS = 86_400_000, 3_600_000
# Bronze as by default; the others so few that all of them lose days within the week.
KEPT = StoreSettings(silver_keep_days=4, gold_keep_days=4)
MAINTAINED, PLAIN = "maintained", "plain"
_BEGIN_MS = BEGIN_MS // DAY_MS * DAY_MS
# A batch of the record job takes in this many of gold's: it commits every 30 s, gold every 5 s.
_RECORD_EVERY = 6
_LANES = 4
RECORD_DDL = "key BINARY, value BINARY, topic STRING, partition INT, offset BIGINT, timestamp TIMESTAMP"


@dataclass(frozen=True)
class Span:
    """The simulated time.

    Attributes:
        days: how many.
        day_ticks: ticks of each cluster in a day, all at the same distance.
        hour_ticks: ticks of each in the last hour, besides.
        partitions: of each cluster.
    """

    days: int
    day_ticks: int
    hour_ticks: int
    partitions: int = 2000

    @property
    def last_hour_ms(self) -> int:
        """When the last hour begins, epoch milliseconds."""
        return _BEGIN_MS + self.days * DAY_MS - HOUR_MS


def span() -> Span:
    """Return the simulated time that the environment asks for: BENCH_DAYS, BENCH_DAY_TICKS, BENCH_HOUR_TICKS."""
    return Span(*(int(os.environ.get(*default)) for default in _DEFAULTS))


_DEFAULTS = (("BENCH_DAYS", "7"), ("BENCH_DAY_TICKS", "6"), ("BENCH_HOUR_TICKS", "60"))


class Week:
    """The two stores and the jobs that write them.

    Args:
        spark: session.
        folder: of both stores.
    """

    def __init__(self, spark: SparkSession, folder: Path) -> None:
        self._spark = spark
        self.folder = folder
        self._offset = self._batches = 0
        self._waiting: list[DataFrame] = []
        topic, checkpoints = TicksTopic(spark, "headroom.ticks", {}), _checkpoints(folder)
        self._store, plain = (Store(spark, str(folder / name)) for name in (MAINTAINED, PLAIN))
        self._record = RecordJob(spark, topic, self._store, checkpoints, 1.0)
        self._gold = [GoldJob(spark, topic, store, checkpoints, 1.0) for store in (self._store, plain)]
        self._record.prepare()
        for job in self._gold:
            job.prepare()
        self._store.ensure(*TABLES)
        self._hasten()

    def _hasten(self) -> None:
        """Let a file that compaction replaced go after a second: a simulated day has no two hours to wait for it."""
        for table in TABLES:
            change = "SET TBLPROPERTIES ('delta.deletedFileRetentionDuration' = 'interval 1 second')"
            self._spark.sql(f"ALTER TABLE delta.`{self._store.location(table)}` {change}")

    def write(self, ticks: Sequence[tuple[str, Tick]]) -> None:
        """Write ticks of one time: to gold at once, to bronze and silver with the next ones."""
        records = [record for cluster, tick in ticks for record in self._records(cluster, tick)]
        frame = self._spark.createDataFrame(records, RECORD_DDL)
        self._waiting.append(frame)
        self._batches += 1
        for job in self._gold:
            job.write(frame.where(f"partition = {ALERT_LANE}"), self._batches)
        if len(self._waiting) == _RECORD_EVERY:
            self.record()

    def record(self) -> None:
        """Write what waits to bronze and silver."""
        if not self._waiting:
            return
        self._set(COMPILED)
        rows = bronze(self._waiting[0])
        for frame in self._waiting[1:]:
            rows = rows.unionByName(bronze(frame))
        self._waiting.clear()
        held = rows.coalesce(_LANES).persist()
        self._store.append(held, BRONZE_TICKS, ("week", self._batches))
        self._record.write_silver(held, self._batches)
        held.unpersist()
        self._set(INTERPRETED)

    def maintain(self, today: date) -> list[Maintained]:
        """Look after the tables as on that day; one that fails ends it all."""
        done = Maintenance(self._spark, self._store, KEPT).run(today)
        failed = [one for one in done if not isinstance(one, Maintained)]
        if failed:
            raise SystemExit(f"maintenance failed: {failed}")
        return [one for one in done if isinstance(one, Maintained)]

    def plain_files(self) -> int:
        """Return how many files the gold tables have that nobody looks after."""
        paths = (self.folder / PLAIN / table.path for table in GOLD)
        return sum(len(self._spark.read.format("delta").load(str(path)).inputFiles()) for path in paths)

    def _set(self, conf: dict[str, str]) -> None:
        for key, value in conf.items():
            self._spark.conf.set(key, value)

    def _records(self, cluster: str, tick: Tick) -> Iterator[tuple[Any, ...]]:
        """Return the Kafka records of a tick: the lane's in partition 0, the others in turn."""
        messages = encode_rows(cluster, tick.tick_ms, tick)
        lane = sum(message.alert_lane for message in messages)
        end = tick_end(
            Sent({}, self._offset, lane),
            started_ms=tick.tick_ms,
            ended_ms=tick.tick_ms,
            interval_ms=5000,
            rate_window_ms=WINDOW_MS,
        )
        at = datetime.fromtimestamp(tick.tick_ms / 1000, timezone.utc)
        for number, message in enumerate([*messages, encode_end(cluster, tick.tick_ms, len(messages), end)]):
            yield message.key, message.value, "headroom.ticks", _lane(message, number), self._offset, at
            self._offset += 1


def _lane(message: Message, number: int) -> int:
    return ALERT_LANE if message.alert_lane else number % (_LANES - 1) + 1


def _checkpoints(folder: Path) -> str:
    """Return a folder of checkpoints with the id of a stream, as a started query leaves it."""
    silver = folder / "checkpoints" / "silver"
    silver.mkdir(parents=True)
    (silver / "metadata").write_text('{"id":"week"}')
    return str(silver.parent)


def _ticks(partitions: int, begin_ms: int, interval_ms: int, count: int) -> Iterator[list[tuple[str, Tick]]]:
    """Return ticks of all clusters, those of one time together; each has to be used before the next is asked for."""
    of = Workload(
        brokers=BROKERS,
        topics=20,
        partitions=partitions,
        moving_ratio=0.1,
        interval_s=interval_ms / 1000,
        begin_ms=begin_ms,
    )
    made = [SyntheticCluster(dataclasses.replace(of, cluster=name, seed=n)) for n, name in enumerate(CLUSTERS)]
    for at_once in zip(*(cluster.ticks(count) for cluster in made), strict=True):
        yield list(zip(CLUSTERS, at_once, strict=True))


def _age(folder: Path) -> None:
    """Make the logs of all tables a day older, for Delta cleans them by the age of their files."""
    for path in folder.rglob("_delta_log/*"):
        before = path.stat().st_mtime - DAY_MS / 1000
        os.utime(path, (before, before))


def run(week: Week, time: Span) -> Iterator[dict[str, Any]]:
    """Write all days; of each, when it is over, what its maintenance did and how large the store is.

    The last hour comes after the last maintenance: it is what a query meets just before the next one.
    """
    for number in range(time.days):
        begin_ms = _BEGIN_MS + number * DAY_MS
        for ticks in _ticks(time.partitions, begin_ms, (DAY_MS - HOUR_MS) // time.day_ticks, time.day_ticks):
            week.write(ticks)
        week.record()
        done = week.maintain(datetime.fromtimestamp(begin_ms / 1000, timezone.utc).date())
        yield {"day": number + 1, "done": [asdict(one) for one in done], **_sizes(week.folder / MAINTAINED)}
        _age(week.folder)
    for ticks in _ticks(time.partitions, time.last_hour_ms, HOUR_MS // time.hour_ticks, time.hour_ticks):
        week.write(ticks)
    week.record()
    yield {"plain_files": week.plain_files(), **_sizes(week.folder / MAINTAINED)}


def _sizes(folder: Path) -> dict[str, int]:
    paths = [path for path in folder.rglob("*") if path.is_file()]
    logs = [path.stat().st_size for path in paths if path.parent.name == "_delta_log"]
    return {
        "disk_bytes": sum(path.stat().st_size for path in paths),
        "log_bytes": sum(logs),
        "log_files": len(logs),
    }


def main() -> None:
    """Simulate, and print a line for every day."""
    spark = build_session(SparkSettings(master="local[2]", driver_memory="2g"), "week")
    for line in run(Week(spark, Path(sys.argv[1])), span()):
        print(json.dumps(line, default=str), flush=True)
    spark.stop()


if __name__ == "__main__":
    main()
