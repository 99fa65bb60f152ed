"""From where to where in the lane a batch goes, as its checkpoint says before it begins: without a look at a record."""

from __future__ import annotations

import json

from py4j.protocol import Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from schemas.tick_messages import ALERT_PARTITION


def alert_offsets(spark: SparkSession, checkpoint: str, batch_id: int | None) -> tuple[int, int] | None:
    """Return the offset in the alert lane that a batch begins with, and the one it ends before.

    Args:
        spark: session.
        checkpoint: folder or URL of the checkpoint of a query over the lane.
        batch_id: number of the batch; None: it is of no query.

    Returns:
        None: the checkpoint does not say, as of the first batch of all.
    """
    if batch_id is None or batch_id < 1:
        return None
    try:
        first, end = (_end_of(spark, checkpoint, number) for number in (batch_id - 1, batch_id))
    except (Py4JJavaError, PySparkException, ValueError, LookupError, TypeError):
        # It is Spark's own, which may come to look otherwise.
        return None
    # Of a topic that was made anew it says nothing.
    return (first, end) if first <= end else None


def _end_of(spark: SparkSession, checkpoint: str, batch_id: int) -> int:
    """Return the offset that a batch ends before: the last line of its file has one by topic and partition."""
    lines = [row[0] for row in spark.read.text(f"{checkpoint}/offsets/{batch_id}").collect()]
    (partitions,) = json.loads(lines[-1]).values()
    return int(partitions[str(ALERT_PARTITION)])
