"""Status of the migrations to a cluster: one evaluation of each partition, and the routers with what they keep to."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass

from headroom.cluster.migration.topics import ClusterTopics
from headroom.operations.migration.running.agreements import agreement_reader
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.migration.running.snapshot import ClusterSnapshot, read_snapshot
from headroom.operations.migration.syncs import read_mirror_syncs
from headroom.operations.progress import ProgressReceiver
from headroom.planning.migration.agreement import (
    acknowledged_ends,
    agreed_numbers,
    missing_routers,
    resumed_at,
    split_of,
)
from headroom.planning.migration.mirrors.names import mirror_topic
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.planning.migration.progress.reading import GroupReading, MigrationReading
from headroom.planning.migration.readings import LogOffsets, growth_per_s
from headroom.routing.agreement import AgreementReader
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod, PartitionAgreement, RouterReport


@dataclass(frozen=True)
class EvaluatedPartition:
    """One partition, as it was read and evaluated.

    Attributes:
        reading: both clusters.
        progress: numbers, verdict and reason.
    """

    reading: MigrationReading
    progress: MigrationProgress


@dataclass(frozen=True)
class RouterStatus:
    """One router of a migration.

    Attributes:
        migration: name of the migration.
        name: name of the router.
        report: what it reports; None if there is no report.
        is_named: whether the agreement waits for it.
        is_missing: whether it has yet to agree.
    """

    migration: str
    name: str
    report: RouterReport | None
    is_named: bool
    is_missing: bool


@dataclass(frozen=True)
class MigrationStatusResult:
    """Result of ``headroom migration status``.

    Attributes:
        partitions: partitions, in the order of their names.
        routers: routers by migration and name.
        read_ms: time of the reading, epoch milliseconds.
    """

    partitions: tuple[EvaluatedPartition, ...]
    routers: tuple[RouterStatus, ...]
    read_ms: int


def migration_status(
    running: RunningClusters,
    settings: Settings,
    topics: Collection[str],
    migration: str | None,
    progress: ProgressReceiver,
    sleep: Callable[[float], object],
    clock_ms: Callable[[], int],
) -> MigrationStatusResult:
    """Return the status of migrations; the origin is not called for partitions that are shielded.

    Args:
        running: the two clusters.
        settings: all settings.
        topics: names on the origin; empty: all.
        migration: name of the migration; None: all.
        progress: gets the steps.
        sleep: waits for the given seconds.
        clock_ms: time now, epoch milliseconds.

    Raises:
        HeadroomError: the target did not answer, or the agreement topic cannot be read.
    """
    target_topics = running.target.topics()
    with agreement_reader(settings, target_topics.names) as reader:
        if reader is None:
            return MigrationStatusResult((), (), clock_ms())
        own = [
            one
            for one in sorted(reader.agreements.values(), key=lambda one: one.name)
            if migration in (None, one.migration) and (not topics or one.topic in topics)
        ]
        look = _Look(running, settings, own, target_topics, reader)
        with progress.step(f"Measuring rates for {settings.collect.measure_s:g} s"):
            earlier = look.read()
            sleep(settings.collect.measure_s)
            later = look.read()
    syncs = _last_syncs(running, own) if later.origin.topics is not None else {}
    evaluated = tuple(_evaluated(one, look, (earlier, later), reader, syncs.get(one.name), clock_ms()) for one in own)
    return MigrationStatusResult(evaluated, tuple(_routers(own, reader)), clock_ms())


@dataclass(frozen=True)
class _Both:
    """One reading of both clusters: the target first."""

    target: ClusterSnapshot
    origin: ClusterSnapshot


class _Look:
    """Reads the partitions of some agreements on both clusters."""

    def __init__(
        self,
        running: RunningClusters,
        settings: Settings,
        own: Sequence[PartitionAgreement],
        target_topics: ClusterTopics,
        reader: AgreementReader,
    ) -> None:
        self._running = running
        self._groups = settings.migration.group_names()
        self.slip_ratio = settings.alerts.slip_ratio
        self.on_target = {one.name: self._on_target(one, target_topics) for one in own}
        called = [one for one in own if not one.shielded]
        self._called = [one.name for one in called]
        self._reports = list(reader.reports.values())
        self._origin_ids = {one.origin_cluster_id for one in called}

    def read(self) -> _Both:
        target = read_snapshot(self._running.target, list(self.on_target.values()), self._groups)
        known = acknowledged_ends(self._reports)
        epochs = {name: known.get(name, {}).keys() for name in self._called}
        origin = read_snapshot(self._running.origin, self._called, self._groups, epochs)
        if origin.topics is not None and origin.topics.cluster_id not in self._origin_ids:
            rule = "leads to another cluster than the migration is from"
            origin = ClusterSnapshot(failure=f"migration.origin.bootstrap_servers {rule}")
        return _Both(target, origin)

    def _on_target(self, one: PartitionAgreement, found: ClusterTopics) -> TopicPartition:
        is_mirror = one.method == MigrationMethod.MIRRORED
        name = mirror_topic(one.topic, self._running.origin.name, found.names) if is_mirror else one.topic
        return TopicPartition(name or one.topic, one.partition)


def _last_syncs(
    running: RunningClusters, own: Sequence[PartitionAgreement]
) -> Mapping[TopicPartition, tuple[int, int]]:
    """Return the newest offset sync of each mirrored partition; none if they cannot be read."""
    names = {one.name for one in own if one.method == MigrationMethod.MIRRORED and not one.shielded}
    if not names:
        return {}
    with suppress(HeadroomError):
        return {name: syncs[-1] for name, syncs in read_mirror_syncs(running.both(), names).items() if syncs}
    return {}


def _evaluated(
    one: PartitionAgreement,
    look: _Look,
    readings: tuple[_Both, _Both],
    reader: AgreementReader,
    sync: tuple[int, int] | None,
    at_ms: int,
) -> EvaluatedPartition:
    (earlier, later), there = readings, look.on_target[one.name]
    origin, target = later.origin, later.target
    log = LogOffsets() if one.shielded else origin.logs.get(one.name, LogOffsets())
    producers = [r for r in reader.reports.values() if one.migration in r.agreed and r.acks is not None]
    reading = MigrationReading(
        one,
        at_ms,
        log,
        target.logs.get(there, LogOffsets()),
        earlier_target_end=target.logs.get(there, LogOffsets()).end,
        is_origin_up=origin.topics is not None and not one.shielded,
        origin_failure="shielded" if one.shielded else origin.failure,
        origin_topic_id=origin.topic_id(one.topic),
        target_topic_id=target.topic_id(there.topic),
        write_offsets_per_s=origin.rate_since(earlier.origin, one.name),
        target_offsets_per_s=target.rate_since(earlier.target, there),
        leader_end=origin.leader_end(one.name),
        rules=origin.rules.get(one.topic),
        acks=tuple(r.acks for r in producers if r.acks is not None),
        agreed=agreed_numbers(reader.reports, one.migration),
        acknowledged=acknowledged_ends(producers).get(one.name, {}),
        epoch_ends=origin.epoch_ends.get(one.name, {}),
        last_sync=sync,
        groups=_groups(one, there, earlier, later),
        slip_ratio=look.slip_ratio,
    )
    return EvaluatedPartition(reading, migration_progress(reading))


def _groups(
    one: PartitionAgreement, there: TopicPartition, earlier: _Both, later: _Both
) -> tuple[GroupReading, ...] | None:
    """Return the groups with committed offsets of a partition on either cluster; None if they are not known."""
    if later.target.committed is None or (later.origin.committed is None and not one.shielded):
        return None
    on_origin, on_target = later.origin.committed or {}, later.target.committed
    found = {group for group, offsets in on_origin.items() if one.name in offsets}
    found |= {group for group, offsets in on_target.items() if there in offsets}
    split = split_of(one, later.origin.topics is not None)

    def client_offset(at: _Both, group: str) -> int | None:
        own = (at.origin.committed or {}).get(group, {}).get(one.name)
        return resumed_at(split, own, (at.target.committed or {}).get(group, {}).get(there))

    elapsed_s = later.target.at_s - earlier.target.at_s
    groups = []
    for group in sorted(found):
        before, after = client_offset(earlier, group), client_offset(later, group)
        groups.append(
            GroupReading(
                group,
                on_origin.get(group, {}).get(one.name),
                on_target.get(group, {}).get(there),
                growth_per_s(before, after, elapsed_s),
                later.origin.groups.get(group),
            )
        )
    return tuple(groups)


def _routers(own: Sequence[PartitionAgreement], reader: AgreementReader) -> list[RouterStatus]:
    found: list[RouterStatus] = []
    for migration in sorted({one.migration for one in own}):
        agreed = agreed_numbers(reader.reports, migration)
        of_it = [one for one in own if one.migration == migration]
        named = {name for one in of_it for name in one.routers}
        missing = {name for one in of_it for name in missing_routers(one, agreed)}
        found += [
            RouterStatus(migration, name, reader.reports.get(name), name in named, name in missing)
            for name in sorted(named | set(agreed))
        ]
    return found
