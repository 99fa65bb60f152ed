"""Since when logs have ended where they end now."""

from __future__ import annotations

from collections.abc import Collection

from cluster.model import TopicPartition


class UnchangedEnds:
    """The end of each watched log, and the earliest reading since which it has been the same.

    Apart from the samples that rates are taken from, which reach back little further than a rate window: a follower's
    partitions are served in turn, so that one of many new replicas gets nothing for longer than that.
    """

    def __init__(self) -> None:
        self._ends: dict[int, dict[TopicPartition, tuple[int, int]]] = {}

    def add(self, broker: int, name: TopicPartition, log_end_offset: int, read_ms: int) -> int:
        """Take in a reading of a log's end and return since when it has been the same, epoch milliseconds."""
        ends = self._ends.setdefault(broker, {})
        known = ends.get(name)
        if known is None or known[0] != log_end_offset:
            known = ends[name] = (log_end_offset, read_ms)
        return known[1]

    def forget(self, broker: int) -> None:
        """Drop all logs of a broker: they are the same since the next reading."""
        self._ends.pop(broker, None)

    def keep_only(self, broker: int, names: Collection[TopicPartition]) -> None:
        """Drop the logs that a broker that answered does not have any more."""
        ends = self._ends.get(broker, {})
        for name in [name for name in ends if name not in names]:
            del ends[name]

    def forget_keys(self, names: Collection[TopicPartition]) -> None:
        """Drop some logs on every broker."""
        for ends in self._ends.values():
            for name in names:
                ends.pop(name, None)

    def keep_brokers(self, brokers: Collection[int]) -> None:
        """Drop brokers that the cluster does not name any more."""
        for broker in [broker for broker in self._ends if broker not in brokers]:
            del self._ends[broker]

    def shift(self, step_ms: int) -> None:
        """Move all times along with a clock that was set."""
        for ends in self._ends.values():
            for name, (log_end_offset, since_ms) in ends.items():
                ends[name] = (log_end_offset, since_ms + step_ms)

    def __len__(self) -> int:
        return sum(len(ends) for ends in self._ends.values())
