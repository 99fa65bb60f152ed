"""How fast the logs of the origin grow, and which have stopped growing, from the readings of a run."""

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
        self._same_since_s: dict[TopicPartition, float] = {}

    def add(self, at_s: float, ends: Mapping[TopicPartition, int]) -> None:
        """Add a reading.

        Args:
            at_s: its time, monotonic seconds.
            ends: log ends; partitions that did not answer are missing.
        """
        before = self._readings[-1][1] if self._readings else {}
        self._same_since_s = {
            name: self._same_since_s[name] if before.get(name) == end and name in self._same_since_s else at_s
            for name, end in ends.items()
        }
        self._readings.append((at_s, ends))
        # The first one that is older is kept, so that the whole time is covered.
        while len(self._readings) > 1 and self._readings[1][0] <= at_s - max(self._measure_s, self._quiet_s):
            self._readings.popleft()

    def is_quiet(self, name: TopicPartition) -> bool:
        """Return whether a log has not grown for so long; False while it does not answer."""
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
