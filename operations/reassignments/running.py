"""Running reassignments of a cluster."""

from __future__ import annotations

from headroom.cluster.live.live_cluster import LiveCluster
from headroom.cluster.live.running import Reassignment
from headroom.schemas.config import Settings


def read_reassignments(settings: Settings) -> list[Reassignment]:
    """Return all running reassignments, sorted by topic and partition.

    Raises:
        HeadroomError: no broker could be reached or listed them, or the user lacks the permission.
    """
    with LiveCluster(settings) as cluster:
        return cluster.reassignments()
