"""Rows of the message kind ``migration_syncs``: offset syncs of MirrorMaker that are to be kept."""

from __future__ import annotations

import random
from collections.abc import Sequence
from functools import partial
from operator import itemgetter

from headroom.cluster.collector.migration.rows import MigrationFacts, Row, is_mirrored
from headroom.planning.migration.mirrors.sync_record import KeptSync
from headroom.planning.migration.mirrors.sync_trail import SyncTrails
from headroom.schemas.bounds import MOST_IN_ARRAY
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement

# In one tick: 0.5 MB before compression. The others follow in the next ones.
_MOST_ROWS = 2_000
_IN_ORDER = itemgetter("topic", "partition", "sync_offset")


def sync_rows(facts: MigrationFacts, trails: SyncTrails, now_ms: int) -> list[Row]:
    """Return the syncs that are not confirmed yet, one per row, in the order of names and then of their topic.

    A sync whose clusters and topics are not known by their ids could be taken for one of others later, so it waits.
    Those that groups need beside the ones 30 s apart come after these.

    Args:
        facts: what is known at the tick.
        trails: the syncs.
        now_ms: time of the tick, epoch milliseconds.
    """
    followed = sorted((own for own in facts.agreements if is_mirrored(own)), key=lambda own: own.name)
    if trails.topic_id is None or not followed:
        return []
    most = max(1, min(MOST_IN_ARRAY, _MOST_ROWS // len(followed)))
    known = _Ids(facts)
    rows: list[Row] = []
    for agreement in followed:
        ids = known.of(agreement)
        if ids is not None and len(rows) < _MOST_ROWS:
            rows += _rows(agreement, trails.waiting(agreement.name, most, now_ms), trails.topic_id, ids)
    # Others first in each tick, because there may be more than one has room for. By chance, because steps may come back
    # to the same ones with each tick.
    first = random.Random(now_ms).randrange(len(followed))
    for agreement in [*followed[first:], *followed[:first]]:
        ids = known.of(agreement)
        if ids is not None and len(rows) < _MOST_ROWS:
            places = partial(_places, facts, agreement.name)
            rows += _rows(agreement, trails.between(agreement.name, most, now_ms, places), trails.topic_id, ids)
    return sorted(rows, key=_IN_ORDER)


def _places(facts: MigrationFacts, name: TopicPartition) -> Sequence[int] | None:
    """Return the committed offsets of the groups at a partition of the origin, in order; None if unknown."""
    now = facts.origin.now
    # A reading from before the partition was agreed, or while it was shielded, has none of its groups.
    if now is None or now.groups is None or name not in now.logs:
        return None
    return sorted(own[name] for own in now.committed.values() if name in own)


class _Ids:
    """Ids of both clusters and of the topics on them, once for all partitions of a topic."""

    def __init__(self, facts: MigrationFacts) -> None:
        self._facts = facts
        self._known: dict[tuple[str, str, str], Row | None] = {}

    def of(self, agreement: PartitionAgreement) -> Row | None:
        """Return the ids for a partition; None if one is unknown, or not the agreed one."""
        key = agreement.topic, agreement.origin_cluster_id, agreement.target_cluster_id
        if key not in self._known:
            self._known[key] = _ids(self._facts, agreement)
        return self._known[key]


def _ids(facts: MigrationFacts, agreement: PartitionAgreement) -> Row | None:
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


def _rows(agreement: PartitionAgreement, syncs: Sequence[KeptSync], topic_id: str, ids: Row) -> list[Row]:
    return [_row(agreement, sync, topic_id, ids) for sync in syncs if sync.leader_epoch is not None]


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
