"""Time since which the end offset of each log is unchanged."""

from __future__ import annotations

from headroom.cluster.connection.per_broker import PerBroker
from headroom.schemas.keys import TopicPartition


class UnchangedEnds(PerBroker[TopicPartition, tuple[int, int]]):
    """End offset of each watched log, with the time of the first reading of that offset.

    The samples of rates do not reach back far enough: a fetcher serves its partitions in turn, so that one of many new
    replicas may get nothing for longer than a rate window.
    """

    def add(self, broker: int, name: TopicPartition, log_end_offset: int, read_ms: int) -> int:
        """Add a reading of a log's end offset and return since when it is unchanged, epoch milliseconds."""
        ends = self._kept.setdefault(broker, {})
        known = ends.get(name)
        if known is None or known[0] != log_end_offset:
            known = ends[name] = (log_end_offset, read_ms)
        return known[1]

    def shift(self, step_ms: int) -> None:
        """Shift all times after a clock step."""
        for ends in self._kept.values():
            for name, (log_end_offset, since_ms) in ends.items():
                ends[name] = (log_end_offset, since_ms + step_ms)

    def __len__(self) -> int:
        return sum(len(ends) for ends in self._kept.values())
