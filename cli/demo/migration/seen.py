"""What ``headroom watch`` has in its tables about the migration."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.schemas.config import Settings
from headroom.schemas.keys import TopicPartition
from headroom.schemas.records import records
from headroom.schemas.tables import MIGRATION_PROGRESS
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query


@dataclass(frozen=True)
class SeenProgress:
    """One partition at the newest tick, by ``gold/migration_progress``.

    Attributes:
        topic: name of the topic.
        partition: number of the partition.
        verdict: verdict on it.
        reason: why, with the numbers.
        left_offsets: offsets below the end offset that are still to be written; None if unknown.
        expected_ms: when the end offset was to be reached as agreed, epoch milliseconds; None if unknown.
    """

    topic: str
    partition: int
    verdict: str
    reason: str
    left_offsets: int | None
    expected_ms: int | None

    @property
    def name(self) -> TopicPartition:
        """Topic and number of the partition."""
        return TopicPartition(self.topic, self.partition)


def newest_progress(settings: Settings, migration: str) -> tuple[SeenProgress, ...]:
    """Return the partitions of a migration at the newest tick that has some; empty if there is none yet.

    Args:
        settings: settings of the watched cluster, and of the tables.
        migration: name of the migration.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = (
        f"SELECT * FROM data WHERE migration = {sql_text(migration)} AND tick_ms = (SELECT max(tick_ms) FROM data) "
        "ORDER BY topic, partition"
    )
    return records(SeenProgress, query(settings.store.path, MIGRATION_PROGRESS.path, sql) or [])
