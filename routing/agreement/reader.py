"""Reader of the agreement topic."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

from kafka import KafkaConsumer, TopicPartition
from kafka.errors import KafkaError

from headroom.routing.clients import require_options
from headroom.schemas import keys
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import (
    MIGRATIONS_TOPIC,
    MigrationRecord,
    PartitionAgreement,
    RouterReport,
    read_migration_record,
)

# Longest time of one poll, milliseconds.
_POLL_MS = 100
# What the consumer has to be: an agreement of an open or aborted transaction is none.
_NEEDED = {"isolation_level": "read_committed", "enable_auto_commit": False, "group_id": None}
# A topic that was truncated or recreated must not be read on from somewhere else.
_NO_RESET = {"auto_offset_reset": "none"}


def reader_options(connection: Mapping[str, Any]) -> dict[str, Any]:
    """Return the options of the consumer of a reader.

    Args:
        connection: options with which a client connects to the target cluster.
    """
    return {**connection, **_NEEDED, **_NO_RESET}


PartitionKey = tuple[str, keys.TopicPartition]


class AgreementReader:
    """Reads the topic from its first record to its end, and then follows it.

    Not thread-safe, as its consumer.

    Attributes:
        agreements: what was agreed, by id of the origin cluster and partition.
        reports: reports of routers by name.
        highest: highest number of an agreement by migration, also of those that were withdrawn, as far as the topic
            still has them.
        failure: why nothing is read any more: a record that cannot be, or another topic; None if there is none.
    """

    def __init__(self, consumer: KafkaConsumer) -> None:
        """Take a consumer of the target cluster for this alone.

        Args:
            consumer: made with ``reader_options``.

        Raises:
            HeadroomError: the consumer has other options.
        """
        require_options(f"consumer of {MIGRATIONS_TOPIC}", consumer.config, _NEEDED)
        self._consumer = consumer
        self._partition = TopicPartition(MIGRATIONS_TOPIC, 0)
        self._found = False
        self._next_offset = 0
        self._end: int | None = None
        self._topic_id: Any = None
        self.highest: dict[str, int] = {}
        self.failure: HeadroomError | None = None
        self.agreements: dict[PartitionKey, PartitionAgreement] = {}
        self.reports: dict[str, RouterReport] = {}

    @property
    def at_end(self) -> bool:
        """Whether all records were read that were in the topic when its end was last looked up."""
        return self._end is not None and self._next_offset >= self._end and self.failure is None

    def has_read(self, offset: int) -> bool:
        """Return whether the record at an offset was read, or is none."""
        return self._next_offset > offset

    def exists(self) -> bool:
        """Return whether the topic exists on the target cluster.

        Raises:
            KafkaError: the cluster did not answer.
        """
        # Looks up all topics, because looking up this one might create it.
        return self._found or MIGRATIONS_TOPIC in self._consumer.topics()

    def read_to_end(self, timeout_s: float) -> None:
        """Read all records that are in the topic now.

        Args:
            timeout_s: longest time, seconds.

        Raises:
            HeadroomError: the topic does not exist or is another one than before, its end was not reached in time, or a
                record cannot be read.
        """
        deadline = time.monotonic() + timeout_s
        try:
            self._find_topic()
            self._end = None
            self._end = self._looked_up_end()
            while not self.at_end and time.monotonic() < deadline:
                self._poll(_POLL_MS)
        except KafkaError as error:
            raise self._not_at_end(type(error).__name__) from error
        if not self.at_end:
            raise self._not_at_end(f"not within {timeout_s:g} s")

    def poll(self, timeout_s: float = 0.0) -> bool:
        """Read records that are new, and return whether there were any.

        A change of several partitions is complete only after ``read_to_end``.

        Args:
            timeout_s: longest wait for one, seconds.

        Raises:
            HeadroomError: the end was never reached, or a record cannot be read.
        """
        if self._end is None:
            raise self._not_at_end("it was not read yet")
        return self._poll(int(timeout_s * 1000))

    def close(self) -> None:
        """Close the consumer."""
        self._consumer.close()

    def _find_topic(self) -> None:
        if self._found:
            return
        if not self.exists():
            raise HeadroomError(
                MIGRATIONS_TOPIC,
                "the topic does not exist on the target cluster",
                "Create it first, by `create_migrations_topic` of headroom.routing.agreement.",
            )
        partitions = self._consumer.partitions_for_topic(MIGRATIONS_TOPIC) or {0}
        if len(partitions) > 1:
            rule = f"has {len(partitions)} partitions, so the order of its records is unknown"
            raise HeadroomError(
                f"topic {MIGRATIONS_TOPIC}", rule, "Create it again with one, before anything is agreed."
            )
        self._consumer.assign([self._partition])
        self._consumer.seek_to_beginning(self._partition)
        self._found = True

    def _looked_up_end(self) -> int:
        end: int = self._consumer.end_offsets([self._partition])[self._partition]
        topic_id = self._consumer._cluster.topic_id(MIGRATIONS_TOPIC)
        if self._topic_id is not None and topic_id not in (None, self._topic_id):
            rule = f"was recreated: its id is {topic_id}, not {self._topic_id}, and what was agreed is gone"
            remedy = "Find out by whom. Start the routers again once the migrations are agreed about again."
            self.failure = HeadroomError(f"topic {MIGRATIONS_TOPIC}", rule, remedy)
            raise self.failure
        self._topic_id = self._topic_id or topic_id
        if end < self._next_offset:
            # A new leader may be behind for a moment.
            raise self._not_at_end(f"it ends at offset {end}, and was read up to {self._next_offset}")
        return end

    def _poll(self, timeout_ms: int) -> bool:
        if self.failure is not None:
            raise self.failure
        was_at_end = self.at_end
        records = self._consumer.poll(timeout_ms=timeout_ms).get(self._partition, [])
        try:
            for record in records:
                self._keep(read_migration_record(record.offset, record.key, record.value))
        except HeadroomError as error:
            # The records behind it may change what it says.
            self.failure = error
            raise
        if records or not was_at_end:
            # Also past what is no record: ends of transactions. Not with every poll, because it takes as long as one.
            self._next_offset = self._consumer.position(self._partition) or 0
        return bool(records)

    def _keep(self, record: MigrationRecord) -> None:
        if isinstance(record, PartitionAgreement):
            self.agreements[record.origin_cluster_id, record.name] = record
            self.highest[record.migration] = max(record.number, self.highest.get(record.migration, 0))
        elif isinstance(record, RouterReport):
            self.reports[record.router] = record
        elif isinstance(record.removes, str):
            self.reports.pop(record.removes, None)
        else:
            self.agreements.pop(record.removes, None)

    def _not_at_end(self, why: str) -> HeadroomError:
        rule = f"the topic was not read to its end ({why})"
        return HeadroomError(MIGRATIONS_TOPIC, rule, "See that the target cluster answers; then try again.")
