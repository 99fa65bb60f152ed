"""Leadership of a running cluster: reads leaders and traffic, and requests elections."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection
from contextlib import suppress
from dataclasses import replace
from types import TracebackType

from cluster.admin.elect_leaders import ElectionResults, elect_preferred
from cluster.connection.admin_connection import AdminConnection
from cluster.elections.leadership import LeadershipSnapshot, followers_behind, leadership_of, unchanged_partitions
from cluster.elections.traffic import CounterSample, traffic_between
from cluster.metadata.snapshot_reader import SnapshotReader, read_snapshot_once
from cluster.metadata.throttled_partitions import ReadPlanner
from cluster.metrics.broker_reads import BrokerMetricsReader
from cluster.metrics.factory import metrics_source
from cluster.metrics.mbeans import TICK_AND_CONSUMED
from cluster.model import BrokerRead, Partition, Snapshot
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.keys import TopicPartition

# The first JMX read also loads stubs and classes.
READ_S = 10.0
# A command may wait longer than a tick for the metadata of very many partitions.
METADATA_S = 30.0
CONFIG_MAX_AGE_S = 30.0
# Leaders may have changed since an older read, so no plan is made from it.
_MAX_AGE_MS = 30_000


class LiveLeadership:
    """Reads the leadership of a cluster and requests elections, on its own connections.

    Args:
        settings: the cluster and the metrics source.
        sleep: waits for the given seconds.
    """

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._timeout_s = settings.cluster.request_timeout_ms / 1000
        self._connection = AdminConnection(settings.cluster)
        self._source = metrics_source(settings.collect)
        self._metadata = SnapshotReader(self._connection, max(METADATA_S, self._timeout_s), CONFIG_MAX_AGE_S)
        self._broker_reader = BrokerMetricsReader(self._connection, self._source, settings.collect)
        self._plans = ReadPlanner(TICK_AND_CONSUMED)
        self._sleep, self._measure_s = sleep, settings.collect.measure_s

    def __enter__(self) -> LiveLeadership:
        """Connect and return this object.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._connection.client()
        # Without the source there are no rates; every broker's read then has the error.
        with suppress(HeadroomError):
            self._source.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._source.stop()
        self._connection.close()

    def leadership_with_traffic(self, watched: Collection[TopicPartition] = ()) -> LeadershipSnapshot:
        """Return the leaders now, with throttles and the traffic during this call (``collect.measure_s`` seconds).

        Args:
            watched: partitions whose followers are checked for falling behind.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        before = self._snapshot()
        earlier = CounterSample.of(self._read(before, watched))
        self._sleep(self._measure_s)
        now = self._snapshot()
        reads = self._read(now, watched)
        later = CounterSample.of(reads)
        traffic = traffic_between(unchanged_partitions(before, now), earlier, later)
        behind = followers_behind(_existing(now, watched), earlier.metrics, later.metrics)
        return replace(leadership_of(now, reads, traffic), behind=behind)

    def leadership(self) -> LeadershipSnapshot:
        """Return the leaders now, from the metadata alone.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        return leadership_of(self._snapshot())

    def elect(self, names: Collection[TopicPartition]) -> ElectionResults:
        """Request preferred leader elections of these partitions and return the result of each.

        Raises:
            HeadroomError: no broker accepted the request, or the user lacks the permission.
        """
        return elect_preferred(self._connection, names, self._timeout_s)

    def _snapshot(self) -> Snapshot:
        snapshot = read_snapshot_once(self._metadata)
        if max(snapshot.ages_ms.values(), default=0) > _MAX_AGE_MS:
            rule = f"did not return all of its partitions within {_MAX_AGE_MS // 1000} s"
            raise HeadroomError("the cluster", rule, "See that its brokers are not overloaded, then try again.")
        return snapshot

    def _read(self, snapshot: Snapshot, watched: Collection[TopicPartition]) -> dict[int, BrokerRead]:
        plans = self._plans.of(snapshot, [partition.name for partition in _existing(snapshot, watched)])
        return self._broker_reader.read(snapshot.brokers, plans, READ_S)


def _existing(snapshot: Snapshot, names: Collection[TopicPartition]) -> list[Partition]:
    """Return the partitions among ``names`` that still exist."""
    return [snapshot.partitions[name] for name in names if name in snapshot.partitions]
