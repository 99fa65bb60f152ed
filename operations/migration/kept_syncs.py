"""Offset syncs that the record job has kept in ``silver/migration_syncs``, read without Spark."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from typing import NamedTuple

from headroom.planning.migration.mirrors.sync_record import SyncRecord
from headroom.planning.migration.mirrors.sync_trail import linked_to
from headroom.schemas.config import Settings
from headroom.schemas.tables import MIGRATION_SYNCS
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query


class SyncIdentity(NamedTuple):
    """Values of the columns by which a kept sync is one of a partition, its topics and its clusters as they are now.

    Attributes:
        topic: topic on the origin.
        partition: partition.
        sync_topic_id: id of the topic of the syncs.
        origin_cluster_id: id of the origin.
        target_cluster_id: id of the target.
        origin_topic_id: id of the topic on the origin.
        target_topic_id: id of its mirror on the target.
    """

    topic: str
    partition: int
    sync_topic_id: str | None
    origin_cluster_id: str | None
    target_cluster_id: str | None
    origin_topic_id: str | None
    target_topic_id: str | None


class KeptSyncs:
    """Offset syncs of the mirrors to one cluster.

    Args:
        store_path: ``store.path``.
        cluster: name of the target.
    """

    def __init__(self, store_path: str, cluster: str) -> None:
        self._store_path = store_path
        self._cluster = cluster

    def before(
        self,
        identity: SyncIdentity,
        first: SyncRecord,
        offset: int,
        epoch_ends: Callable[[Collection[int]], Mapping[int, int]],
    ) -> list[tuple[int, int]]:
        """Return the syncs of a partition from the nearest one for a reader up to those in the topic, in its order.

        Args:
            identity: what the syncs are of. Without all ids none is one of it for certain.
            first: the partition's first sync in the topic.
            offset: offset of the reader on the origin.
            epoch_ends: returns where leader epochs end in the present log of the topic. Syncs beyond it are not in that
                log any more, and other ones may have their offsets.

        Returns:
            Offsets on the origin and on the target. Empty if there is none, if a rewind was after them, or if one may
            have been missed.

        Raises:
            HeadroomError: the table cannot be read.
        """
        if None in identity:
            return []
        values = {"cluster": self._cluster} | identity._asdict()
        is_of = " AND ".join(
            f"{name} = {value if isinstance(value, int) else sql_text(str(value))}" for name, value in values.items()
        )
        epochs = self._rows(f"SELECT DISTINCT sync_leader_epoch AS epoch FROM data WHERE {is_of}")
        ends = epoch_ends([row["epoch"] for row in epochs]) if epochs else {}
        if not ends:
            return []
        in_log = " OR ".join(f"(sync_leader_epoch = {epoch} AND sync_offset < {end})" for epoch, end in ends.items())
        valid = f"{is_of} AND ({in_log})"
        nearest = (
            f"SELECT max(sync_offset) FROM data WHERE {valid} AND origin_offset <= {offset} "
            f"AND sync_offset < {first.offset}"
        )
        rows = self._rows(
            "SELECT sync_offset, after_offset, origin_offset, target_offset FROM data "
            f"WHERE {valid} AND sync_offset >= ({nearest})"
        )
        return linked_to(
            [(r["sync_offset"], r["after_offset"], r["origin_offset"], r["target_offset"]) for r in rows], first.offset
        )

    def _rows(self, sql: str) -> list[dict[str, int]]:
        return query(self._store_path, MIGRATION_SYNCS.path, sql) or []


def kept_syncs(settings: Settings) -> KeptSyncs:
    """Return the kept offset syncs of the settings' cluster and store."""
    return KeptSyncs(settings.store.path, settings.cluster.name)
