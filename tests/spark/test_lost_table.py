"""Bronze no longer has what silver would read next: silver reads it again, and no row is written twice."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from delta.tables import DeltaTable
from deltalake import DeltaTable as DeltaLog
from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headroom.schemas.tables import BRONZE_TICKS, FETCHER_LAG, MESSAGES, QUARANTINE
from headroom.streaming.jobs.silver import HistoryJob
from headroom.streaming.queries.bronze_query import bronze
from headroom.streaming.session import throughput_session
from headroom.streaming.store.store import Store
from tests.spark.support import ListTopic, counts
from tests.spark.test_jobs import history
from tests.spark.ticks import message, records
from tests.support.waiting import until

_LONGEST_S = 180.0


class Bronze:
    """Bronze whose commits are one tick and one bad record each."""

    def __init__(self, spark: SparkSession, store: Store) -> None:
        self._spark = spark
        self._store = store
        self.location = store.location(BRONZE_TICKS)
        self.ticks = 0

    def add(self) -> None:
        """Commit one tick more."""
        sent = [*history(self.ticks), message("weather", 9, [])]
        self._store.append(bronze(records(self._spark, sent, 9 * self.ticks)), BRONZE_TICKS)
        self.ticks += 1

    def remove_replaced_files(self) -> None:
        """Compact the table, and remove what was replaced, as maintenance does after a day."""
        self._spark.conf.set("spark.databricks.delta.retentionDurationCheck.enabled", "false")
        table = DeltaTable.forPath(self._spark, self.location)
        table.optimize().executeCompaction()
        table.vacuum(0)

    def remove_old_commits(self) -> None:
        """Remove the log before a checkpoint of it, as Delta does after two days."""
        log = DeltaLog(self.location)
        log.create_checkpoint()
        self.add()
        for file in Path(self.location, "_delta_log").glob("*.json"):
            if int(file.stem) < log.version():
                file.unlink()


def test_silver_reads_bronze_again_where_its_files_or_commits_are_gone(spark: SparkSession, tmp_path: Path) -> None:
    own = throughput_session(spark)
    store = Store(own, str(tmp_path / "store"))
    job = HistoryJob(own, ListTopic(own, []), store, str(tmp_path), 0.2)  # type: ignore[arg-type]
    job.prepare()
    table = Bronze(own, store)

    def is_whole() -> bool:
        # Every tick has one lag and 8 messages.
        ticks = table.ticks
        return counts(store, FETCHER_LAG, MESSAGES, QUARANTINE) == {
            "silver/fetcher_lag": (ticks, ticks),
            "silver/messages": (8 * ticks, 8 * ticks),
            "silver/quarantine": (ticks, ticks),
        }

    def stopped_after(damage: Callable[[], None], query: StreamingQuery) -> StreamingQuery:
        """Write while silver does not run, let maintenance damage what it would read, and start it."""
        query.stop()
        table.add()
        table.add()
        damage()
        failing = job._start_silver()
        until(lambda: not failing.isActive, deadline_s=_LONGEST_S)
        return failing

    table.add()
    query = job._start_silver()
    until(is_whole, deadline_s=_LONGEST_S)
    for damage in (table.remove_replaced_files, table.remove_old_commits):
        stopped_after(damage, query)
        job.prepare()
        query = job._start_silver()
        table.add()
        until(is_whole, deadline_s=_LONGEST_S)
    # The rows are there before the batch that wrote them has ended, and a stop would break it off.
    job.gate.close()
    query.stop()
    assert query.exception() is None
