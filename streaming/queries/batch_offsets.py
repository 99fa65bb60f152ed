"""Offsets of a micro-batch in the alert partition, from the query's checkpoint, without reading a record."""

from __future__ import annotations

import json
import os

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from headroom.schemas.tick_messages import ALERT_PARTITION
from headroom.streaming.delta.locations import local_path


def alert_offsets(spark: SparkSession, checkpoint: str, batch_id: int | None) -> tuple[int, int] | None:
    """Return the first offset of a batch in the alert partition, and its end (exclusive).

    Args:
        spark: session.
        checkpoint: folder or URL of the checkpoint of a query over the alert partition.
        batch_id: number of the batch; None if it belongs to no query.

    Returns:
        Both offsets; None if the checkpoint does not contain them, as for the first batch.
    """
    if batch_id is None or batch_id < 1:
        return None
    try:
        first, end = (_end_of(spark, checkpoint, number) for number in (batch_id - 1, batch_id))
    except (Py4JJavaError, PySparkException, ValueError, LookupError, TypeError):
        # The format is internal to Spark and may change.
        return None
    # Offsets that go back: the topic was created again, so the checkpoint is of no use.
    return (first, end) if first <= end else None


def next_alert_offset(spark: SparkSession, checkpoint: str) -> int | None:
    """Return the offset of the alert partition at which a query would continue.

    Args:
        spark: session.
        checkpoint: folder of the checkpoint.

    Returns:
        The offset; None if there is no checkpoint, or it cannot be read.
    """
    folder = local_path(checkpoint)
    if folder is None:
        return None
    try:
        finished = max(int(name) for name in os.listdir(f"{folder}/commits") if name.isdecimal())
        return _end_of(spark, checkpoint, finished)
    except (OSError, Py4JJavaError, PySparkException, ValueError, LookupError, TypeError):
        return None


def _end_of(spark: SparkSession, checkpoint: str, batch_id: int) -> int:
    """Return the end offset of a batch (exclusive): the last line of its file has one per topic and partition."""
    lines = [row[0] for row in spark.read.text(f"{checkpoint}/offsets/{batch_id}").collect()]
    (partitions,) = json.loads(lines[-1]).values()
    return int(partitions[str(ALERT_PARTITION)])
