"""Rows of the message kind ``migration_syncs``: offset syncs of MirrorMaker that are to be kept."""

from __future__ import annotations

from headroom.cluster.collector.migration.rows import MigrationFacts, Row, is_mirrored
from headroom.planning.migration.mirrors.sync_trail import KeptSync, SyncTrails
from headroom.schemas.bounds import MOST_IN_ARRAY
from headroom.schemas.migrations import PartitionAgreement

# In one tick: 0.5 MB before compression. The others follow in the next ones.
_MOST_ROWS = 2_000


def sync_rows(facts: MigrationFacts, trails: SyncTrails, now_ms: int) -> list[Row]:
    """Return the syncs that are not confirmed yet, one per row, in the order of names and then of their topic.

    A sync whose clusters and topics are not known by their ids could be taken for one of others later, so it waits.

    Args:
        facts: what is known at the tick.
        trails: the syncs.
        now_ms: time of the tick, epoch milliseconds.
    """
    followed = sorted((own for own in facts.agreements if is_mirrored(own)), key=lambda own: own.name)
    most = max(1, min(MOST_IN_ARRAY, _MOST_ROWS // max(1, len(followed))))
    rows: list[Row] = []
    for agreement in followed:
        ids = _ids(facts, agreement)
        if trails.topic_id is not None and ids is not None and len(rows) < _MOST_ROWS:
            waiting = trails.waiting(agreement.name, most, now_ms)
            rows += [_row(agreement, sync, trails.topic_id, ids) for sync in waiting if sync.leader_epoch is not None]
    return rows


def _ids(facts: MigrationFacts, agreement: PartitionAgreement) -> Row | None:
    """Return the ids of both clusters and of the topics on them; None if one is unknown, or not the agreed one."""
    ids: Row = {}
    for side, reading, agreed_id in (
        ("origin", facts.origin.now, agreement.origin_cluster_id),
        ("target", facts.target.now, agreement.target_cluster_id),
    ):
        topic_id = None if reading is None else reading.topic_ids.get(agreement.topic)
        if reading is None or reading.cluster_id != agreed_id or topic_id is None:
            return None
        ids |= {f"{side}_cluster_id": agreed_id, f"{side}_topic_id": topic_id}
    return ids


def _row(agreement: PartitionAgreement, sync: KeptSync, topic_id: str, ids: Row) -> Row:
    record = sync.record
    return {
        "topic": agreement.topic,
        "partition": agreement.partition,
        "migration": agreement.migration,
        "sync_topic_id": topic_id,
        "sync_leader_epoch": sync.leader_epoch,
        "sync_offset": record.offset,
        "after_offset": sync.after,
        "origin_offset": record.origin,
        "target_offset": record.target,
        "written_ms": record.written_ms,
        **ids,
    }
