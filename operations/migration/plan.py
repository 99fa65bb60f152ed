"""Plan of a migration, from two readings of the origin and one of the target."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, replace

from headroom.operations.migration.clusters import MigrationClusters, targets_of
from headroom.operations.progress import ProgressReceiver
from headroom.planning.migration.plan.forecast import forecast
from headroom.planning.migration.plan.planned import (
    MigrationForecast,
    PartitionReading,
    ReaderReading,
    TopicOnBoth,
)
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.migrations import MigrationMethod


@dataclass(frozen=True)
class MigrationPlan:
    """Result of ``headroom migration plan``.

    Attributes:
        origin: name of the cluster that topics migrate from.
        target: name of the cluster that they migrate to.
        method: how records and readers get there.
        topics: topics by their names on the origin.
        forecast: partitions and findings.
        prepare_s: time that the switch needs to be prepared, seconds.
        measured_s: time over which rates were measured, seconds.
        read_ms: time of the second reading, epoch milliseconds.
    """

    origin: str
    target: str
    method: MigrationMethod
    topics: Mapping[str, TopicOnBoth]
    forecast: MigrationForecast
    prepare_s: float
    measured_s: float
    read_ms: int


_Committed = Mapping[str, Mapping[TopicPartition, int]]
_NONE_AGREED: Mapping[str, Collection[int]] = {}


def plan_migration(
    clusters: MigrationClusters,
    settings: Settings,
    topics: Sequence[str],
    method: MigrationMethod,
    progress: ProgressReceiver,
    sleep: Callable[[float], object] = time.sleep,
    clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    agreed: Mapping[str, Collection[int]] = _NONE_AGREED,
) -> MigrationPlan:
    """Return the plan of a migration.

    Rates are measured over ``collect.measure_s``. If a partition does not grow in that time they are measured over
    ``migration.quiet_s``, if that is longer.

    Args:
        clusters: the two clusters.
        settings: all settings.
        topics: names on the origin.
        method: how records and readers get to the target.
        progress: gets the steps.
        sleep: waits for the given seconds.
        clock_ms: time now, epoch milliseconds.
        agreed: partitions that were agreed about already, by topic: they are left out.

    Raises:
        HeadroomError: a topic or group is not on the origin, or a cluster did not answer.
    """
    on_both = clusters.topics_on_both(topics, method is MigrationMethod.MIRRORED)
    described = {topic: both.origin for topic, both in on_both.items()}
    names = [
        TopicPartition(topic, p)
        for topic, own in described.items()
        for p in sorted(own.leaders)
        if p not in agreed.get(topic, ())
    ]
    with progress.step("Reading groups"):
        groups = clusters.origin.groups()
        wanted = _wanted_groups(settings, clusters, groups)
        before = clusters.origin.committed(wanted, names)

    def second_reading() -> tuple[Mapping[TopicPartition, LogOffsets], _Committed, Mapping[TopicPartition, int], float]:
        # Log ends come last: neither a link nor a reader may seem to be ahead because it went on meanwhile.
        target_logs = _target_logs(clusters, on_both)
        return target_logs, clusters.origin.committed(wanted, names), *clusters.origin.log_ends(described)

    measure_s, quiet_s = settings.collect.measure_s, settings.migration.quiet_s
    with progress.step(f"Measuring write rates for {measure_s:g} s"):
        earlier, earlier_s = clusters.origin.log_ends(described)
        sleep(measure_s)
        target_logs, committed, ends, ends_s = second_reading()
    if quiet_s > measure_s and any(ends.get(name) == earlier.get(name) for name in names):
        with progress.step(f"Measuring for {quiet_s - measure_s:g} s more, because a partition has not grown"):
            sleep(quiet_s - measure_s)
            target_logs, committed, ends, ends_s = second_reading()
    read_ms, elapsed_s = clock_ms(), ends_s - earlier_s
    logs = clusters.origin.log_offsets(described)
    leader_ends = clusters.origin.leader_ends(described)
    clusters.require_same_topics(on_both.values())
    readers = _readers(groups, before, committed, names)
    readings = [
        PartitionReading(
            name,
            earlier.get(name),
            replace(logs.get(name, LogOffsets()), end=ends.get(name)),
            elapsed_s,
            read_ms,
            target_logs.get(name),
            readers[name],
            name in leader_ends,
        )
        for name in names
    ]
    planned = forecast(method, on_both, readings, settings.migration.prepare)
    return MigrationPlan(
        clusters.origin.name,
        clusters.target.name,
        method,
        on_both,
        planned,
        settings.migration.prepare,
        elapsed_s,
        read_ms,
    )


def _wanted_groups(settings: Settings, clusters: MigrationClusters, groups: Collection[str]) -> list[str]:
    """Return the groups that migrate."""
    named = settings.migration.group_names()
    missing = [group for group in named if group not in groups]
    if missing:
        remedy = "Correct migration.groups, and see that this user has DESCRIBE on the group."
        raise HeadroomError(f"group {missing[0]}", f"is not on the {clusters.origin.subject}", remedy)
    return named or sorted(groups)


def _target_logs(clusters: MigrationClusters, on_both: Mapping[str, TopicOnBoth]) -> dict[TopicPartition, LogOffsets]:
    """Return the logs of the target, by the names of the partitions on the origin."""
    logs = clusters.target.log_offsets(targets_of(on_both.values()))
    topics = {both.target_name: topic for topic, both in on_both.items()}
    return {TopicPartition(topics[name.topic], name.partition): log for name, log in logs.items()}


def _readers(
    groups: Mapping[str, bool | None], before: _Committed, committed: _Committed, names: Sequence[TopicPartition]
) -> dict[TopicPartition, tuple[ReaderReading, ...]]:
    """Return the groups of each partition: those that have a committed offset of its topic."""
    topics = {group: {name.topic for name in offsets} for group, offsets in committed.items()}
    return {
        name: tuple(
            ReaderReading(group, before.get(group, {}).get(name), offsets.get(name), groups[group])
            for group, offsets in committed.items()
            if name.topic in topics[group]
        )
        for name in names
    }
