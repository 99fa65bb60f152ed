"""A running cluster: its metadata, throttles, metrics and log directories, read on one connection."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Set
from contextlib import suppress
from dataclasses import dataclass, replace
from types import TracebackType

from headroom.cluster.admin.elect_leaders import ElectionResults, elect_preferred
from headroom.cluster.admin.features import read_waits_for_kept
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.elections.leadership import (
    LeadershipSnapshot,
    followers_behind,
    leadership_of,
    unchanged_partitions,
)
from headroom.cluster.elections.traffic import CounterSample, Traffic, traffic_between
from headroom.cluster.live.plan_state import KnownRates, cluster_state_of
from headroom.cluster.live.running import Reassignment, running_reassignments
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading, describe_log_dirs
from headroom.cluster.log_dirs.untiered import with_untiered_bytes
from headroom.cluster.metadata.snapshot_reader import SnapshotReader, read_snapshot_once
from headroom.cluster.metrics.broker_reads import BrokerMetricsReader
from headroom.cluster.metrics.factory import metrics_source
from headroom.cluster.metrics.mbeans import TICK_AND_CONSUMED, ReadScope
from headroom.cluster.metrics.read_planner import ReadPlanner
from headroom.cluster.model import BrokerConfigs, BrokerRead, BrokerThrottles, Snapshot
from headroom.cluster.throttles.broker_rates import read_configs, read_default_rates, read_rates
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

# The first JMX read also loads stubs and classes.
_READ_S = 10.0
# A command may wait longer than a tick for the metadata of very many partitions.
_METADATA_S = 30.0
_CONFIG_MAX_AGE_S = 30.0
# Leaders may have changed since an older read, so no plan is made from it.
_MAX_AGE_MS = 30_000


@dataclass(frozen=True)
class _Measurement:
    """Two readings of all brokers, some seconds apart.

    Attributes:
        snapshot: the metadata at the second reading.
        reads: the second reading by broker.
        earlier: counters of the first reading.
        traffic: rates between the two.
    """

    snapshot: Snapshot
    reads: dict[int, BrokerRead]
    earlier: CounterSample
    traffic: Traffic


class LiveCluster:
    """Reads a running cluster on its own connections, and requests elections.

    Args:
        settings: the cluster and the metrics source.
        scope: kinds of metrics that are read.
        sleep: waits for the given seconds.
        clock_ms: time now, epoch milliseconds.
    """

    def __init__(
        self,
        settings: Settings,
        scope: ReadScope = TICK_AND_CONSUMED,
        sleep: Callable[[float], None] = time.sleep,
        clock_ms: Callable[[], int] = lambda: time.time_ns() // 1_000_000,
    ) -> None:
        self._name = settings.cluster.name
        self._volumes = settings.cluster.log_dir_volumes
        self.timeout_s = settings.cluster.request_timeout_ms / 1000
        self.connection = AdminConnection(settings.cluster)
        self._source = metrics_source(settings.collect)
        self._is_started = False
        self._metadata = SnapshotReader(self.connection, max(_METADATA_S, self.timeout_s), _CONFIG_MAX_AGE_S)
        self._broker_reader = BrokerMetricsReader(self.connection, self._source, settings.collect)
        self._plans = ReadPlanner(scope)
        self._sleep, self._measure_s = sleep, settings.collect.measure_s
        self._clock_ms = clock_ms
        self._waits_for_kept: bool | None = None
        self._last: Snapshot | None = None

    def __enter__(self) -> LiveCluster:
        """Connect and return this object.

        Raises:
            HeadroomError: no broker could be reached.
        """
        self.connection.client()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Close the connections."""
        self._source.stop()
        self.connection.close()

    def snapshot(self) -> Snapshot:
        """Return the metadata: topics, leaders, reassignments and throttled replica lists.

        Raises:
            HeadroomError: it could not be read.
        """
        snapshot = read_snapshot_once(self._metadata)
        if max(snapshot.ages_ms.values(), default=0) > _MAX_AGE_MS:
            rule = f"did not return all of its partitions within {_MAX_AGE_MS // 1000} s"
            raise HeadroomError("the cluster", rule, "See that its brokers are not overloaded, then try again.")
        self._last = snapshot
        return snapshot

    def mark_stale(self, topics: Collection[str]) -> None:
        """Mark topics that have been changed: the next snapshot reads them first."""
        self._metadata.mark_stale(topics)

    def partitions(self) -> Set[TopicPartition]:
        """Return the names of all partitions, from the metadata alone.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        return self.snapshot().partitions.keys()

    def throttles(self) -> ThrottleState:
        """Return the rates and lists in force; every broker reports its own rates.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        snapshot = self.snapshot()
        rates = self.rates([broker for broker, info in snapshot.brokers.items() if info.alive])
        return ThrottleState.of_snapshot(snapshot, rates, read_default_rates(self.connection, self.timeout_s))

    def reassignments(self) -> list[Reassignment]:
        """Return all running reassignments, sorted by topic and partition, without the metadata of other partitions.

        Raises:
            HeadroomError: no broker listed them, or the user lacks the permission.
        """
        return running_reassignments(self.connection, self.timeout_s)

    def rates(self, brokers: Collection[int]) -> dict[int, BrokerThrottles]:
        """Return the rates in force on brokers; ``known`` is false where a broker did not report them."""
        return read_rates(self.connection, brokers, self.timeout_s)

    def configs(self, brokers: Collection[int]) -> dict[int, BrokerConfigs]:
        """Return the configuration of brokers; everything is unknown where a broker did not report it."""
        return read_configs(self.connection, brokers, self.timeout_s)

    def log_dirs(self, brokers: Collection[int], names: Collection[TopicPartition] | None = None) -> LogDirsReading:
        """Return the log directories of brokers, with the logs of some partitions, or of all if None.

        What is in remote storage is known of topics in the last snapshot.
        """
        read = describe_log_dirs(self.connection, brokers, self.timeout_s, names, self._volumes)
        if self._last is None:
            return read
        return replace(read, brokers=with_untiered_bytes(self.connection, self._last, read.brokers, self.timeout_s))

    def state(self, names: Collection[TopicPartition] | None, known: KnownRates | None = None) -> ClusterState:
        """Return the state that a plan rests on.

        Args:
            names: partitions whose log sizes are read from metrics; None: those that are being reassigned.
            known: write rates; if None, two readings ``collect.measure_s`` apart measure them.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        if known is None:
            return self.measured_state(names)[0]
        snapshot = self.snapshot()
        return self._state_of(snapshot, self._read(snapshot, names), known)

    def measured_state(self, names: Collection[TopicPartition] | None) -> tuple[ClusterState, Traffic]:
        """Return the state that a plan rests on, with write rates of two readings ``collect.measure_s`` apart.

        Args:
            names: partitions whose log sizes and rates are read; None: those that are being reassigned.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        reading = self._measure(names)
        rates = KnownRates(reading.traffic.written, f"two readings {self._measure_s:g} s apart")
        return self._state_of(reading.snapshot, reading.reads, rates), reading.traffic

    def waits_for_kept(self, snapshot: Snapshot) -> bool | None:
        """Return whether reassignments end only once every replica that stays is in sync, as before Kafka 4.3.

        It matters only while a broker is down, so only then is it read. What is known is not read again.

        Args:
            snapshot: the metadata.

        Returns:
            None if unknown, or if no broker is down.

        Raises:
            HeadroomError: no broker could be reached at all.
        """
        if self._waits_for_kept is None and not all(info.alive for info in snapshot.brokers.values()):
            self._waits_for_kept = read_waits_for_kept(self.connection, self.timeout_s)
        return self._waits_for_kept

    def _state_of(self, snapshot: Snapshot, reads: dict[int, BrokerRead], known: KnownRates) -> ClusterState:
        state = cluster_state_of(self._name, self._clock_ms(), snapshot, reads, known)
        return replace(state, waits_for_kept=self.waits_for_kept(snapshot))

    def leadership(self) -> LeadershipSnapshot:
        """Return the leaders now, from the metadata alone.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        return leadership_of(self.snapshot())

    def leadership_with_traffic(self, watched: Collection[TopicPartition] = ()) -> LeadershipSnapshot:
        """Return the leaders now, with throttles and the traffic during this call (``collect.measure_s`` seconds).

        Args:
            watched: partitions whose followers are checked for falling behind.

        Raises:
            HeadroomError: the metadata could not be read.
        """
        reading = self._measure(watched)
        partitions = [reading.snapshot.partitions[name] for name in watched if name in reading.snapshot.partitions]
        behind = followers_behind(partitions, reading.earlier.metrics, CounterSample.of(reading.reads).metrics)
        return replace(leadership_of(reading.snapshot, reading.reads, reading.traffic), behind=behind)

    def elect(self, names: Collection[TopicPartition]) -> ElectionResults:
        """Request preferred leader elections of these partitions and return the result of each.

        Raises:
            HeadroomError: no broker accepted the request, or the user lacks the permission.
        """
        return elect_preferred(self.connection, names, self.timeout_s)

    def _measure(self, names: Collection[TopicPartition] | None) -> _Measurement:
        before = self.snapshot()
        earlier = CounterSample.of(self._read(before, names))
        self._sleep(self._measure_s)
        now = self.snapshot()
        reads = self._read(now, names)
        traffic = traffic_between(unchanged_partitions(before, now), earlier, CounterSample.of(reads))
        return _Measurement(now, reads, earlier, traffic)

    def _read(self, snapshot: Snapshot, names: Collection[TopicPartition] | None) -> dict[int, BrokerRead]:
        """Return the metrics and rates of all brokers, with the logs of some partitions; of moving ones if None."""
        if not self._is_started:
            self._is_started = True
            # Without the source there are no rates; every broker's read then has the error.
            with suppress(HeadroomError):
                self._source.start()
        moving = [name for name, partition in snapshot.partitions.items() if partition.moving]
        watched = moving if names is None else [name for name in names if name in snapshot.partitions]
        return self._broker_reader.read(snapshot.brokers, self._plans.of(snapshot, watched), _READ_S)


def read_throttles(settings: Settings) -> ThrottleState:
    """Return the rates and lists in force, on a connection of its own.

    Raises:
        HeadroomError: the cluster could not be reached, or did not return its partitions.
    """
    with LiveCluster(settings) as cluster:
        return cluster.throttles()
