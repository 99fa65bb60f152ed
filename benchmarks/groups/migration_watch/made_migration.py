"""Readings of two clusters with a large migration, made for any time."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from headroom.cluster.collector.migration.rows import ClusterFacts, MigrationFacts
from headroom.cluster.migration.cluster_reader import ClusterReading
from headroom.planning.migration.readings import LogOffsets, TopicRules
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationStatus, PartitionAgreement, RouterReport

ORIGIN, TARGET = "origin-id", "target-id"
_MIGRATION = "made"
_TOPICS, _GROUPS, _TOPICS_OF_A_GROUP = 20, 20, 2
_RULES = TopicRules("delete", 86_400_000, -1, 2, False)
_PRODUCERS, _CONSUMERS = ("writer-1", "writer-2"), ("reader-1",)
_EPOCH = 3
# Written before the first reading, offsets; and how far ahead the end offset was then, seconds.
_WRITTEN, _PREPARE_S = 100_000, 3600
# Readings that rates are measured from are this much older than those of the tick, seconds.
_LOG_RATE_S, _GROUP_RATE_S = 10.0, 30.0


@dataclass(frozen=True)
class MadeMigration:
    """A migration of as many partitions on each of 20 topics. Nothing goes wrong in it.

    Attributes:
        partitions: number of partitions.
        begin_ms: time of the second 0, epoch milliseconds.
    """

    partitions: int
    begin_ms: int

    def facts(self, at_s: float) -> MigrationFacts:
        """Return what a collector knows at a time, seconds; from second 30 on."""
        origin, target = (self._facts(cluster, at_s) for cluster in (ORIGIN, TARGET))
        assert origin.now is not None
        return MigrationFacts(
            self._agreements,
            self._reports,
            origin,
            target,
            target.now,
            {(ORIGIN, name): {_EPOCH: log.end or 0} for name, log in origin.now.logs.items()},
        )

    @cached_property
    def _names(self) -> list[TopicPartition]:
        return [TopicPartition(f"topic-{n % _TOPICS}", n // _TOPICS) for n in range(self.partitions)]

    @cached_property
    def _topics(self) -> list[str]:
        return sorted({name.topic for name in self._names})

    @cached_property
    def _readers(self) -> dict[str, list[TopicPartition]]:
        """Partitions by the group that reads them."""
        topics = {
            f"group-{group}": {f"topic-{(group + more) % _TOPICS}" for more in range(_TOPICS_OF_A_GROUP)}
            for group in range(_GROUPS)
        }
        return {group: [name for name in self._names if name.topic in own] for group, own in topics.items()}

    @cached_property
    def _agreements(self) -> list[PartitionAgreement]:
        return [
            PartitionAgreement(
                _MIGRATION,
                1,
                ORIGIN,
                TARGET,
                name.topic,
                name.partition,
                end_offset=_WRITTEN + _rate(name) * _PREPARE_S,
                target_base_offset=0,
                status=MigrationStatus.MIGRATING.value,
                routers=(*_PRODUCERS, *_CONSUMERS),
                origin_position=_WRITTEN,
                origin_offsets_per_s=float(_rate(name)),
                origin_read_ms=self.begin_ms,
            )
            for name in self._names
        ]

    @cached_property
    def _reports(self) -> dict[str, RouterReport]:
        agreed = {_MIGRATION: 1}
        producers = [RouterReport(name, "i", "producer", "all", agreed=agreed) for name in _PRODUCERS]
        consumers = [RouterReport(name, "i", "consumer", agreed=agreed) for name in _CONSUMERS]
        return {report.router: report for report in (*producers, *consumers)}

    def _facts(self, cluster: str, at_s: float) -> ClusterFacts:
        now, before, long_before = (self._reading(cluster, at_s - ago_s) for ago_s in (0, _LOG_RATE_S, _GROUP_RATE_S))
        return ClusterFacts(now, before, long_before, last=now)

    def _reading(self, cluster: str, at_s: float) -> ClusterReading:
        read_ms = self.begin_ms + round(1000 * at_s)
        is_origin = cluster == ORIGIN
        ends = {name: _WRITTEN + round(_rate(name) * at_s) if is_origin else 0 for name in self._names}
        newest_ms = read_ms if is_origin else None
        return ClusterReading(
            at_s,
            read_ms,
            cluster,
            {name: LogOffsets(0, end, end, newest_ms, end - 1 if is_origin else None) for name, end in ends.items()},
            {topic: f"{topic}-{cluster}" for topic in self._topics},
            dict.fromkeys(self._names, _EPOCH),
            {name: {_EPOCH: end} for name, end in ends.items()} if is_origin else {},
            dict.fromkeys(self._topics, _RULES),
            dict.fromkeys(self._readers, True),
            # Readers are a minute behind.
            {g: {name: ends[name] - 60 * _rate(name) for name in own} for g, own in self._readers.items()}
            if is_origin
            else {},
        )


def _rate(name: TopicPartition) -> int:
    """Return the offsets per second that are written to a partition, and read by each of its groups."""
    return 1000 + name.partition % 7
