"""Plan of a migration: where each partition changes to the target and when, what is left to read, and what forbids it.

The plan rests on two readings of the origin, some seconds apart, and one of the target.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headroom.planning.migration.agreed_end import end_offset, reached_in_s
from headroom.planning.migration.plan.findings import partition_findings, topic_findings
from headroom.planning.migration.plan.planned import (
    MigrationForecast,
    PartitionReading,
    PlannedPartition,
    PlannedReader,
    ReaderReading,
    TopicOnBoth,
)
from headroom.planning.migration.plan.retention import LogRetention
from headroom.planning.migration.readings import TopicRules, growth_per_s, read_rate
from headroom.schemas.migrations import MigrationMethod


def forecast(
    method: MigrationMethod,
    topics: Mapping[str, TopicOnBoth],
    partitions: Sequence[PartitionReading],
    prepare_s: float,
) -> MigrationForecast:
    """Return the plan of a migration.

    Args:
        method: how records and readers get to the target.
        topics: topics by their names on the origin.
        partitions: their partitions.
        prepare_s: time that the switch needs to be prepared, seconds.
    """
    planned = tuple(_plan_partition(reading, topics[reading.name.topic].rules, prepare_s) for reading in partitions)
    findings = [finding for topic in topics.values() for finding in topic_findings(method, topic)]
    findings += [finding for partition in planned for finding in partition_findings(method, partition)]
    return MigrationForecast(planned, tuple(sorted(findings, key=lambda finding: not finding.forbids)))


def _plan_partition(reading: PartitionReading, rules: TopicRules | None, prepare_s: float) -> PlannedPartition:
    log = reading.log
    rate = growth_per_s(reading.earlier_end, log.end, reading.elapsed_s)
    end = end_offset(log.end, rate, prepare_s)
    switch_in_s = reached_in_s(log.end, rate, end)
    age_s = None if log.newest_ms is None else max(0.0, (reading.now_ms - log.newest_ms) / 1000)
    retention = LogRetention(rules, log, age_s, end, switch_in_s)
    return PlannedPartition(
        reading.name,
        log,
        reading.target,
        rate,
        end,
        switch_in_s,
        None if end is None or log.end is None else end - log.end,
        None if log.end is None or log.stable is None else max(0, log.end - log.stable),
        tuple(_reader(own, reading, retention, end) for own in reading.readers),
        reading.is_leader_end_known,
    )


def _reader(own: ReaderReading, reading: PartitionReading, retention: LogRetention, end: int | None) -> PlannedReader:
    if own.committed is None:
        return PlannedReader(own.group, None, own.active, None, None)
    rate = read_rate(growth_per_s(own.earlier, own.committed, reading.elapsed_s), own.active)
    is_beyond = reading.log.end is not None and own.committed > reading.log.end
    left = None if end is None or is_beyond else max(0, end - own.committed)
    return PlannedReader(
        own.group, own.committed, own.active, left, rate, retention.of_reader(own.committed, rate), is_beyond
    )
