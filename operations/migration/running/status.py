"""Status of the migrations to a cluster: one evaluation of each partition, and the routers with what they keep to."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

from headroom.cluster.collector.migration.rows import ClusterFacts, MigrationFacts, is_mirrored, migration_rows
from headroom.cluster.migration.cluster_reader import (
    ClusterReader,
    WantedPartitions,
    wanted_on_origin,
    wanted_on_target,
)
from headroom.operations.migration.running.agreements import agreement_reader
from headroom.operations.migration.running.clusters import RunningClusters
from headroom.operations.migration.syncs import read_newest_syncs
from headroom.operations.progress import ProgressReceiver
from headroom.planning.migration.agreement import acknowledged_ends, agreed_numbers, missing_routers
from headroom.planning.migration.progress.judgement import migration_progress
from headroom.planning.migration.progress.message_row import readings_of_rows
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.planning.migration.progress.reading import MigrationReading
from headroom.routing.agreement import AgreementReader
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import PartitionAgreement, RouterReport


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
        own = [] if reader is None else _choose(reader, topics, migration)
        if reader is None or not own:
            return MigrationStatusResult((), (), clock_ms())
        with progress.step(f"Measuring rates for {settings.collect.measure_s:g} s"):
            facts = _read_twice(running, settings, own, reader.reports, sleep, clock_ms)
    facts = replace(facts, syncs=_last_syncs(running, facts))
    read_ms = clock_ms()
    # Nothing is cut off, because it goes into no message.
    of_rows = readings_of_rows(migration_rows(facts, most=sys.maxsize), read_ms)
    readings = [reading for reading in of_rows if reading is not None]
    evaluated = tuple(_evaluate(reading, one) for reading, one in zip(readings, own, strict=True))
    return MigrationStatusResult(evaluated, tuple(_routers(own, reader)), read_ms)


def _choose(reader: AgreementReader, topics: Collection[str], migration: str | None) -> list[PartitionAgreement]:
    """Return agreements in the order of the rows of messages."""
    chosen = [
        one
        for one in reader.agreements.values()
        if migration in (None, one.migration) and (not topics or one.topic in topics)
    ]
    return sorted(chosen, key=lambda one: (one.name, one.origin_cluster_id))


def _read_twice(
    running: RunningClusters,
    settings: Settings,
    own: Sequence[PartitionAgreement],
    reports: Mapping[str, RouterReport],
    sleep: Callable[[float], object],
    clock_ms: Callable[[], int],
) -> MigrationFacts:
    """Return what two readings of each cluster show, ``collect.measure_s`` apart. A shielded origin is not read."""
    acknowledged, groups = acknowledged_ends(reports.values(), own), settings.migration.group_names()
    target = ClusterReader(lambda: running.target, time.monotonic, clock_ms, groups, running.origin.name)
    origin = ClusterReader(lambda: running.origin, time.monotonic, clock_ms, groups)
    wanted, asked = wanted_on_target(own), wanted_on_origin(own, acknowledged)
    # The target first: what is written meanwhile is on neither.
    before = _facts(target, wanted, ClusterFacts()), _facts(origin, asked, ClusterFacts())
    sleep(settings.collect.measure_s)
    now = _facts(target, wanted, before[0]), _facts(origin, asked, before[1])
    return MigrationFacts(own, reports, now[1], now[0], now[0].now, acknowledged, settings.alerts.slip_ratio)


def _facts(reader: ClusterReader, wanted: WantedPartitions | None, earlier: ClusterFacts) -> ClusterFacts:
    """Return what a new reading shows of a cluster, beside an earlier one; nothing is called if nothing is wanted."""
    if wanted is None:
        return ClusterFacts(error="it was not called")
    reader.forget()
    try:
        now = reader.read(wanted)
    except HeadroomError as error:
        return ClusterFacts(error=error.rule, last=earlier.now)
    return ClusterFacts(now, earlier.now, earlier.now, last=now)


def _last_syncs(running: RunningClusters, facts: MigrationFacts) -> Mapping[TopicPartition, tuple[int, int]]:
    """Return the newest offset sync of each mirrored partition that says anything; none if they cannot be read."""
    names = {one.name for one in facts.agreements if is_mirrored(one)}
    if not names or facts.origin.now is None:
        return {}
    with suppress(HeadroomError):
        return read_newest_syncs(running.both(), names)
    return {}


def _evaluate(reading: MigrationReading, agreement: PartitionAgreement) -> EvaluatedPartition:
    # With the routers in the order in which they were named.
    own = replace(reading, agreement=agreement)
    return EvaluatedPartition(own, migration_progress(own))


def _routers(own: Sequence[PartitionAgreement], reader: AgreementReader) -> list[RouterStatus]:
    routers: list[RouterStatus] = []
    for migration in sorted({one.migration for one in own}):
        agreed = agreed_numbers(reader.reports, migration)
        of_it = [one for one in own if one.migration == migration]
        named = {name for one in of_it for name in one.routers}
        missing = {name for one in of_it for name in missing_routers(one, agreed)}
        routers += [
            RouterStatus(migration, name, reader.reports.get(name), name in named, name in missing)
            for name in sorted(named | set(agreed))
        ]
    return routers
