"""The two clusters of a migration under way: the target has to answer, the origin need not."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import NamedTuple

from headroom.cluster.migration.migration_cluster import MigrationCluster
from headroom.operations.migration.clusters import MigrationClusters, require_origin, require_other_cluster
from headroom.schemas.config import Settings


class RunningClusters(NamedTuple):
    """The two clusters.

    Attributes:
        origin: cluster that topics migrate from; it is connected by the first call, which raises if it is down.
        target: cluster that they migrate to, connected.
    """

    origin: MigrationCluster
    target: MigrationCluster

    def both(self) -> MigrationClusters:
        """Return both with their topics.

        Raises:
            HeadroomError: one did not answer, or both are the same.
        """
        clusters = MigrationClusters(self.origin, self.target, self.origin.topics(), self.target.topics())
        require_other_cluster(clusters)
        return clusters


@contextmanager
def running_clusters(settings: Settings) -> Iterator[RunningClusters]:
    """Yield the clusters of the settings, and close the connections at the end.

    Raises:
        HeadroomError: no origin is set, or the target could not be reached.
    """
    require_origin(settings)
    origin_settings = settings.migration.origin
    origin = MigrationCluster(origin_settings, origin_settings.name)
    with ExitStack() as stack:
        target = stack.enter_context(MigrationCluster(settings.cluster, settings.cluster.name))
        # Not entered: that would connect to it.
        stack.push(origin)
        yield RunningClusters(origin, target)
