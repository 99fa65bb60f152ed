"""The ticks of the fuzz benchmark, as they are before anything is replaced."""

from __future__ import annotations

import json

from pyspark.sql import SparkSession

from benchmarks.fuzz.made import TICK_MS, Record, tick
from benchmarks.fuzz.ticks import Reader
from schemas.messages import ENVELOPE

NAMES = [column.split(" ")[0] for column in ENVELOPE.split(", ")]


def test_ticks_in_which_nothing_is_replaced_are_judged(spark: SparkSession) -> None:
    reader = Reader(spark)
    ticks = [
        [
            Record(json.dumps({name: m.get(name) for name in NAMES}).encode(), json.dumps(m).encode(), tick_ms)
            for m in tick(cluster, tick_ms)
        ]
        for cluster, tick_ms in (("orders", TICK_MS), ("payments", TICK_MS + 1), ("orders", TICK_MS + 1000))
    ]
    reader.read(ticks)
    assert reader.judged == 3
