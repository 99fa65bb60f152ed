"""Inputs of rules on migrations: the progress of every partition in one tick."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.keys import TopicPartition


class ArrivingWrites(NamedTuple):
    """Writes that a switch brings to one partition that a throttle on the target counts.

    Attributes:
        bytes_per_s: rate, bytes per second.
        followers: followers that the throttle of its leader counts.
        switch_in_s: seconds until the switch; None if unknown.
    """

    bytes_per_s: float
    followers: int
    switch_in_s: float | None


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
    def arriving(self) -> Mapping[int, Mapping[str, Sequence[ArrivingWrites]]]:
        """Writes that switches bring to partitions that throttles count, by leader on the target and by migration."""
        arriving: dict[int, dict[str, list[ArrivingWrites]]] = defaultdict(lambda: defaultdict(list))
        for one in self.partitions:
            if (
                one.brings_writes
                and one.throttled_followers
                and one.arriving_bytes_per_s
                and one.target_leader is not None
            ):
                writes = ArrivingWrites(one.arriving_bytes_per_s, one.throttled_followers, one.switch_eta_s)
                arriving[one.target_leader][one.migration].append(writes)
        return arriving

    @cached_property
    def unplaced(self) -> Mapping[TopicPartition, MigrationProgress]:
        """Partitions whose writes will come to the target, by their names there, if it is unknown what counts them.

        So it is while a list cannot be read, and with a collector of an earlier version.
        """
        coming = (p for p in self.partitions if p.brings_writes and p.throttled_followers is None)
        return {name: partition for partition in coming if (name := partition.target_name) is not None}
