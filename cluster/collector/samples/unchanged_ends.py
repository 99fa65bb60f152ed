"""Since when logs have ended where they end now."""

from __future__ import annotations

from cluster.connection.per_broker import PerBroker
from cluster.model import TopicPartition


class UnchangedEnds(PerBroker[TopicPartition, tuple[int, int]]):
    """The end of each watched log, and the earliest reading since which it has been the same.

    Apart from the samples that rates are taken from, which reach back little further than a rate window: a follower's
    partitions are served in turn, so that one of many new replicas gets nothing for longer than that.
    """

    def add(self, broker: int, name: TopicPartition, log_end_offset: int, read_ms: int) -> int:
        """Take in a reading of a log's end and return since when it has been the same, epoch milliseconds."""
        ends = self._kept.setdefault(broker, {})
        known = ends.get(name)
        if known is None or known[0] != log_end_offset:
            known = ends[name] = (log_end_offset, read_ms)
        return known[1]

    def shift(self, step_ms: int) -> None:
        """Move all times along with a clock that was set."""
        for ends in self._kept.values():
            for name, (log_end_offset, since_ms) in ends.items():
                ends[name] = (log_end_offset, since_ms + step_ms)

    def __len__(self) -> int:
        return sum(len(ends) for ends in self._kept.values())
