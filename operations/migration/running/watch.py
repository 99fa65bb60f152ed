"""What a run sees of both clusters, again and again: the target first, then the routers' reports, then the origin."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace

from headroom.cluster.migration.cluster_reader import (
    ClusterReader,
    ClusterReading,
    wanted_on_origin,
    wanted_on_target,
)
from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.operations.migration.running.mirror_end import MirrorEnd
from headroom.planning.migration.readings import LogOffsets, MigratingTopic
from headroom.planning.migration.run.growth import LogGrowth
from headroom.planning.migration.run.planned_step import reading_of
from headroom.planning.migration.run.seen import OriginReading, SeenPartition
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, MigrationStatus, PartitionAgreement
from headroom.streaming.clock import now_ms

Agreements = Mapping[TopicPartition, PartitionAgreement]
# An origin that has not answered for so long is down. A leader switch after a broker was killed takes some 10 s.
_DOWN_S = 30.0


class UnansweredError(HeadroomError):
    """The target did not answer now; it may again."""

    @classmethod
    def of(cls, error: HeadroomError) -> UnansweredError:
        """Return such an error with the texts of another one."""
        return cls(error.subject, error.rule, error.remedy)


@dataclass(frozen=True)
class SeenMigration:
    """One look at a migration.

    Attributes:
        partitions: its partitions.
        agreed: number of its agreement that each router keeps to, read before the origin.
        origin_topics: its topics that are on the origin; None if that did not answer, or is shielded.
    """

    partitions: Mapping[TopicPartition, SeenPartition]
    agreed: Mapping[str, int]
    origin_topics: Mapping[str, MigratingTopic] | None


class MigrationWatch:
    """Reads both clusters, and measures how the origin's logs grow.

    Args:
        settings: all settings.
        origin: cluster that topics migrate from; it need not answer.
        target: cluster that they migrate to.
        clock_s: monotonic seconds.
        clock_ms: time now, epoch milliseconds.

    Attributes:
        clock_ms: the same clock.
    """

    def __init__(
        self,
        settings: Settings,
        origin: MigrationCluster,
        target: MigrationCluster,
        clock_s: Callable[[], float] = time.monotonic,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._origin = origin
        self._target = target
        self._clock_s = clock_s
        self.clock_ms = clock_ms
        self._growth = LogGrowth(settings.collect.measure_s, settings.migration.quiet_s)
        self._last: dict[TopicPartition, OriginReading] = {}
        # Partitions whose leaders have reported where their logs end.
        self._reported: set[TopicPartition] = set()
        self._answered_s: dict[TopicPartition, float] = {}
        self._mirrors = MirrorEnd(origin, target, settings.migration.quiet_s, clock_s)
        groups = settings.migration.group_names()
        self._target_reader = ClusterReader(lambda: target, clock_s, clock_ms, groups, origin.name)
        self._origin_reader = ClusterReader(lambda: origin, clock_s, clock_ms, groups)

    def see(self, agreements: Agreements, read_agreed: Callable[[], Mapping[str, int]]) -> SeenMigration:
        """Return what both clusters show now.

        Args:
            agreements: partitions of the migration.
            read_agreed: reads the agreement of each router.

        Raises:
            UnansweredError: the target did not answer.
            HeadroomError: a topic or cluster is not the one that was agreed about.
        """
        there = self._read_target(agreements)
        agreed = read_agreed()
        here = self._read_origin(agreements)
        logs, ends = ({}, {}) if here is None else (here.logs, here.leader_ends)
        watermarks = {name: log.end for name, log in logs.items() if log.end is not None}
        self._reported.update(ends)
        self._growth.add(self._clock_s(), self._grown(agreements, ends, watermarks), watermarks)
        noisy = {name.topic for name in agreements if not self._growth.is_quiet(name)}
        seen = {
            name: self._see(one, logs.get(name, LogOffsets()), ends.get(name), there, name.topic in noisy)
            for name, one in agreements.items()
        }
        return SeenMigration(seen, agreed, None if here is None else here.topics)

    def _grown(
        self, agreements: Agreements, ends: Mapping[TopicPartition, int], watermarks: Mapping[TopicPartition, int]
    ) -> Mapping[TopicPartition, int]:
        """Return the log ends whose growth counts: high watermarks where an origin never reports those of leaders.

        Nothing starts by these. But a partition whose target is in use would not come to its end without.
        """
        never = {name for name, one in agreements.items() if one.status != MigrationStatus.PLANNED} - self._reported
        return {**ends, **{name: end for name, end in watermarks.items() if name in never}}

    def _see(
        self, one: PartitionAgreement, log: LogOffsets, leader_end: int | None, there: ClusterReading, noisy: bool
    ) -> SeenPartition:
        name = one.name
        target = there.logs.get(name, LogOffsets())
        rate, quiet = self._growth.offsets_per_s(name), self._growth.is_quiet(name)
        last = self._last.get(name)
        down = one.shielded or self._is_down(name, log)
        is_due = one.method == MigrationMethod.MIRRORED and one.status == MigrationStatus.PLANNED and not noisy
        mirrored = self._is_mirrored(name, log, there.names[name.topic], target) if is_due else None
        unread = self._mirrors.failures.get(name, "") if is_due else ""
        seen = SeenPartition(
            log, target, self.clock_ms(), rate, quiet, not noisy, last, down, mirrored, leader_end, unread
        )
        reading = reading_of(seen)
        if reading is not None and (reading.offsets_per_s is not None or last is None):
            self._last[name] = reading
        return seen

    def _is_mirrored(self, name: TopicPartition, log: LogOffsets, mirror: str, target: LogOffsets) -> bool | None:
        """Return whether a mirror has all of a log; None if that is unknown."""
        return self._mirrors.is_complete(name, log, TopicPartition(mirror, name.partition), target)

    def _is_down(self, name: TopicPartition, log: LogOffsets) -> bool:
        now_s = self._clock_s()
        # Before the first look it may have answered.
        since_s = self._answered_s.setdefault(name, now_s)
        if log.end is not None:
            self._answered_s[name] = now_s
        return log.end is None and now_s - since_s >= _DOWN_S

    def _read_target(self, agreements: Agreements) -> ClusterReading:
        """Return a reading of the target, which has all topics."""
        self._target_reader.forget()
        try:
            found = self._target_reader.read(replace(wanted_on_target(agreements.values()), is_logs_only=True))
        except HeadroomError as error:
            raise UnansweredError.of(error) from None
        for one in agreements.values():
            _require_same_topic(one.topic, self._target.subject, one.target_topic_id, found)
        gone = min({one.topic for one in agreements.values()} - found.topics.keys(), default=None)
        if gone is not None:
            # A broker may know a topic that was just created a moment later.
            remedy = (
                "Find out who deleted it. Its records are gone there; headroom migration status shows what is left."
            )
            raise UnansweredError(f"topic {gone}", f"is not on the {self._target.subject} any more", remedy)
        return found

    def _read_origin(self, agreements: Agreements) -> ClusterReading | None:
        """Return a reading of the origin; None if it did not answer, or all partitions are shielded."""
        wanted = wanted_on_origin(agreements.values(), {})
        if wanted is None:
            return None
        self._origin_reader.forget()
        try:
            found = self._origin_reader.read(replace(wanted, is_logs_only=True))
        except HeadroomError:
            return None
        called = [agreements[name] for name in wanted.names]
        agreed_id = called[0].origin_cluster_id
        if found.cluster_id != agreed_id:
            rule = f"leads to the cluster {found.cluster_id}, and the migration is from {agreed_id}"
            raise HeadroomError("migration.origin.bootstrap_servers", rule, "Name brokers of that cluster.")
        for one in called:
            _require_same_topic(one.topic, self._origin.subject, one.origin_topic_id, found)
        return found


def _require_same_topic(name: str, subject: str, agreed_id: str | None, found: ClusterReading) -> None:
    topic_id = found.topic_ids.get(name)
    if agreed_id is None or topic_id is None or topic_id == agreed_id:
        return
    rule = f"was recreated on the {subject} since the agreement: its id is {topic_id}, not {agreed_id}"
    remedy = "Its offsets are other ones. If nothing was started: headroom migration cancel, then run again."
    raise HeadroomError(f"topic {name}", rule, remedy)
