"""The ticks of the fuzz benchmark, before anything is replaced."""

from __future__ import annotations

from pyspark.sql import SparkSession

from benchmarks.groups.fuzz.made import TICK_MS, record, tick
from benchmarks.groups.fuzz.ticks import Reader


def test_unchanged_ticks_are_evaluated(spark: SparkSession) -> None:
    reader = Reader(spark)
    ticks = [
        [record(message, tick_ms) for message in tick(cluster, tick_ms)]
        for cluster, tick_ms in (("orders", TICK_MS), ("payments", TICK_MS + 1), ("orders", TICK_MS + 1000))
    ]
    reader.read(ticks)
    assert reader.evaluated == 3
