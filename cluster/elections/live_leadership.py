"""The leaders of a running cluster: looked at with the traffic on them, and changed by elections."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
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
from cluster.model import BrokerRead, Partition, Snapshot, TopicPartition
from planning.elections.planner import Name
from schemas.config import Settings
from schemas.errors import HeadroomError

# Counters that are read 5 s apart give rates that are good to some percent.
SAMPLE_S = 5.0
# JMX reads its own stubs and classes first.
_READ_S = 10.0
# A command may wait longer than a tick for the metadata of very many partitions.
_METADATA_S = 30.0
_CONFIG_MAX_AGE_S = 30.0
_MOST_AGE_MS = 30_000


class LiveLeadership:
    """Looks at who leads what, and asks for elections, on connections of its own.

    Args:
        settings: cluster and source of the metrics.
        sleep: waits for some seconds.
    """

    def __init__(self, settings: Settings, sleep: Callable[[float], None] = time.sleep) -> None:
        self._timeout_s = settings.cluster.request_timeout_ms / 1000
        self._connection = AdminConnection(settings.cluster)
        self._source = metrics_source(settings.collect)
        self._metadata = SnapshotReader(self._connection, max(_METADATA_S, self._timeout_s), _CONFIG_MAX_AGE_S)
        self._readers = BrokerMetricsReader(self._connection, self._source, settings.collect)
        self._plans = ReadPlanner(consumed=True)
        self._sleep = sleep

    def __enter__(self) -> LiveLeadership:
        """Return this, connected.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self._connection.client()
        # Without metrics there are no rates, and every broker's reading says why.
        with suppress(HeadroomError):
            self._source.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._source.stop()
        self._connection.close()

    def look(self, watched: Collection[Name] = ()) -> LeadershipSnapshot:
        """Return who leads what now, with throttles and with the traffic of the seconds that this takes.

        Args:
            watched: partitions of which it is told too whether followers fall behind.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        before = self._snapshot()
        earlier = _sample(self._read(before, watched))
        self._sleep(SAMPLE_S)
        now = self._snapshot()
        reads = self._read(now, watched)
        later = _sample(reads)
        traffic = traffic_between(unchanged_partitions(before, now), earlier, later)
        behind = followers_behind(_there(now, watched), earlier.metrics, later.metrics)
        return replace(leadership_of(now, reads, traffic), behind=behind)

    def glance(self) -> LeadershipSnapshot:
        """Return who leads what now, by the metadata alone.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        return leadership_of(self._snapshot())

    def elect(self, names: Collection[Name]) -> ElectionResults:
        """Ask for the election of the preferred leaders of these partitions, and return what became of each.

        Raises:
            HeadroomError: no broker took the request, or this user may not ask.
        """
        return elect_preferred(self._connection, names, self._timeout_s)

    def _snapshot(self) -> Snapshot:
        snapshot = read_snapshot_once(self._metadata)
        if max(snapshot.ages_ms.values(), default=0) > _MOST_AGE_MS:
            rule = f"did not tell all of its partitions within {_MOST_AGE_MS // 1000} s"
            raise HeadroomError("the cluster", rule, "See that its brokers are not overloaded, then try again.")
        return snapshot

    def _read(self, snapshot: Snapshot, watched: Collection[Name]) -> dict[int, BrokerRead]:
        plans = self._plans.of(snapshot, [partition.name for partition in _there(snapshot, watched)])
        return self._readers.read(snapshot.brokers, plans, _READ_S)


def _there(snapshot: Snapshot, names: Collection[Name]) -> list[Partition]:
    """Return the partitions of these that have not been deleted."""
    return [snapshot.partitions[TopicPartition(*n)] for n in names if TopicPartition(*n) in snapshot.partitions]


def _sample(reads: Mapping[int, BrokerRead]) -> CounterSample:
    metrics = {broker: read.metrics for broker, read in reads.items() if read.metrics is not None}
    return CounterSample(
        metrics, {b: read.error or "did not tell" for b, read in reads.items() if read.metrics is None}
    )
