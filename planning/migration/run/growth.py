"""How fast the logs of the origin's leaders grow, and which have stopped growing, from the readings of a run."""

from __future__ import annotations

from collections import deque
from collections.abc import Mapping

from headroom.planning.migration.readings import growth_per_s
from headroom.schemas.keys import TopicPartition


class LogGrowth:
    """Log ends over the last seconds.

    Args:
        measure_s: time over which rates are measured, seconds.
        quiet_s: time without growth after which a log is quiet, seconds; over it a rate of 0 is measured.
    """

    def __init__(self, measure_s: float, quiet_s: float) -> None:
        self._measure_s = measure_s
        self._quiet_s = quiet_s
        self._readings: deque[tuple[float, Mapping[TopicPartition, int]]] = deque()
        # Ends of the last reading that were high watermarks too.
        self._level: Mapping[TopicPartition, int] = {}
        self._same_since_s: dict[TopicPartition, float] = {}

    def add(self, at_s: float, ends: Mapping[TopicPartition, int], watermarks: Mapping[TopicPartition, int]) -> None:
        """Add a reading.

        A high watermark rests also while a follower hangs: then the leader acknowledges beyond it, or producers wait.

        Args:
            at_s: its time, monotonic seconds.
            ends: ends of the logs on their leaders; partitions that did not answer are missing.
            watermarks: high watermarks.
        """
        before, level = self._level, {name: end for name, end in ends.items() if watermarks.get(name) == end}
        self._same_since_s = {
            name: self._same_since_s.get(name, at_s) if name in level and before.get(name) == level[name] else at_s
            for name in ends
        }
        self._level = level
        self._readings.append((at_s, ends))
        # The first one that is older is kept, so that the whole time is covered.
        while len(self._readings) > 1 and self._readings[1][0] <= at_s - max(self._measure_s, self._quiet_s):
            self._readings.popleft()

    def is_quiet(self, name: TopicPartition) -> bool:
        """Return whether a log has not grown for so long, and all in-sync replicas had it; False if unknown."""
        since_s = self._same_since_s.get(name)
        return since_s is not None and self._readings[-1][0] - since_s >= self._quiet_s

    def offsets_per_s(self, name: TopicPartition) -> float | None:
        """Return the rate at which a log grows; None if it is unknown, or if the log got shorter."""
        if name not in self._same_since_s:
            return None
        rate = self._rate(name, self._measure_s)
        return self._rate(name, max(self._measure_s, self._quiet_s)) if rate == 0 else rate

    def _rate(self, name: TopicPartition, over_s: float) -> float | None:
        now_s, ends = self._readings[-1]
        # The newest reading that is so old.
        for at_s, earlier in reversed(self._readings):
            if now_s - at_s >= over_s and name in earlier:
                return growth_per_s(earlier[name], ends[name], now_s - at_s)
        return None
