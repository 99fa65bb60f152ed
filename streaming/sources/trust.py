"""Trust in ticks: which ones are evaluated.

Without these checks, anybody with write access to the topic could hide the state of a cluster, or invent a cluster.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from headroom.schemas.bounds import TICK_OFF_S


@dataclass(frozen=True)
class Trust:
    """Conditions of trusted ticks.

    Attributes:
        clusters: names of the configured clusters. Empty: ticks of all clusters are trusted.
        clock_ms: returns the time now, epoch milliseconds; None if ticks are not compared with a clock.
    """

    clusters: Collection[str] = ()
    clock_ms: Callable[[], int] | None = None

    def distrust(self, cluster: str, tick_ms: int, record_ms: int) -> str | None:
        """Return why a tick is not trusted; None if it is.

        Args:
            cluster: cluster that the tick names.
            tick_ms: time of the tick, epoch milliseconds.
            record_ms: time of its record in the topic, epoch milliseconds.
        """
        if self.clusters and cluster not in self.clusters:
            return "no configuration names this cluster"
        if abs(tick_ms - record_ms) > TICK_OFF_S * 1000:
            return f"its time is more than {TICK_OFF_S} s off that of its record"
        if self.clock_ms is not None and tick_ms - self.clock_ms() > TICK_OFF_S * 1000:
            return f"its time is more than {TICK_OFF_S} s ahead of the clock of this machine"
        return None


# Trust in ticks of any cluster, and of any time near that of their records.
ANY = Trust()
