"""Logs of a topic on the brokers' disks: bytes that new replicas have to copy, and log directories."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import BenchCluster
from benchmarks.fixtures.throttled_move import replica_logs
from benchmarks.groups.large_moves.stage.groups import Group
from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER
from headroom.cluster.connection.admin_connection import AdminConnection

_LOG_DIRS_RATE = "replica.alter.log.dirs.io.max.bytes.per.second"
_ALTER_S = 30.0


class TopicLogs:
    """Logs of a topic, as the live brokers report them.

    Args:
        bench: cluster of the topic.
        name: name of the topic.
        partitions: group of each partition, by number.
        down: brokers that are down; shared with the code that changes it.
    """

    def __init__(self, bench: BenchCluster, name: str, partitions: Sequence[Group], down: set[int]) -> None:
        self._bench = bench
        self._name = name
        self._partitions = partitions
        self._down = down

    def assign_log_dirs(self, log_dirs: Mapping[tuple[int, int], Path]) -> None:
        """Move replicas to log directories. A replica that does not exist yet will be created there.

        Args:
            log_dirs: absolute directory by partition and broker.

        Source: Kafka 4.3.1, ``ReplicaManager.alterReplicaLogDirs`` stores the directory of a future replica and returns
        an error for it.
        """
        if log_dirs:
            wanted = {(self._name, number, broker): str(path) for (number, broker), path in log_dirs.items()}
            self._bench.admin.alter_replica_log_dirs(wanted)

    def to_copy_bytes(self, chosen: Collection[Group]) -> int:
        """Return the bytes that new replicas of some groups have to copy: their partitions' largest logs."""
        sizes = self._log_sizes()
        return sum(
            _largest_log_bytes(number, group, sizes) * len(group.adding) for number, group in self._moving_of(chosen)
        )

    def missing_bytes(self, chosen: Collection[Group] | None = None) -> int:
        """Return how much smaller new logs are than the largest original one of their partition.

        Args:
            chosen: groups that count; all if None. Brokers that are down have no logs.
        """
        sizes = self._log_sizes()
        return sum(_missing(number, group, sizes) for number, group in self._moving_of(chosen))

    def _moving_of(self, chosen: Collection[Group] | None) -> list[tuple[int, Group]]:
        numbered = enumerate(self._partitions)
        return [(number, group) for number, group in numbered if group.moves and (chosen is None or group in chosen)]

    def _log_sizes(self) -> dict[tuple[int, int], int]:
        alive = [broker for broker in self._bench.brokers if broker not in self._down]
        return {(log["partition_index"], broker): log["partition_size"] for broker, _, log in self._logs(alive)}

    def _logs(self, brokers: Sequence[int]) -> Iterator[tuple[int, Path, Mapping[str, Any]]]:
        answer = self._bench.retry(lambda: self._bench.admin.describe_log_dirs(brokers=brokers))
        return replica_logs(answer, self._name)

    def swap_log_dirs(self, broker: int, chosen: Collection[int]) -> int:
        """Move replicas of some partitions on a broker to its other log directory, and return their number."""
        first, second = self._bench.log_dir(broker), self._bench.log_dir(broker, second=True)
        now = {log["partition_index"]: path for _, path, log in self._logs([broker])}
        swapped = {(n, broker): second if path == first else first for n, path in now.items() if n in chosen}
        self.assign_log_dirs(swapped)
        return len(swapped)

    def limit_log_dir_moves(self, broker: int, bytes_per_s: int) -> None:
        """Limit the rate of copies between the log directories of a broker."""
        link = AdminConnection(self._bench.settings.cluster)
        try:
            alter_configs(link, [ConfigChange(BROKER, str(broker), {_LOG_DIRS_RATE: str(bytes_per_s)})], _ALTER_S)
        finally:
            link.close()


def _largest_log_bytes(number: int, group: Group, sizes: Mapping[tuple[int, int], int]) -> int:
    return max((sizes.get((number, broker), 0) for broker in group.before), default=0)


def _missing(number: int, group: Group, sizes: Mapping[tuple[int, int], int]) -> int:
    largest_bytes = _largest_log_bytes(number, group, sizes)
    return sum(max(0, largest_bytes - sizes.get((number, broker), 0)) for broker in group.adding)
