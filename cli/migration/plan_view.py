"""Output of ``headroom migration plan``, as text and as JSON."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any

from headroom.cli.common.output import echo, partition_json
from headroom.cli.migration.options import count_text, print_rows
from headroom.operations.migration.plan import MigrationPlan
from headroom.planning.migration.plan.planned import PlannedPartition, PlannedReader, TopicOnBoth
from headroom.planning.migration.readings import LogOffsets
from headroom.schemas.text.amounts import UNKNOWN, clock_text, duration_text

_NEVER = "never"


def print_plan(plan: MigrationPlan) -> None:
    """Print partitions, readers, what forbids the migration, and what to know before it."""
    forecast = plan.forecast
    names, count = ", ".join(plan.topics), len(forecast.partitions)
    partitions = "1 partition" if count == 1 else f"{count:,} partitions"
    echo(f"{names}: {partitions}, from {plan.origin} to {plan.target}, {plan.method.value}.")
    echo(
        f"Rates are of {plan.measured_s:.0f} s until {clock_text(plan.read_ms)}. The end offset is that of "
        f"{duration_text(plan.prepare_s)} later (migration.prepare)."
    )
    header = ("partition", "log start", "log end", "written", "end offset", "reached", "left to write", "on the target")
    print_rows("Partitions of the origin", header, [_partition_row(plan, one) for one in forecast.partitions])
    readers = [(partition, reader) for partition in forecast.partitions for reader in partition.readers]
    if readers:
        header = ("group", "partition", "committed", "left to read", "reads", "kept for", "would lose", "retention.ms")
        print_rows("Readers", header, [_reader_row(partition, reader) for partition, reader in readers])
    else:
        echo()
        echo("No consumer group has committed offsets of it.")
    for title, forbids in (("What forbids the migration", True), ("What to know before it", False)):
        rows = [(one.subject, one.rule, one.remedy) for one in forecast.findings if one.forbids is forbids]
        if rows:
            print_rows(title, ("subject", "finding", "what to do"), rows)
    echo()
    echo(
        "Something forbids the migration."
        if forecast.is_forbidden()
        else "Nothing that was read forbids the migration."
    )


def _partition_row(plan: MigrationPlan, partition: PlannedPartition) -> tuple[str, ...]:
    target = "not there"
    if partition.target is not None:
        is_empty = partition.target.is_empty()
        target = UNKNOWN if is_empty is None else "empty" if is_empty else f"to {count_text(partition.target.end)}"
    return (
        str(partition.name),
        count_text(partition.log.start),
        count_text(partition.log.end),
        _rate_text(partition.write_offsets_per_s),
        count_text(partition.end_offset),
        _reached_text(plan, partition),
        count_text(partition.left_offsets),
        target,
    )


def _reached_text(plan: MigrationPlan, partition: PlannedPartition) -> str:
    if partition.switch_in_s is None:
        return UNKNOWN
    if partition.write_offsets_per_s == 0:
        return "now: no record has come"
    return clock_text(plan.read_ms + round(partition.switch_in_s * 1000), plan.read_ms)


def _rate_text(offsets_per_s: float | None) -> str:
    return UNKNOWN if offsets_per_s is None else f"{offsets_per_s:,.1f}/s"


def _reader_row(partition: PlannedPartition, reader: PlannedReader) -> tuple[str, ...]:
    state = {True: "", False: " (no consumers)", None: " (state unknown)"}[reader.active]
    kept = reader.retention
    if reader.committed is None or kept is None:
        return (f"{reader.group}{state}", str(partition.name), "none", UNKNOWN, "", "", "", "")
    never = kept.kept_s is None and kept.lost_offsets is not None
    return (
        f"{reader.group}{state}",
        str(partition.name),
        count_text(reader.committed),
        count_text(reader.left_offsets),
        _rate_text(reader.read_offsets_per_s),
        _NEVER if never and not kept.lost_offsets else duration_text(kept.kept_s),
        count_text(kept.lost_offsets),
        "" if kept.enough_retention_ms is None else f"{kept.enough_retention_ms} is enough",
    )


def plan_json(plan: MigrationPlan) -> dict[str, Any]:
    """Return the plan as a JSON object."""
    return {
        "origin": plan.origin,
        "target": plan.target,
        "method": plan.method.value,
        "forbidden": plan.forecast.is_forbidden(),
        "prepare_s": plan.prepare_s,
        "measured_s": plan.measured_s,
        "read_ms": plan.read_ms,
        "topics": [_topic_json(both) for both in plan.topics.values()],
        "partitions": [_partition_json(partition) for partition in plan.forecast.partitions],
        "findings": [vars(finding) for finding in plan.forecast.findings],
    }


def _topic_json(both: TopicOnBoth) -> dict[str, Any]:
    clusters = (
        ("origin", both.topic, both.origin, both.rules),
        ("target", both.target_name, both.target, both.target_rules),
    )
    return {
        key: None
        if topic is None
        else {
            "topic": name,
            "topic_id": topic.topic_id,
            "partitions": len(topic.leaders),
            "least_replicas": topic.least_replicas,
            "settings": None if rules is None else vars(rules),
        }
        for key, name, topic, rules in clusters
    }


def _partition_json(partition: PlannedPartition) -> dict[str, Any]:
    return {
        **partition_json(partition.name),
        "origin": _log_json(partition.log),
        "target": None if partition.target is None else _log_json(partition.target),
        "write_offsets_per_s": partition.write_offsets_per_s,
        "end_offset": partition.end_offset,
        "switch_in_s": partition.switch_in_s,
        "left_offsets": partition.left_offsets,
        "unstable_offsets": partition.unstable_offsets,
        "readers": [_reader_json(reader) for reader in partition.readers],
    }


def _log_json(log: LogOffsets) -> dict[str, Any]:
    return {"start": log.start, "end": log.end, "stable": log.stable, "newest_ms": log.newest_ms}


def _reader_json(reader: PlannedReader) -> dict[str, Any]:
    return {
        "group": reader.group,
        "committed": reader.committed,
        "active": reader.active,
        "left_offsets": reader.left_offsets,
        "read_offsets_per_s": reader.read_offsets_per_s,
        "retention": None if reader.retention is None else asdict(reader.retention),
    }
