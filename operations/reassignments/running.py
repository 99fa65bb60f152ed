"""Running reassignments of a cluster."""

from __future__ import annotations

from cluster.live.live_cluster import LiveCluster
from cluster.live.running import Reassignment
from schemas.config import Settings


def read_reassignments(settings: Settings) -> list[Reassignment]:
    """Return all running reassignments, sorted by topic and partition.

    Raises:
        HeadroomError: no broker could be reached or listed them, or the user lacks the permission.
    """
    with LiveCluster(settings) as cluster:
        return cluster.reassignments()
