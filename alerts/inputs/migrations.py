"""Inputs of rules on migrations: the progress of every partition in one tick."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class MigrationInputs:
    """Migrations to a cluster, as one tick has them.

    Attributes:
        partitions: progress of every partition; empty if there is no migration.
        tick_ms: time of the tick that has them, epoch milliseconds; None: the one that is evaluated.
    """

    partitions: Sequence[MigrationProgress] = ()
    tick_ms: int | None = None

    # Thousands of partitions are grouped once per tick, not once per rule.
    @cached_property
    def by_name(self) -> Mapping[str, Sequence[MigrationProgress]]:
        """Partitions by the name of their migration, in the order of names."""
        by_name: dict[str, list[MigrationProgress]] = defaultdict(list)
        for partition in self.partitions:
            by_name[partition.migration].append(partition)
        return dict(sorted(by_name.items()))

    @cached_property
    def coming(self) -> Mapping[TopicPartition, MigrationProgress]:
        """Partitions whose clients write to the origin now and will write to the target, by their names there."""
        coming = ((partition.target_name, partition) for partition in self.partitions if partition.left_offsets)
        return {name: partition for name, partition in coming if name is not None}
