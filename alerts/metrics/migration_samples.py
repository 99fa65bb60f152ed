"""Progress of migrations as metric samples, one set per migration."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator

from headroom.alerts.metrics.samples import Sample
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas import metrics


def migration_samples(cluster: str, progress: Iterable[MigrationProgress]) -> Iterator[Sample]:
    """Yield the known values of every migration.

    Args:
        cluster: name of the target.
        progress: progress of every partition in one tick.
    """
    by_name: dict[str, list[MigrationProgress]] = defaultdict(list)
    for partition in progress:
        by_name[partition.migration].append(partition)
    for name, partitions in sorted(by_name.items()):
        for status, number in sorted(Counter(partition.status for partition in partitions).items()):
            yield metrics.MIGRATION_PARTITIONS, (cluster, name, status), float(number)
        left = [partition.left_offsets for partition in partitions]
        # Without one of them a sum would be too low.
        if None not in left:
            yield metrics.MIGRATION_LEFT, (cluster, name), float(sum(offsets or 0 for offsets in left))
        lost = [partition.lost_offsets for partition in partitions]
        known = sum(offsets or 0 for offsets in lost)
        if known or None not in lost:
            yield metrics.MIGRATION_LOST, (cluster, name), float(known)
