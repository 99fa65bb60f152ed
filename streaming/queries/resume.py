"""Decision before a query starts: can it continue where its checkpoint stops, or has its source changed meanwhile?

By themselves Spark's sources fail again and again if records of a topic expired unread, or if maintenance removed
commits and files of a table before they were read. Of a topic that was created again they leave out all that was
written before the query looked.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Mapping
from typing import Any, NamedTuple, Protocol

from pyspark.sql import SparkSession
from pyspark.sql.streaming.query import StreamingQuery

from headroom.schemas.text.amounts import moment_text
from headroom.streaming.queries.checkpoint import StoredCheckpoint
from headroom.streaming.sources.topic_position import PartitionOffsets, TopicPosition, describe_lost

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

    def states(self, offsets: Mapping[int, int], *, all_partitions: bool) -> dict[int, PartitionOffsets] | None:
        """Return what the partitions have now; None if unknown.

        Args:
            offsets: partition to the position of a query.
            all_partitions: whether partitions that it has not seen count too.
        """
        ...


class Start(NamedTuple):
    """How a query starts.

    Attributes:
        offsets: partition to first offset for a new checkpoint, also one that a crash has left without a batch; None:
            the first record that is there. A checkpoint with a batch continues where it stops.
        has_gap: whether the last planned batch is unfinished, and some of its records have expired. It has to be
            finished without them first.
    """

    offsets: Mapping[int, int] | None = None
    has_gap: bool = False


def prepare_start(
    spark: SparkSession, topic: PartitionReader, checkpoint: str, query: str, *, all_partitions: bool
) -> Start:
    """Return how a query starts, and log the records that it will never read.

    Its checkpoint is replaced if records that it would read next have expired, and removed if the topic was created
    again.

    Args:
        spark: session.
        topic: the topic.
        checkpoint: folder or URL of the query's checkpoint.
        query: its name in messages.
        all_partitions: whether it reads all partitions, or those of its checkpoint.
    """
    stored = StoredCheckpoint(spark, checkpoint)
    known = stored.position()
    if known is None:
        return Start()
    position = TopicPosition(_offsets(known.source, topic.name), _offsets(known.planned, topic.name), known.read_ms)
    states = topic.states(position.offsets, all_partitions=all_partitions)
    if not states:
        return Start(position.offsets)
    if position.is_of_earlier_topic(states):
        stored.remove()
        _log_created_again(topic.name, query, position.read_ms)
        return Start()
    lost = position.lost(states)
    if not lost:
        return Start(position.starts(states))
    if not known.is_finished:
        _log_lost(topic.name, query, position.lost_of_planned(states))
        return Start(has_gap=True)
    _log_lost(topic.name, query, lost)
    stored.replace()
    return Start(position.starts(states))


def _log_created_again(topic: str, query: str, read_ms: int | None) -> None:
    log.warning(
        "topic %s was created again since query %s read it last%s: what the earlier one had after that is lost; "
        "it continues with the first record of the new topic",
        topic,
        query,
        "" if read_ms is None else f" at {moment_text(read_ms)}",
    )


def _log_lost(topic: str, query: str, lost: Mapping[int, tuple[int, int]]) -> None:
    if lost:
        log.warning(
            "topic %s: %s expired before query %s read them, and are lost; it continues with the first records that "
            "are there: raise retention.ms of the topic, or run this job more often",
            topic,
            describe_lost(lost),
            query,
        )


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
    StoredCheckpoint(spark, checkpoint).remove()
    log.warning(
        "%s no longer has the commits or files that query %s would read next: it reads the whole table again, and "
        "skips what it has written; days that maintenance has dropped unread are lost",
        table,
        stopped.name,
    )


def _offsets(source: Mapping[str, Any], topic: str) -> dict[int, int]:
    return {int(partition): int(offset) for partition, offset in source.get(topic, {}).items()}
