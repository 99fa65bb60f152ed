"""Detects restarts of brokers, after which their counters begin at zero."""

from __future__ import annotations

from headroom.cluster.model import Metrics

# Without a start time: longest time between two readings that a falling counter can tell about, milliseconds. After
# more time a broker that had run for as short a time may have counted further than before.
_LONGEST_GAP_MS = 120_000


class Restarts:
    """Start times of brokers; for those that do not report one, the counters over all their topics.

    These never vanish, and are zero after a restart. A topic's counter may also fall because its leader moved.
    """

    def __init__(self) -> None:
        self._last: dict[int, Metrics] = {}

    def may_have_restarted(self, broker: int, metrics: Metrics) -> bool:
        """Return whether a broker may have restarted since its last reading; true for the first one."""
        before, self._last[broker] = self._last.get(broker), metrics
        if before is None or before.started_ms != metrics.started_ms:
            return True
        return metrics.started_ms is None and not _count_on(before, metrics)


def _count_on(before: Metrics, now: Metrics) -> bool:
    """Return whether the counters over all topics show that a broker has run on."""
    pairs = [
        (earlier, now.counters[meter])
        for meter, earlier in before.counters.items()
        if meter.topic is None and meter.fetcher is None and meter in now.counters
    ]
    return bool(pairs) and all(
        later.value >= earlier.value and later.read_ms - earlier.read_ms <= _LONGEST_GAP_MS for earlier, later in pairs
    )
