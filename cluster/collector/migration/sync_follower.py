"""Follows the topic of MirrorMaker's offset syncs on a thread of its own: each reading has only what is new."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from itertools import islice
from typing import NamedTuple

from headroom.cluster.collector.clock import Clock
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.cluster.migration.records import RecordReader
from headroom.cluster.migration.sync_topic import SyncPlace, find_sync_topic, sync_records
from headroom.planning.migration.mirrors.sync_record import SyncReading
from headroom.planning.migration.readings import MigratingTopic
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# Syncs in one reading: 0.2 s of a core. A topic with more is read in several.
_MOST_SYNCS = 10_000
# The topic may be created, or MirrorMaker may be set to keep it on the other cluster. To look asks both for all topics.
_LOOK_AGAIN_S = 60.0


class _Position(NamedTuple):
    """Where the next reading begins.

    Attributes:
        name: partition of the syncs.
        topic_id: id of its topic; None before Kafka 2.8.
        leader_epoch: epoch of its leader at the last reading; None if unknown.
        offset: next offset.
    """

    name: TopicPartition
    topic_id: str | None
    leader_epoch: int | None
    offset: int


class SyncFollower:
    """Reads the offset syncs between two clusters; one reading at a time.

    Args:
        connect_origin: returns the origin, not yet connected.
        connect_target: returns the target, not yet connected.
        clock: clock of the readings.
        most_syncs: most syncs in one reading.
    """

    def __init__(
        self,
        connect_origin: Callable[[], MigrationCluster],
        connect_target: Callable[[], MigrationCluster],
        clock: Clock,
        most_syncs: int = _MOST_SYNCS,
    ) -> None:
        self._connects = (connect_origin, connect_target)
        self._clock = clock
        self._most_syncs = most_syncs
        self._open = contextlib.ExitStack()
        self._clusters: list[MigrationCluster] = []
        self._place: SyncPlace | None = None
        self._looked_s = 0.0
        # Why the topic is on neither cluster, as it was when this was last looked for.
        self._nowhere: HeadroomError | None = None
        self._reader: RecordReader | None = None
        self._position: _Position | None = None
        self._names: frozenset[TopicPartition] = frozenset()

    def read(self, names: frozenset[TopicPartition]) -> SyncReading:
        """Return the syncs that are new since the last reading.

        It begins again if the topic was truncated or created again, or partitions have come whose syncs were passed
        over. After an error the next one connects again, and repeats the reading.

        Args:
            names: partitions that are followed, by their names on the origin.

        Raises:
            HeadroomError: the topic is on neither cluster, or could not be read, or a record in it is not an offset
                sync.
        """
        try:
            reading = self._read(names)
        except BaseException:
            self.close()
            raise
        self._names = names
        return reading

    def close(self) -> None:
        """Close the connections. The position stays."""
        opened, self._open = self._open, contextlib.ExitStack()
        self._clusters, self._place, self._reader = [], None, None
        with contextlib.suppress(Exception):
            opened.close()

    def _read(self, names: frozenset[TopicPartition]) -> SyncReading:
        place = self._find()
        topic = place.topic_of(place.cluster.topics([place.name.topic]))
        start, end = place.range_of(topic)
        known = self._position if names <= self._names else None
        if known is not None and not _continues(known, place, topic, end):
            known = None
        begin = start if known is None else max(start, known.offset)
        records = []
        if begin < end:
            if self._reader is None:
                self._reader = self._open.enter_context(place.cluster.reader())
            records = list(islice(sync_records(self._reader, place.name, begin, end), self._most_syncs))
            place.require_same(topic)
        is_all = len(records) < self._most_syncs
        read_to = max(begin, end) if is_all else records[-1].offset + 1
        epoch = topic.leader_epochs.get(place.name.partition)
        self._position = _Position(place.name, topic.topic_id, epoch, read_to)
        return SyncReading(names, topic.topic_id, epoch, known is None, begin, read_to, is_all, records)

    def _find(self) -> SyncPlace:
        now_s = self._clock.elapsed_s()
        is_recent = now_s - self._looked_s <= _LOOK_AGAIN_S
        if self._place is not None and is_recent:
            return self._place
        if self._nowhere is not None and is_recent:
            raise self._nowhere.with_traceback(None)
        if not self._clusters:
            self._clusters = [self._open.enter_context(connect()) for connect in self._connects]
        origin, target = self._clusters
        topics = origin.topics(), target.topics()
        self._looked_s, self._nowhere = now_s, None
        try:
            place = find_sync_topic(origin, topics[0], target, topics[1])
        except HeadroomError as error:
            self._nowhere = error
            raise
        if place != self._place:
            self._place, self._reader = place, None
        return place


def _continues(known: _Position, place: SyncPlace, topic: MigratingTopic, end: int) -> bool:
    """Return whether a topic has the log that was read before.

    A leader that lost records has other ones at their offsets. Its log then diverges where the epoch ends in it.
    """
    epoch = topic.leader_epochs.get(place.name.partition)
    if (known.name, known.topic_id) != (place.name, topic.topic_id) or end < known.offset:
        return False
    if known.leader_epoch is None or known.leader_epoch == epoch:
        return True
    ends = place.cluster.epoch_ends({place.name.topic: topic}, {place.name: [known.leader_epoch]})
    epoch_end = ends.get(place.name, {}).get(known.leader_epoch)
    return epoch_end is not None and epoch_end >= known.offset
