"""Migrations to a cluster at one tick: the progress of each partition, with its consumer groups."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from headroom.dashboard.data.moment import MomentReader, in_range
from headroom.dashboard.data.open_tables import OpenTables
from headroom.planning.migration.progress.progress import GroupProgress, MigrationProgress, MigrationVerdict
from headroom.schemas.keys import TopicPartition
from headroom.schemas.records import record
from headroom.schemas.tables import MIGRATION_GROUPS, MIGRATION_PROGRESS


def migrations_at(
    tables: OpenTables, moments: MomentReader, cluster: str, at_ms: int
) -> tuple[int, Sequence[MigrationProgress]] | None:
    """Return the newest tick up to a time that has migrations to a cluster, with them; None if there was none.

    Args:
        tables: tables of the store.
        moments: finds the tick.
        cluster: name of the cluster.
        at_ms: the time, epoch milliseconds.

    Returns:
        Time of the tick, epoch milliseconds, and the progress of every partition, by topic and partition.

    Raises:
        HeadroomError: a table cannot be read, or a row of it cannot be used.
    """
    tick_ms = moments.tick_at(cluster, at_ms, MIGRATION_PROGRESS)
    if tick_ms is None:
        return None
    sql = f"SELECT * FROM data WHERE {in_range(cluster, tick_ms, tick_ms)} ORDER BY topic, partition"
    groups: dict[TopicPartition, list[GroupProgress]] = defaultdict(list)
    for partition, group in tables.records(MIGRATION_GROUPS, f'{sql}, "group"', _group):
        groups[partition].append(group)
    return tick_ms, tables.records(MIGRATION_PROGRESS, sql, partial(_progress, groups))


def _group(row: Mapping[str, Any]) -> tuple[TopicPartition, GroupProgress]:
    return TopicPartition(row["topic"], row["partition"]), record(GroupProgress, row)


def _progress(groups: Mapping[TopicPartition, list[GroupProgress]], row: Mapping[str, Any]) -> MigrationProgress:
    own = groups.get(TopicPartition(row["topic"], row["partition"]), [])
    parts = {
        "verdict": MigrationVerdict(row["verdict"]),
        "missing_routers": tuple(row["missing_routers"] or ()),
        # None of them is known also in rows of before that column, unless there are some.
        "groups": tuple(own) if own or row.get("group_count") is not None else None,
    }
    return record(MigrationProgress, {**row, **parts})
