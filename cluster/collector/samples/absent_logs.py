"""Detection of replicas whose broker answers but has no log of them.

Kafka does not report every replica whose log directory failed. For replicas that a reassignment adds, Kafka 4.3 does
not mark them offline. In the metadata such a replica looks healthy, and the reassignment never ends.
"""

from __future__ import annotations

from collections.abc import Collection

from headroom.cluster.model import Partition
from headroom.schemas.keys import TopicPartition

# A broker creates the log of a new replica within 1 s of the reassignment; the rest allows for failed readings.
ABSENT_MS = 10_000


class AbsentLogs:
    """Times since which brokers have answered without the log of an out-of-sync replica."""

    def __init__(self) -> None:
        self._since_ms: dict[tuple[TopicPartition, int], int] = {}

    def of(self, tick_ms: int, partition: Partition, answered: Collection[int], shown: Collection[int]) -> list[int]:
        """Return the brokers whose replica of a partition has had no log for ten seconds or longer.

        All brokers export the same metrics, so a missing log counts only if the leader's log was read.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            partition: a watched partition; call once per tick while it is watched.
            answered: brokers that reported their logs in this tick; the others are unknown.
            shown: brokers that reported a log of the partition.
        """
        absent = []
        for broker in partition.replicas:
            key = (partition.name, broker)
            if broker in shown or broker in partition.isr:
                self._since_ms.pop(key, None)
                continue
            if broker not in answered or partition.leader not in shown:
                continue
            if tick_ms - self._since_ms.setdefault(key, tick_ms) >= ABSENT_MS:
                absent.append(broker)
        return absent

    def keep_only(self, watched: Collection[TopicPartition]) -> None:
        """Drop the partitions that are no longer watched."""
        self._since_ms = {key: since_ms for key, since_ms in self._since_ms.items() if key[0] in watched}

    def shift(self, step_ms: int) -> None:
        """Shift all times after a clock step."""
        self._since_ms = {key: since_ms + step_ms for key, since_ms in self._since_ms.items()}

    def __len__(self) -> int:
        return len(self._since_ms)
