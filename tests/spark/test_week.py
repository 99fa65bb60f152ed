"""The simulated week of the benchmarks: every tick is where it should be, looked after or not, and found by a query."""

from __future__ import annotations

from pathlib import Path

from pyspark.sql import SparkSession

from benchmarks.dashboard import QUERIES
from benchmarks.week import BROKERS, CLUSTERS, MAINTAINED, PLAIN, Span, Week, run
from cli.tables import query
from schemas.tables import BRONZE_TICKS, MESSAGES, TABLES, THROTTLE_HEADROOM
from streaming.sinks import Store

SPAN = Span(days=1, day_ticks=2, hour_ticks=2, partitions=60)
# So few partitions make a message of each kind, and the end of the tick.
MESSAGES_OF_A_TICK = 8


def test_a_day_and_its_last_hour_are_written_twice_and_looked_after_once(spark: SparkSession, tmp_path: Path) -> None:
    day, end = run(Week(spark, tmp_path), SPAN)
    assert {one["table"] for one in day["done"]} == {table.path for table in TABLES}
    store, plain = (Store(spark, str(tmp_path / name)) for name in (MAINTAINED, PLAIN))
    ticks = (SPAN.day_ticks + SPAN.hour_ticks) * len(CLUSTERS)
    assert store.read(MESSAGES).count() == store.read(BRONZE_TICKS).count() == ticks * MESSAGES_OF_A_TICK
    sides = ticks * BROKERS * 2
    assert store.read(THROTTLE_HEADROOM).count() == plain.read(THROTTLE_HEADROOM).count() == sides
    # A commit for the ticks of one time: those of the day become one file, and the last hour comes after that.
    files = {one["table"]: (one["files_before"], one["files_after"]) for one in day["done"]}
    assert files[THROTTLE_HEADROOM.path] == (SPAN.day_ticks, 1)
    assert len(plain.read(THROTTLE_HEADROOM).inputFiles()) == SPAN.day_ticks + SPAN.hour_ticks
    assert end["plain_files"] > sum(after for path, (_, after) in files.items() if path.startswith("gold/"))
    rows = {
        name: query(str(tmp_path / MAINTAINED), table.path, sql.format(cluster="orders", from_ms=SPAN.last_hour_ms))
        for name, (table, sql) in QUERIES.items()
    }
    # The last hour of one cluster: two sides of every broker, and every broker follows another.
    assert len(rows["headroom"] or []) == SPAN.hour_ticks * BROKERS * 2
    assert len(rows["lag"] or []) == SPAN.hour_ticks * BROKERS
