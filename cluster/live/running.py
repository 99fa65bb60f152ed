"""Running reassignments as the controller lists them, with the leaders of their partitions."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from typing import Any

from kafka.protocol.admin import ListPartitionReassignmentsRequest
from kafka.protocol.metadata import MetadataRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.controller_requests import ControllerRequest
from headroom.cluster.connection.failover import BrokerFailover, MetadataError
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.reassigned import target_of

_SUBJECT = "the reassignments"
# Limits the size of one answer.
_TOPICS_PER_REQUEST = 500


@dataclass(frozen=True)
class Reassignment:
    """A running reassignment of one partition.

    Attributes:
        name: topic and number of the partition.
        leader: broker id of the leader; None if there is none, or no broker reported it.
        replicas: all current replicas in Kafka's order, including adding and removing replicas.
        adding: replicas that the reassignment adds.
        removing: replicas that it removes at the end.
    """

    name: TopicPartition
    leader: int | None
    replicas: tuple[int, ...]
    adding: tuple[int, ...]
    removing: tuple[int, ...]

    @property
    def target(self) -> tuple[int, ...]:
        """The replicas after the reassignment, the preferred leader first."""
        return target_of(self.replicas, self.removing)


def running_reassignments(connection: AdminConnection, wait_s: float) -> list[Reassignment]:
    """Return all running reassignments, sorted by topic and partition.

    Replicas, adding and removing come from one answer, so that they are consistent even while a reassignment starts or
    ends.

    Args:
        connection: the admin connection.
        wait_s: longest wait for one answer, seconds.

    Raises:
        HeadroomError: no broker could be reached or listed them, or the user lacks the permission.
    """
    answer = _running(connection, wait_s)
    leaders = _leaders(connection, sorted({topic.name for topic in answer.topics}), wait_s)
    reassignments = [
        Reassignment(name, leaders.get(name), tuple(p.replicas), tuple(p.adding_replicas), tuple(p.removing_replicas))
        for topic in answer.topics
        for p in topic.partitions
        for name in (TopicPartition(topic.name, p.partition_index),)
    ]
    return sorted(reassignments, key=lambda r: r.name)


def _running(connection: AdminConnection, wait_s: float) -> Any:
    request = ListPartitionReassignmentsRequest(timeout_ms=int(wait_s * 1000), topics=None)
    asked = ControllerRequest(
        request, _SUBJECT, "may not be seen", "DESCRIBE", "could not be read", "no broker is known"
    )
    return asked.send(BrokerFailover.for_command(connection, wait_s), lambda answer: answer.error_code)


def _leaders(connection: AdminConnection, topics: Collection[str], wait_s: float) -> Mapping[TopicPartition, int]:
    """Return the leaders of the partitions of some topics; one without a leader is missing."""
    brokers, names = BrokerFailover(connection, wait_s), list(topics)
    leaders: dict[TopicPartition, int] = {}
    for start in range(0, len(names), _TOPICS_PER_REQUEST):
        wanted = [MetadataRequest.MetadataRequestTopic(name=n) for n in names[start : start + _TOPICS_PER_REQUEST]]
        request = MetadataRequest(topics=wanted, allow_auto_topic_creation=False)
        try:
            answer = brokers.send_to_any("leaders", request)
        except MetadataError as error:
            raise HeadroomError(_SUBJECT, str(error), "See that the brokers are up.") from None
        reported = ((topic.name, p) for topic in answer.topics for p in topic.partitions)
        leaders |= {TopicPartition(t, p.partition_index): p.leader_id for t, p in reported if p.leader_id >= 0}
    return leaders
