"""A throttled move that never ends, of whose three leaders one after the other is made to starve for a while."""

from __future__ import annotations

from collections.abc import Collection

from benchmarks.scene import Part
from cluster.throttles import apply_rates
from schemas.config import Settings

# A leader requires 2 MB/s, of which its in-sync follower takes 1. A destination gets less than the 1 MB/s that it
# requires: the move outlasts everything, and one alert is active all the time.
PARTS = [Part((a, b), (a, c), 1e6, 20_000_000) for a, b, c in ((1, 2, 3), (2, 3, 1), (3, 1, 2))]
STARVING_BYTES_PER_S = 0.7e6
INBOUND_BYTES_PER_S = 0.5e6


class LeadersInTurn:
    """The leaders of the move, which take turns: an alert that comes back soon takes longer to resolve.

    Args:
        settings: how to reach the cluster.
        enough_bytes_per_s: rate of a leader that does not starve.

    Attributes:
        starved: how often a leader was made to starve.
        leader: whose turn it is.
    """

    def __init__(self, settings: Settings, enough_bytes_per_s: float) -> None:
        self.starved = 0
        self.leader = PARTS[-1].before[0]
        self._settings = settings
        self._enough_bytes_per_s = enough_bytes_per_s

    @property
    def subject(self) -> str:
        """Return what the alert about the leader is about, as its events name it."""
        return f"broker {self.leader} as leader"

    def turn(self, but: Collection[int] = ()) -> None:
        """Go on to the next leader, one that is left out being passed over."""
        leaders = [part.before[0] for part in PARTS]
        at = leaders.index(self.leader) + 1
        self.leader = next(leader for leader in leaders[at:] + leaders[:at] if leader not in but)

    def starve(self) -> None:
        """Give the leader a rate that starves its new replica; what goes wrong is raised."""
        self._apply(STARVING_BYTES_PER_S)
        self.starved += 1

    def relieve(self) -> None:
        """Give the leader a rate that is enough; what goes wrong is raised."""
        self._apply(self._enough_bytes_per_s)

    def _apply(self, bytes_per_s: float) -> None:
        apply_rates(self._settings, {self.leader: round(bytes_per_s)}, ("leader",))
