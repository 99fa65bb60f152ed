"""Snapshots of the cluster's metadata: topics, leaders, reassignments and throttled replica lists."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeConfigsRequest, ListPartitionReassignmentsRequest

from headroom.cluster.admin.config_keys import BROKER, BROKER_KEYS, leader_rebalance_of, rates_of, replication_of
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.cluster.connection.refusal import HANGS, NO_ANSWER
from headroom.cluster.metadata.topic_configs import TopicConfigs
from headroom.cluster.metadata.topic_refresh import TopicRefresh
from headroom.cluster.model import Broker, BrokerConfigs, Partition, Snapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import duration_text

# Half the time: without an answer the last reassignments are used, and the brokers must still be read.
_REASSIGNMENTS_TIME_SHARE = 0.5
# A controller is elected within some 15 s. Without one for longer, brokers go on reporting leaders, ISR and dead
# brokers as they were last, which would pass for a healthy cluster.
_UNREAD_REASSIGNMENTS_S = 30.0
# Adding and removing replicas.
_Reassignment = tuple[tuple[int, ...], tuple[int, ...]]


class SnapshotReader:
    """Reads a snapshot per tick from any broker that answers, first from the one that answered last.

    Args:
        connection: the admin connection.
        timeout_s: longest wait for one snapshot's metadata, seconds.
        config_max_age_s: maximum age of the configuration of a topic without lists and reassignments, seconds.
        clock: monotonic seconds.
        metadata_max_age_s: on clusters with very many partitions, maximum age of topics without changes, seconds;
            on others every snapshot reads all topics.
        reassignments_share: share of ``timeout_s`` for the reassignments.
    """

    def __init__(
        self,
        connection: AdminConnection,
        timeout_s: float,
        config_max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
        metadata_max_age_s: float = 0.0,
        reassignments_share: float = _REASSIGNMENTS_TIME_SHARE,
    ) -> None:
        self._failover = BrokerFailover(connection, timeout_s, clock)
        self._topics = TopicRefresh(self._failover, timeout_s, metadata_max_age_s, clock)
        self._configs = TopicConfigs(self._failover, config_max_age_s, clock)
        self._timeout_s = timeout_s
        self._reassignments_share = reassignments_share
        self._clock = clock
        self._last: Snapshot | None = None
        self._last_reassignments: dict[TopicPartition, _Reassignment] = {}
        # When the reassignments could not be read for the first time since they were; None if they could.
        self._unread_since_s: float | None = None
        self._addresses: dict[int, Broker] = {}

    def snapshot(self) -> Snapshot:
        """Return a snapshot of the cluster.

        Raises:
            MetadataError: topics or reassignments could not be read.
            HeadroomError: no broker could be reached at all.
        """
        began_s, cache = self._clock(), self._topics.cache
        brokers = self._topics.read(_topics_of(self._last_reassignments) | self._configs.listed_topics())
        reassignments = self._reassignments()
        moving = _topics_of(reassignments)
        # One that has ended since its topic was read, or that the broker does not know yet to have ended.
        self._topics.mark_stale(_topics_of(self._last_reassignments.keys() - reassignments.keys()))
        configs = self._configs.read(cache.ids(), moving)
        # Topics whose reassignment or list is new were not read yet in this snapshot.
        newly_moving = [
            t for t in moving | self._configs.listed_topics() if t in cache and cache.last_read_s(t) < began_s
        ]
        if newly_moving:
            self._topics.read_named(newly_moving)
        partitions = _with_reassignments(cache.partitions(), reassignments)
        with_replicas = self._brokers(brokers, partitions)
        self._last_reassignments = reassignments
        is_read = self._unread_since_s is None
        self._last = Snapshot(with_replicas, partitions, cache.ids(), configs, cache.ages_ms(began_s), is_read)
        return self._last

    def mark_stale(self, topics: Collection[str]) -> None:
        """Mark topics, cached or not, that may have changed since they were read: they are read first."""
        self._topics.mark_stale(topics)

    def _brokers(self, described: Sequence[Any], partitions: Mapping[TopicPartition, Partition]) -> dict[int, Broker]:
        alive = {b.node_id: Broker(b.node_id, b.host, b.port, True, b.rack) for b in described}
        self._addresses |= alive
        with_replicas = {replica for p in partitions.values() for replica in p.replicas}
        down = {
            b: replace(self._addresses.get(b, Broker(b, None, None, False)), alive=False)
            for b in with_replicas - set(alive)
        }
        return alive | down

    def _reassignments(self) -> dict[TopicPartition, _Reassignment]:
        request = ListPartitionReassignmentsRequest(timeout_ms=int(self._timeout_s * 1000), topics=None)
        try:
            answer = self._failover.send_to_any_forwarding("reassignments", request, self._reassignments_share)
            if answer.error_code:
                name = kafka_errors.for_code(answer.error_code).__name__
                raise MetadataError(f"reassignments could not be read ({name})")
        except (MetadataError, HeadroomError) as error:
            self._check_unchanged(str(error))
            return self._last_reassignments
        self._unread_since_s = None
        return {
            TopicPartition(topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
            for topic in answer.topics
            for p in topic.partitions
        }

    def _check_unchanged(self, reason: str) -> None:
        """Check that the reassignments are still those of the last snapshot.

        While a controller is elected, no broker can list reassignments, and none can start or end. A start or an end
        changes the replicas, unless nothing is added. So the same replicas mean the same reassignment.

        Raises:
            MetadataError: the reassignments may have changed, or the cluster has had no controller for long.
        """
        if self._last is None:
            raise MetadataError(f"{reason}, and there is no earlier reading")
        now_s = self._clock()
        self._unread_since_s = now_s if self._unread_since_s is None else self._unread_since_s
        unread_s = now_s - self._unread_since_s
        if unread_s > _UNREAD_REASSIGNMENTS_S:
            raise MetadataError(
                f"{reason} for {duration_text(unread_s)}. See that enough controllers are up: without one, brokers "
                "report leaders and ISR as they were last"
            )
        for name, partition in self._topics.cache.partitions().items():
            before = self._last.partitions.get(name)
            if before is None:
                raise MetadataError(f"{reason}, and {name} is new since they were read")
            if set(before.replicas) != set(partition.replicas):
                raise MetadataError(f"{reason}, and the replicas of {name} changed since they were read")


def read_snapshot_once(reader: SnapshotReader) -> Snapshot:
    """Return a snapshot for a command, with errors for the operator.

    Raises:
        HeadroomError: no broker could be reached, or none returned the metadata.
    """
    try:
        return reader.snapshot()
    except MetadataError as error:
        raise HeadroomError(
            "the cluster", str(error), "Check that its brokers are up and let this user describe it."
        ) from None


def read_broker_configs(connection: AdminConnection, broker: int, timeout_s: float) -> BrokerConfigs:
    """Return a broker's configuration as it reports it: throttle rates, leader balancing and replication.

    Raises:
        KafkaError: the broker did not answer in time, or refused.
    """
    request = DescribeConfigsRequest(
        resources=[(BROKER, str(broker), list(BROKER_KEYS))], include_synonyms=True, min_version=1
    )
    result = connection.send(request, broker, timeout_s).results[0]
    if result.error_code:
        raise kafka_errors.for_code(result.error_code)(result.error_message)
    return BrokerConfigs(rates_of(result.configs), leader_rebalance_of(result.configs), replication_of(result.configs))


def rates_remedy(error: Exception) -> str:
    """Return the remedy for an error of ``read_broker_configs``."""
    if isinstance(error, NO_ANSWER):
        return HANGS
    if isinstance(error, kafka_errors.AuthorizationError):
        return "Grant DESCRIBE_CONFIGS on the cluster to this user."
    return "See that the broker is up and can be reached from here; its log may have the reason."


def _topics_of(reassignments: Iterable[TopicPartition]) -> set[str]:
    return {name.topic for name in reassignments}


def _with_reassignments(
    partitions: Mapping[TopicPartition, Partition], reassignments: Mapping[TopicPartition, _Reassignment]
) -> dict[TopicPartition, Partition]:
    moving = {
        name: replace(partitions[name], adding=adding, removing=removing)
        for name, (adding, removing) in reassignments.items()
        if name in partitions
    }
    return {**partitions, **moving}
