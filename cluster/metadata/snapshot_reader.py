"""Snapshots of the cluster's metadata: topics, leaders, reassignments, lists and rates in force."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.admin import DescribeConfigsRequest, ListPartitionReassignmentsRequest

from cluster.admin.config_keys import BROKER, BROKER_KEYS, leader_rebalance_of, rates_of, replication_of
from cluster.connection.admin_connection import AdminConnection
from cluster.connection.failover import BrokerFailover, MetadataError
from cluster.metadata.topic_configs import TopicConfigs
from cluster.metadata.topic_refresh import TopicRefresh
from cluster.model import Broker, BrokerConfigs, Partition, Snapshot, TopicPartition
from schemas.errors import HeadroomError

RATES_REMEDY = "Grant DESCRIBE_CONFIGS on the cluster to this user, and see that the broker is up."
# Half the time: without an answer there is still what was last known, and brokers wait to be read.
_REASSIGNMENTS_SHARE = 0.5
# Adding and removing replicas.
_Reassignment = tuple[tuple[int, ...], tuple[int, ...]]


class SnapshotReader:
    """Reads a snapshot per tick from whichever broker answers, starting with the one that answered last.

    Args:
        connection: the admin connection.
        timeout_s: longest wait for one snapshot's metadata, seconds.
        config_max_age_s: a topic without lists that does not move is asked for lists again after this long.
        clock: monotonic seconds.
        metadata_max_age_s: of very many partitions, those that nothing is known to happen to are read again after
            this long; of few, all are read for every snapshot.
        reassignments_share: of ``timeout_s`` for the reassignments.
    """

    def __init__(
        self,
        connection: AdminConnection,
        timeout_s: float,
        config_max_age_s: float,
        clock: Callable[[], float] = time.monotonic,
        metadata_max_age_s: float = 0.0,
        reassignments_share: float = _REASSIGNMENTS_SHARE,
    ) -> None:
        self._any_broker = BrokerFailover(connection, timeout_s, clock)
        self._topics = TopicRefresh(self._any_broker, timeout_s, metadata_max_age_s, clock)
        self._configs = TopicConfigs(self._any_broker, config_max_age_s, clock)
        self._timeout_s = timeout_s
        self._reassignments_share = reassignments_share
        self._clock = clock
        self._last: Snapshot | None = None
        self._moves: dict[TopicPartition, _Reassignment] = {}
        self._addresses: dict[int, Broker] = {}

    def snapshot(self) -> Snapshot:
        """Return the cluster as it is now.

        Raises:
            MetadataError: topics or reassignments could not be read.
            HeadroomError: no broker could be reached at all.
        """
        began_s, known = self._clock(), self._topics.known
        brokers = self._topics.read(_topics_of(self._moves) | self._configs.listed())
        moves = self._reassignments()
        moving = _topics_of(moves)
        configs = self._configs.read(known.ids(), moving)
        # Those that have just begun to move, or got their lists, are looked at as closely as all that do.
        late = [t for t in moving | self._configs.listed() if t in known and known.read_s(t) < began_s]
        if late:
            self._topics.read_named(late)
        partitions = _with_moves(known.partitions(), moves)
        named = self._brokers(brokers, partitions)
        self._moves = moves
        self._last = Snapshot(named, partitions, known.ids(), configs, known.ages_ms(began_s))
        return self._last

    def mark_stale(self, topics: Collection[str]) -> None:
        """Take note of topics, known or not, that may have changed since they were read: they come first now."""
        self._topics.mark_stale(topics)

    def _brokers(self, told: Sequence[Any], partitions: Mapping[TopicPartition, Partition]) -> dict[int, Broker]:
        alive = {b.node_id: Broker(b.node_id, b.host, b.port, True) for b in told}
        self._addresses |= alive
        named = {replica for p in partitions.values() for replica in p.replicas}
        gone = {
            b: replace(self._addresses.get(b, Broker(b, None, None, False)), alive=False) for b in named - set(alive)
        }
        return alive | gone

    def _reassignments(self) -> dict[TopicPartition, _Reassignment]:
        request = ListPartitionReassignmentsRequest(timeout_ms=int(self._timeout_s * 1000), topics=None)
        try:
            answer = self._any_broker.send_to_any_forwarding("reassignments", request, self._reassignments_share)
            if answer.error_code:
                raise MetadataError(f"reassignments could not be read ({_error_name(answer.error_code)})")
        except (MetadataError, HeadroomError) as error:
            self._check_carried(str(error))
            return self._moves
        return {
            TopicPartition(topic.name, p.partition_index): (tuple(p.adding_replicas), tuple(p.removing_replicas))
            for topic in answer.topics
            for p in topic.partitions
        }

    def _check_carried(self, reason: str) -> None:
        """Return if the reassignments must still be those of the last snapshot.

        While a new controller is elected nobody can tell the reassignments, and nobody can start or end one. Every
        start and end changes the replicas, or has no adding ones: same replicas, same reassignment.

        Raises:
            MetadataError: they may be others.
        """
        if self._last is None:
            raise MetadataError(f"{reason}, and there is no earlier reading")
        for name, partition in self._topics.known.partitions().items():
            before = self._last.partitions.get(name)
            if before is None:
                raise MetadataError(f"{reason}, and {_text(name)} is new since they were read")
            if set(before.replicas) != set(partition.replicas):
                raise MetadataError(f"{reason}, and the replicas of {_text(name)} changed since they were read")


def read_snapshot_once(reader: SnapshotReader) -> Snapshot:
    """Return a snapshot for a command, whose errors are told to a person.

    Raises:
        HeadroomError: no broker could be reached, or none told the metadata.
    """
    try:
        return reader.snapshot()
    except MetadataError as error:
        raise HeadroomError(
            "the cluster", str(error), "Check that its brokers are up and let this user describe it."
        ) from None


def read_broker_configs(connection: AdminConnection, broker: int, timeout_s: float) -> BrokerConfigs:
    """Return the throttle rates in force on a broker, and how it balances and replicates, as that broker reports it.

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


def _topics_of(moves: Mapping[TopicPartition, _Reassignment]) -> set[str]:
    return {name.topic for name in moves}


def _with_moves(
    partitions: Mapping[TopicPartition, Partition], moves: Mapping[TopicPartition, _Reassignment]
) -> dict[TopicPartition, Partition]:
    moving = {
        name: replace(partitions[name], adding=adding, removing=removing)
        for name, (adding, removing) in moves.items()
        if name in partitions
    }
    return {**partitions, **moving}


def _text(name: TopicPartition) -> str:
    return f"{name.topic}-{name.partition}"


def _error_name(code: int) -> str:
    return str(kafka_errors.for_code(code).__name__)
