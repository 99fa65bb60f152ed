"""Offsets of a micro-batch in the alert partition, from the query's checkpoint, without reading a record."""

from __future__ import annotations

import json

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from schemas.tick_messages import ALERT_PARTITION


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


def _end_of(spark: SparkSession, checkpoint: str, batch_id: int) -> int:
    """Return the end offset of a batch (exclusive): the last line of its file has one per topic and partition."""
    lines = [row[0] for row in spark.read.text(f"{checkpoint}/offsets/{batch_id}").collect()]
    (partitions,) = json.loads(lines[-1]).values()
    return int(partitions[str(ALERT_PARTITION)])
