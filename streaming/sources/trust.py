"""Which ticks are believed: whoever may write to the topic could else silence a cluster, or make one up."""

from __future__ import annotations

from collections.abc import Callable, Collection
from dataclasses import dataclass

from schemas.bounds import TICK_OFF_S


@dataclass(frozen=True)
class Trust:
    """What is known of ticks that may come.

    Attributes:
        clusters: names of those that are configured here; none: ticks of any are believed.
        clock_ms: gives the time now, epoch milliseconds; None: it is not known.
    """

    clusters: Collection[str] = ()
    clock_ms: Callable[[], int] | None = None

    def doubt(self, cluster: str, tick_ms: int, record_ms: int) -> str | None:
        """Return why a tick is not believed; None: it is.

        Args:
            cluster: whose tick it is, by its own word.
            tick_ms: its time, epoch milliseconds.
            record_ms: time of its record in the topic, epoch milliseconds.
        """
        if self.clusters and cluster not in self.clusters:
            return "no configuration names this cluster"
        if abs(tick_ms - record_ms) > TICK_OFF_S * 1000:
            return f"its time is more than {TICK_OFF_S} s off that of its record"
        if self.clock_ms is not None and tick_ms - self.clock_ms() > TICK_OFF_S * 1000:
            return f"its time is more than {TICK_OFF_S} s ahead of the clock of this machine"
        return None


# Ticks of any cluster and time, as far as their records bear them out.
ANY = Trust()
