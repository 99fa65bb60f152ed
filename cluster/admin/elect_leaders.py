"""Requests preferred leader elections and checks every answer."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import ElectionNotNeededError, NotControllerError
from kafka.protocol.admin import ElectLeadersRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.controller_requests import ControllerRequest
from headroom.cluster.connection.failover import BrokerFailover
from headroom.schemas.keys import TopicPartition

# Kafka's ElectionType.PREFERRED.
_PREFERRED = 0
_SUBJECT = "the election"
_NO_ANSWER = "no answer"


@dataclass(frozen=True)
class ElectionResults:
    """Result of each partition of a request.

    Attributes:
        elected: partitions whose preferred replica was elected.
        not_needed: partitions that already had their preferred leader.
        refused: partitions without an election, with the reason.
    """

    elected: tuple[TopicPartition, ...] = ()
    not_needed: tuple[TopicPartition, ...] = ()
    refused: Mapping[TopicPartition, str] = field(default_factory=dict)


def elect_preferred(
    connection: AdminConnection, names: Collection[TopicPartition], timeout_s: float
) -> ElectionResults:
    """Request preferred leader elections of some partitions and return the result of each.

    A retry after a missing answer is safe: a partition that has its preferred leader needs no election.

    Args:
        connection: the admin connection.
        names: the partitions, at least one, because Kafka takes an empty list as all partitions.
        timeout_s: longest wait for the answer of one broker, seconds; all brokers together have twice that.

    Raises:
        HeadroomError: no broker accepted the request, or the user lacks the permission.
    """
    if not names:
        raise ValueError("an election names its partitions: none would mean those of the whole cluster")
    request = ElectLeadersRequest(
        election_type=_PREFERRED, topic_partitions=_by_topic(names), timeout_ms=int(timeout_s * 1000)
    )
    asked = ControllerRequest(request, _SUBJECT, "is not allowed", "ALTER", "was taken by no broker", "none is known")
    return _results(names, asked.send(BrokerFailover.for_command(connection, timeout_s), _error_code))


def _by_topic(names: Collection[TopicPartition]) -> list[Any]:
    return [
        ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition for _, partition in of_topic])
        for topic, of_topic in groupby(sorted(names), key=lambda name: name[0])
    ]


def _error_code(answer: Any) -> int:
    """Return the error code of a whole answer: its own, or NotController if every partition has it.

    In ZooKeeper mode a broker that is not the controller returns NotController per partition. Version 0 of the answer
    has no error code of its own.
    """
    if answer.API_VERSION >= 1 and answer.error_code:
        return int(answer.error_code)
    codes = {p.error_code for r in answer.replica_election_results for p in r.partition_result}
    return int(NotControllerError.errno) if codes == {NotControllerError.errno} else 0


def _results(names: Collection[TopicPartition], answer: Any) -> ElectionResults:
    by_partition = {(r.topic, p.partition_id): p for r in answer.replica_election_results for p in r.partition_result}
    results = {name: _result(by_partition.get(name)) for name in sorted(names)}
    return ElectionResults(
        tuple(name for name, error in results.items() if error is None),
        tuple(name for name, error in results.items() if error == ElectionNotNeededError.message),
        {n: error for n, error in results.items() if error not in (None, ElectionNotNeededError.message)},
    )


def _result(by_partition: Any) -> str | None:
    """Return Kafka's name of a partition's error; None if it was elected."""
    if by_partition is None:
        return _NO_ANSWER
    if not by_partition.error_code:
        return None
    return str(kafka_errors.for_code(by_partition.error_code).message)
