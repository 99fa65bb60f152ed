"""The agreement topic as the commands use it: read, or written by the only writer, with each change in the journal."""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict

from kafka import KafkaProducer
from kafka.errors import KafkaError

from headroom.cluster.connection.admin_connection import connection_options
from headroom.cluster.migration.agreements import UNREACHED, new_agreement_reader
from headroom.operations.journal.journalled_change import make_journalled_change
from headroom.operations.progress import OnText
from headroom.planning.migration.agreement import agreed_numbers
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.routing.agreement import AgreementReader, AgreementWriter, writer_options
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MIGRATIONS_TOPIC, PartitionAgreement

# Longest reading of the topic to its end, seconds.
READ_S = 60.0
_PATIENCE_S, _PAUSE_S = 10.0, 0.5
OwnAgreements = Mapping[TopicPartition, PartitionAgreement]


def new_writer(settings: Settings, migration: str, reader: AgreementReader) -> AgreementWriter:
    """Return the writer of a migration, not open yet.

    Raises:
        HeadroomError: no broker could be reached.
    """
    options = writer_options(connection_options(settings.cluster), migration)
    try:
        return AgreementWriter(migration, KafkaProducer(**options), reader)
    except (KafkaError, OSError) as error:
        rule = f"no broker could be reached ({type(error).__name__})"
        raise HeadroomError(f"cluster {settings.cluster.name}", rule, UNREACHED) from None


def own_agreements(reader: AgreementReader, migration: str | None) -> dict[TopicPartition, PartitionAgreement]:
    """Return what is agreed about the partitions of a migration, or of all if None, in the order of their names."""
    own = [one for one in reader.agreements.values() if migration is None or one.migration == migration]
    return {one.name: one for one in sorted(own, key=lambda one: one.name)}


def next_number(reader: AgreementReader, migration: str) -> int:
    """Return a number for an agreement of a migration that no router has agreed to, also not before a cancel.

    Args:
        reader: reader of the topic, at its end.
        migration: name of the migration.
    """
    agreed = agreed_numbers(reader.reports, migration).values()
    return 1 + max((reader.highest.get(migration, 0), *agreed))


class JournalledAgreements:
    """Writes what is agreed about a migration, each change with its rows in the journal.

    Args:
        settings: all settings.
        migration: name of the migration.
        command: command as the journal names it.
        reader: reader of the topic.
        on_note: gets a sentence if a change is not in the journal.
        open_writer: makes a writer, which is not open yet.
    """

    def __init__(
        self,
        settings: Settings,
        migration: str,
        command: str,
        reader: AgreementReader,
        on_note: OnText,
        open_writer: Callable[[], AgreementWriter],
    ) -> None:
        self._settings = settings
        self._migration = migration
        self._command = command
        self._on_note = on_note
        self._open_writer = open_writer
        self._writer: AgreementWriter | None = None
        self.reader = reader

    def open(self) -> None:
        """Fence other writers of the migration, and read what they agreed.

        Raises:
            HeadroomError: the topic cannot be read to its end, or the cluster does not answer.
        """
        self.close()
        self._writer = self._open_writer()
        self._writer.open(READ_S)

    def own(self) -> dict[TopicPartition, PartitionAgreement]:
        """Return what is agreed about the migration's partitions."""
        return own_agreements(self.reader, self._migration)

    def next_number(self) -> int:
        """Return the number of the migration's next agreement."""
        return next_number(self.reader, self._migration)

    def write(self, agreements: Sequence[PartitionAgreement], withdrawn: Sequence[PartitionAgreement] = ()) -> None:
        """Write changes of partitions, all of them or none.

        Raises:
            MigrationFencedError: another writer has taken over.
            HeadroomError: a change is not allowed, or the write failed.
        """
        writer, before = self._writer, self.reader.agreements
        if writer is None:
            raise RuntimeError("the writer is not open")
        steps = [_step(before.get((one.origin_cluster_id, one.name)), one, one.name) for one in agreements]
        steps += [_step(one, None, one.name) for one in withdrawn]
        make_journalled_change(
            self._settings, self._command, steps, lambda: writer.write(agreements, withdrawn), self._on_note
        )

    def close(self) -> None:
        """Close the writer."""
        writer, self._writer = self._writer, None
        if writer is not None:
            writer.close()


def _step(before: PartitionAgreement | None, after: PartitionAgreement | None, name: TopicPartition) -> JournalStep:
    old, new = ({} if one is None else asdict(one) for one in (before, after))
    changed = [key for key in new or old if old.get(key) != new.get(key)]
    texts = [
        json.dumps({key: values[key] for key in changed}, separators=(",", ":")) if values else None
        for values in (old, new)
    ]
    return JournalStep(StepKind.AGREE, StepState.INTENDED, str(name), *texts)


def _open(agreements: JournalledAgreements) -> None:
    """Open a writer. A broker may know a topic that was just created only a moment later."""
    until_s = time.monotonic() + _PATIENCE_S
    while True:
        try:
            agreements.open()
            return
        except HeadroomError:
            if agreements.reader.failure is not None or time.monotonic() > until_s:
                raise
        time.sleep(_PAUSE_S)


@contextmanager
def journalled_agreements(
    settings: Settings, migration: str, command: str, on_note: OnText
) -> Iterator[JournalledAgreements]:
    """Yield the open, only writer of a migration, and close it at the end.

    Args:
        settings: all settings.
        migration: name of the migration.
        command: command as the journal names it.
        on_note: gets a sentence if a change is not in the journal.

    Raises:
        HeadroomError: the topic cannot be read to its end, or the target does not answer.
    """
    reader = new_agreement_reader(settings.cluster)
    agreements = JournalledAgreements(
        settings, migration, command, reader, on_note, lambda: new_writer(settings, migration, reader)
    )
    try:
        _open(agreements)
        yield agreements
    finally:
        agreements.close()
        reader.close()


@contextmanager
def agreement_reader(settings: Settings, topics: Collection[str]) -> Iterator[AgreementReader | None]:
    """Yield a reader that has read all that is agreed; None if there is no agreement topic.

    Args:
        settings: all settings.
        topics: names of the target's topics.

    Raises:
        HeadroomError: the topic cannot be read to its end.
    """
    if MIGRATIONS_TOPIC not in topics:
        yield None
        return
    reader = new_agreement_reader(settings.cluster)
    try:
        reader.read_to_end(READ_S)
        yield reader
    finally:
        reader.close()


def require_partitions(own: OwnAgreements, migration: str) -> None:
    """Check that a migration has partitions.

    Raises:
        HeadroomError: it has none.
    """
    if not own:
        remedy = "Check the name: headroom migration status shows all migrations to this cluster."
        raise HeadroomError(f"migration {migration}", f"has no partitions in {MIGRATIONS_TOPIC}", remedy)
