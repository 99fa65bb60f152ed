"""Decision before a query starts: can it continue where its checkpoint stops, or has its source changed meanwhile?

By themselves Spark's sources fail again and again if records of a topic expired unread, or if maintenance removed
commits and files of a table before they were read. Of a topic that was created again they leave out all that was
written before the query looked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from alerts.text.formatting import moment
from streaming.queries.checkpoint import Checkpoint
from streaming.sources.topic_position import PartitionState, TopicPosition, describe_lost

log = logging.getLogger(__name__)

# Errors of Delta's source, by which a stream that is too far behind ends: a commit or a file is gone, or the table is
# another one.
_TABLE_LOST = re.compile(
    r"DELTA_LOG_FILE_NOT_FOUND_FOR_STREAMING_SOURCE|was expecting process data from version"
    r"|FAILED_READ_FILE\.FILE_NOT_EXIST|DIFFERENT_DELTA_TABLE_READ_BY_STREAMING_SOURCE"
)


class PartitionReader(Protocol):
    """The ticks topic, as far as its offsets go."""

    @property
    def name(self) -> str:
        """Return the name of the topic."""
        ...

    def states(self, offsets: Mapping[int, int], *, all_partitions: bool) -> dict[int, PartitionState] | None:
        """Return what the partitions have now; None if unknown.

        Args:
            offsets: partition to the position of a query.
            all_partitions: whether partitions that it has not seen count too.
        """
        ...


def may_lose_records(
    spark: SparkSession, topic: PartitionReader, checkpoint: str, query: str, *, all_partitions: bool
) -> bool:
    """Return whether records that the query would read next have expired, and log their offsets.

    If the topic was created again, its checkpoint is removed: the query starts with the first record of the new one.

    Args:
        spark: session.
        topic: the topic.
        checkpoint: folder or URL of the query's checkpoint.
        query: its name in messages.
        all_partitions: whether it reads all partitions, or those of its checkpoint.
    """
    stored = Checkpoint(spark, checkpoint)
    position = _position(stored, topic.name)
    states = None if position is None else topic.states(position.offsets, all_partitions=all_partitions)
    if position is None or not states:
        return False
    if position.is_of_earlier_topic(states):
        stored.remove()
        until = "" if position.read_ms is None else f" at {moment(position.read_ms)}"
        log.warning(
            "topic %s was created again since job %s read it last%s: what the earlier one had after that is lost; "
            "the job continues with the first record of the new topic",
            topic.name,
            query,
            until,
        )
        return False
    lost = position.lost(states)
    if lost:
        log.warning(
            "topic %s: %s expired before job %s read them, and are lost; the job continues with the first records that "
            "are there: raise retention.ms of the topic, or run the job more often",
            topic.name,
            describe_lost(lost),
            query,
        )
    return bool(lost)


def forget_lost_table(spark: SparkSession, stopped: StreamingQuery, checkpoint: str, table: str) -> None:
    """Remove the checkpoint of a stopped query if its table no longer has what it would read next.

    It then reads all rows of the table again, and has to skip those that it has written.

    Args:
        spark: session.
        stopped: the query.
        checkpoint: folder or URL of its checkpoint.
        table: table that it reads, in messages.
    """
    error = stopped.exception()
    if error is None or not _TABLE_LOST.search(str(error)):
        return
    Checkpoint(spark, checkpoint).remove()
    log.warning(
        "%s no longer has the commits or files that query %s would read next: it reads the whole table again, and "
        "skips what it has written; days that maintenance has dropped unread are lost",
        table,
        stopped.name,
    )


def _position(checkpoint: Checkpoint, topic: str) -> TopicPosition | None:
    stored = checkpoint.position()
    if stored is None:
        return None
    return TopicPosition(_offsets(stored.source, topic), _offsets(stored.planned, topic), stored.read_ms)


def _offsets(source: Mapping[str, Any], topic: str) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in source.get(topic, {}).items()}
