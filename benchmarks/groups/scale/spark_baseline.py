"""``python -m benchmarks.groups.scale.spark_baseline CONFIG FOLDER``: time of Spark and Delta without Headroom's logic.

- ``messages``: one read of the whole ticks topic, one ``from_json`` with the columns of every kind, one append.
- ``rows``: for each kind with many rows, its messages decoded by ``from_json`` to one row each, and one append to a
  table of that kind. These are the rows of the pipeline, without checks, partitioning or verdicts.

Both run twice, to warm up the JVM. The seconds of the second pass are printed, one line each.
"""

from __future__ import annotations

import dataclasses
import sys
import time

from pyspark.sql import DataFrame

from headroom.cli.config.load import load_settings
from headroom.schemas.tick_messages import COLUMNAR, ENVELOPE, ROWS, TICK_END, column_types, message_ddl
from headroom.streaming.session import COMPILED, build_session
from headroom.streaming.sources.kafka_options import kafka_options
from headroom.streaming.transforms.decode import columns_of_message, rows_of_message

_PASSES = 2
_VALUE = "CAST(value AS STRING)"


def main() -> None:
    """Measure, and print the seconds."""
    config, folder = sys.argv[1:3]
    settings = load_settings(config)
    spark = build_session(dataclasses.replace(settings.spark, conf=settings.spark.conf | COMPILED), "ceiling")
    topic = spark.read.format("kafka").options(**kafka_options(settings.cluster, None))
    topic = topic.option("subscribe", settings.ticks.topic).option("startingOffsets", "earliest")
    for name, append in (("messages", _append_messages), ("rows", _append_rows)):
        took_s = 0.0
        for number in range(_PASSES):
            began_s = time.monotonic()
            append(topic.load(), f"{folder}/{name}-{number}")
            took_s = time.monotonic() - began_s
        print(took_s)
    spark.stop()


def _append_messages(records: DataFrame, path: str) -> None:
    parsed = records.selectExpr(f"from_json({_VALUE}, '{_ddl()}') AS m").select("m.*")
    parsed.write.format("delta").save(path)


def _append_rows(records: DataFrame, path: str) -> None:
    for kind in COLUMNAR:
        of_kind = records.where(f"from_json(CAST(key AS STRING), '{ENVELOPE}').kind = '{kind}'")
        parsed = of_kind.selectExpr(f"from_json({_VALUE}, '{message_ddl(kind)}') AS message")
        rows = parsed.selectExpr("message", f"{columns_of_message(kind)} AS columns").selectExpr(
            "message.cluster", "message.tick_ms", f"inline({rows_of_message(kind)})"
        )
        rows.write.format("delta").save(f"{path}/{kind}")


def _ddl() -> str:
    """Return one schema for the messages of every kind."""
    columns = {name: of for kind in COLUMNAR for name, of in column_types(kind).items()}
    arrays = ", ".join(f"{name} ARRAY<{of}>" for name, of in columns.items())
    rows = f"rows ARRAY<STRUCT<{ROWS['brokers']}, {ROWS['moves']}>>"
    return f"{ENVELOPE}, {rows}, columns STRUCT<{arrays}>, {TICK_END}"


if __name__ == "__main__":
    main()
