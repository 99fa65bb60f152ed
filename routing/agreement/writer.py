"""Writer of agreements."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping
from typing import Any

from kafka import KafkaProducer
from kafka.errors import InvalidProducerEpochError, KafkaError, ProducerFencedError

from headroom.planning.migration.agreement import refused_change
from headroom.routing.agreement.reader import AgreementReader, PartitionKey
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import MIGRATIONS_TOPIC, PartitionAgreement

# An open transaction of a writer that died holds back all readers for at most this time.
_TRANSACTION_TIMEOUT_MS = 10_000
# Longest reading before a change, seconds.
_READ_S = 10.0
_PAUSE_S = 0.02
_FENCED = (ProducerFencedError, InvalidProducerEpochError)


class MigrationFencedError(HeadroomError):
    """Another writer of the migration has taken over."""


def writer_options(connection: Mapping[str, Any], migration: str) -> dict[str, Any]:
    """Return the options of the producer of a writer.

    Args:
        connection: options with which a client connects to the target cluster.
        migration: name of the migration.
    """
    return {
        **connection,
        "transactional_id": f"headroom-migration-{migration}",
        "transaction_timeout_ms": _TRANSACTION_TIMEOUT_MS,
    }


class AgreementWriter:
    """The only writer of a migration: whoever opens a second one fences the first."""

    def __init__(self, migration: str, producer: KafkaProducer, reader: AgreementReader) -> None:
        """Describe a writer; ``open`` begins.

        Args:
            migration: name of the migration.
            producer: made with ``writer_options``.
            reader: reader of the same topic.
        """
        self._migration = migration
        self._producer = producer
        self._reader = reader
        # Last record that was written.
        self._written: int | None = None

    def open(self, timeout_s: float) -> None:
        """Fence other writers of this migration, and then read what they agreed.

        Args:
            timeout_s: longest time of the reading, seconds.

        Raises:
            HeadroomError: the topic cannot be read to its end, or the cluster does not answer.
        """
        try:
            self._producer.init_transactions()
        except KafkaError as error:
            raise self._error_of(error) from error
        self._reader.read_to_end(timeout_s)

    def write(self, agreements: Iterable[PartitionAgreement], withdrawn: Iterable[PartitionAgreement] = ()) -> None:
        """Write changes of partitions, all of them or none.

        Args:
            agreements: partitions as they are from now on.
            withdrawn: planned partitions that leave the migration.

        Raises:
            MigrationFencedError: another writer has taken over, or has changed one of the partitions.
            HeadroomError: a change is not allowed, or the write failed.
        """
        changes: dict[PartitionKey, tuple[bytes, PartitionAgreement | None]] = {
            (gone.origin_cluster_id, gone.name): (gone.key(), None) for gone in withdrawn
        }
        changes |= {(new.origin_cluster_id, new.name): (new.key(), new) for new in agreements}
        for key, (_, after) in changes.items():
            self._check(key, after)
        self._require_unchanged(changes)
        try:
            self._producer.begin_transaction()
            answers = [
                self._producer.send(MIGRATIONS_TOPIC, key=key, value=after and after.value(), partition=0)
                for key, after in changes.values()
            ]
            # A record that failed has to end this before its transaction is committed without it.
            self._producer.flush()
            offsets = [answer.get(timeout=0).offset for answer in answers]
            self._producer.commit_transaction()
        except KafkaError as error:
            self._abort()
            raise self._error_of(error) from error
        self._written = max(offsets, default=self._written)
        for partition, (_, after) in changes.items():
            if after is None:
                self._reader.agreements.pop(partition, None)
            else:
                self._reader.agreements[partition] = after

    def close(self) -> None:
        """Close the producer; the reader is its owner's."""
        self._producer.close()

    def _check(self, key: PartitionKey, after: PartitionAgreement | None) -> None:
        before = self._reader.agreements.get(key)
        why = refused_change(before, after)
        if after is not None and after.migration != self._migration:
            why = f"it is of the migration {after.migration}"
        if why is not None:
            rule = f"this change of the migration {self._migration} is not allowed: {why}"
            raise HeadroomError(str(key[1]), rule, "See what is agreed now, and agree on something else.")

    def _require_unchanged(self, keys: Iterable[PartitionKey]) -> None:
        """Check that nobody else has changed the partitions since they were read: a writer of another migration may."""
        known = {key: self._reader.agreements.get(key) for key in keys}
        deadline = time.monotonic() + _READ_S
        self._reader.read_to_end(_READ_S)
        # Readers get a transaction a moment after it is answered.
        while self._written is not None and not self._reader.has_read(self._written):
            if time.monotonic() > deadline:
                rule, remedy = "its last change cannot be read yet", "See that the target answers; then try again."
                raise HeadroomError(f"migration {self._migration}", rule, remedy)
            time.sleep(_PAUSE_S)
            self._reader.read_to_end(_READ_S)
        for key, before in known.items():
            if self._reader.agreements.get(key) != before:
                rule = f"another writer has changed {key[1]} meanwhile"
                raise MigrationFencedError(f"migration {self._migration}", rule, "Let only one run of it continue.")

    def _abort(self) -> None:
        try:
            self._producer.abort_transaction()
        except KafkaError:
            # Fenced, or without a connection: the cluster aborts it.
            return

    def _error_of(self, error: KafkaError) -> HeadroomError:
        if isinstance(error, _FENCED):
            rule = "another writer of this migration has taken over"
            return MigrationFencedError(f"migration {self._migration}", rule, "Let only one run of it continue.")
        rule = f"the agreement was not written ({type(error).__name__})"
        return HeadroomError(
            f"migration {self._migration}", rule, "Read what is agreed now before it is written again."
        )
