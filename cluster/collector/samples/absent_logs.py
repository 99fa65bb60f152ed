"""Replicas of which their broker answers, but shows no log.

Kafka does not tell of every replica whose log directory has failed: the controller learns where a new replica's log is
from its broker, and of the replicas that a reassignment adds Kafka 4.3 does not say so. In the metadata such a replica
is as well as any other, and the move waits for it for ever.
"""

from __future__ import annotations

from collections.abc import Collection

from cluster.model import Partition, TopicPartition

# A broker makes the log of a new replica within a second of the reassignment; and readings fail now and then.
ABSENT_MS = 10_000


class AbsentLogs:
    """Since when brokers have answered without the log of a replica that is out of the ISR."""

    def __init__(self) -> None:
        self._since_ms: dict[tuple[TopicPartition, int], int] = {}

    def of(self, tick_ms: int, partition: Partition, answered: Collection[int], shown: Collection[int]) -> list[int]:
        """Return the brokers whose replica of a partition has had no log for ten seconds or longer.

        What one broker shows all show: only where the leader's log was read the others' are missed.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            partition: called with every tick in which it is watched.
            answered: brokers that told of their logs in this tick; of others nothing is known now.
            shown: those that showed a log of the partition.
        """
        found = []
        for broker in partition.replicas:
            key = (partition.name, broker)
            if broker in shown or broker in partition.isr:
                self._since_ms.pop(key, None)
                continue
            if broker not in answered or partition.leader not in shown:
                continue
            if tick_ms - self._since_ms.setdefault(key, tick_ms) >= ABSENT_MS:
                found.append(broker)
        return found

    def keep_only(self, watched: Collection[TopicPartition]) -> None:
        """Forget partitions that are watched no more."""
        self._since_ms = {key: since_ms for key, since_ms in self._since_ms.items() if key[0] in watched}

    def shift(self, step_ms: int) -> None:
        """Move all times along with a clock that was set."""
        self._since_ms = {key: since_ms + step_ms for key, since_ms in self._since_ms.items()}

    def __len__(self) -> int:
        return len(self._since_ms)
