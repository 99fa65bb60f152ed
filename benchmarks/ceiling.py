"""``python -m benchmarks.ceiling CONFIG FOLDER``: what Spark and Delta take for the same messages without our logic.

One read of the whole ticks topic, one ``from_json`` with the columns of every kind, one plain append to a Delta table.
It does so twice, for a JVM that is warm, and prints the seconds of the second time.
"""

from __future__ import annotations

import dataclasses
import sys
import time

from cli.config import load_settings
from schemas.messages import COLUMNAR, ENVELOPE, ROWS, TICK_END, column_types
from streaming.session import COMPILED, build_session
from streaming.sources import kafka_options

_PASSES = 2


def main() -> None:
    """Measure and print the seconds."""
    config, folder = sys.argv[1:3]
    settings = load_settings(config)
    spark = build_session(dataclasses.replace(settings.spark, conf=settings.spark.conf | COMPILED), "ceiling")
    topic = spark.read.format("kafka").options(**kafka_options(settings.cluster, None))
    topic = topic.option("subscribe", settings.ticks.topic).option("startingOffsets", "earliest")
    took_s = 0.0
    for number in range(_PASSES):
        began_s = time.monotonic()
        parsed = topic.load().selectExpr(f"from_json(CAST(value AS STRING), '{_ddl()}') AS m").select("m.*")
        parsed.write.format("delta").save(f"{folder}/pass-{number}")
        took_s = time.monotonic() - began_s
    print(took_s)
    spark.stop()


def _ddl() -> str:
    """Return one schema for the messages of every kind."""
    columns = {name: of for kind in COLUMNAR for name, of in column_types(kind).items()}
    arrays = ", ".join(f"{name} ARRAY<{of}>" for name, of in columns.items())
    rows = f"rows ARRAY<STRUCT<{ROWS['brokers']}, {ROWS['moves']}>>"
    return f"{ENVELOPE}, {rows}, columns STRUCT<{arrays}>, {TICK_END}"


if __name__ == "__main__":
    main()
