"""The agreement topic: its creation, its reader and its writer."""

from headroom.routing.agreement.reader import AgreementReader, reader_options
from headroom.routing.agreement.topic import create_migrations_topic
from headroom.routing.agreement.writer import AgreementWriter, MigrationFencedError, writer_options

__all__ = [
    "AgreementReader",
    "AgreementWriter",
    "MigrationFencedError",
    "create_migrations_topic",
    "reader_options",
    "writer_options",
]
