"""Records of one partition in order, from an offset to another, in bounded memory."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any, NamedTuple

from kafka import KafkaConsumer
from kafka import TopicPartition as KafkaPartition
from kafka.errors import KafkaError

from headroom.cluster.connection.admin_connection import connection_options
from headroom.cluster.connection.bootstrap import connect_to_first
from headroom.cluster.connection.new_client import create_no_topics, new_client
from headroom.cluster.secrets import section_of
from headroom.planning.migration.mirrors.record_digest import RecordDigest, record_digest
from headroom.schemas.config import KafkaSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

_POLL_MS, _RECORDS_A_POLL = 500, 2_000
# Bytes of one partition in one answer, at least one batch: with the answer that is worked on, twice that is in memory.
_FETCH_BYTES = 4 * 1024 * 1024


class LogRecord(NamedTuple):
    """A record as a consumer gets it.

    Attributes:
        offset: its offset.
        key: its key; None without one.
        value: its value; None for a tombstone.
        digest: what tells it from other records.
        timestamp_ms: its timestamp, epoch milliseconds.
    """

    offset: int
    key: bytes | None
    value: bytes | None
    digest: RecordDigest
    timestamp_ms: int


class RecordReader:
    """Reads records of a cluster on a connection of its own, without a group.

    Args:
        consumer: a connected consumer, which assigns and seeks.
        subject: the cluster, for errors.
        patience_s: longest wait for the next record, seconds.
        clock: monotonic seconds.
    """

    def __init__(
        self, consumer: Any, subject: str, patience_s: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._consumer = consumer
        self._subject = subject
        self._patience_s = patience_s
        self._clock = clock

    def read(self, name: TopicPartition, begin: int, end: int) -> Iterator[LogRecord]:
        """Yield the records of a partition from an offset on, and before another one, in order.

        Offsets without a record, such as those of transaction markers and compacted records, are passed over.

        Args:
            name: partition.
            begin: first offset.
            end: offset at which reading ends, at most the end of the log.

        Raises:
            HeadroomError: the records could not be read, or some of them were deleted meanwhile.
        """
        # kafka-python takes only its own type.
        consumer, partition = self._consumer, KafkaPartition(*name)
        try:
            consumer.assign([partition])
            consumer.seek(partition, begin)
            until_s = self._clock() + self._patience_s
            at = begin
            while at < end:
                records = consumer.poll(timeout_ms=_POLL_MS, max_records=_RECORDS_A_POLL).get(partition, ())
                for record in records:
                    if record.offset >= end:
                        return
                    yield _log_record(record)
                now = records[-1].offset + 1 if records else consumer.position(partition, timeout_ms=_POLL_MS)
                if now is not None and now > at:
                    at, until_s = now, self._clock() + self._patience_s
                elif self._clock() > until_s:
                    rule = f"no record after offset {at} came within {self._patience_s:g} s"
                    remedy = "See that the leader of the partition is up, and that this user may READ the topic."
                    raise HeadroomError(f"{name} on {self._subject}", rule, remedy)
        except KafkaError as error:
            rule = f"cannot be read ({type(error).__name__})"
            remedy = "See that this user may READ the topic, and that retention does not delete it; then run it again."
            raise HeadroomError(f"{name} on {self._subject}", rule, remedy) from None


def _log_record(record: Any) -> LogRecord:
    digest = record_digest(record.key, record.value, record.headers or (), record.timestamp)
    return LogRecord(record.offset, record.key, record.value, digest, record.timestamp)


@contextmanager
def record_reader(
    kafka: KafkaSettings, subject: str, committed: bool, patience_s: float = 0.0
) -> Iterator[RecordReader]:
    """Yield a reader of records, and close its connection at the end.

    It follows a partition to a new leader. That takes as long as a request to the one before may, and a switch.

    Args:
        kafka: the cluster.
        subject: the cluster, for errors.
        committed: whether records of transactions that were aborted are left out.
        patience_s: how much longer than a request may take it waits for the next record, seconds.

    Raises:
        HeadroomError: no broker could be reached.
    """
    options = connection_options(kafka, section_of(kafka)) | {
        "group_id": None,
        "enable_auto_commit": False,
        "auto_offset_reset": "none",
        "isolation_level": "read_committed" if committed else "read_uncommitted",
        "max_partition_fetch_bytes": _FETCH_BYTES,
    }
    servers, timeout_s = options.pop("bootstrap_servers"), kafka.request_timeout_ms / 1000
    try:
        consumer = connect_to_first(
            servers,
            lambda server: new_client(KafkaConsumer, bootstrap_servers=[server], **options),
            KafkaConsumer.close,
            timeout_s,
        )
    except (KafkaError, OSError, ValueError) as error:
        rule = f"no broker could be reached ({type(error).__name__})"
        raise HeadroomError(subject, rule, "See that its brokers are up, then run it again.") from None
    with closing(consumer):
        create_no_topics(consumer._client.cluster)
        yield RecordReader(consumer, subject, timeout_s + patience_s)
