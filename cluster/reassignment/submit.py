"""Submits and cancels reassignments, with the broker's reason for every partition that it refuses."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import groupby
from typing import Any

import kafka.errors as kafka_errors
from kafka.protocol.admin import AlterPartitionReassignmentsRequest

from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.connection.controller_requests import ControllerRequest
from headroom.cluster.connection.failover import BrokerFailover
from headroom.schemas.keys import TopicPartition

# None cancels the running reassignment of a partition.
Targets = Mapping[TopicPartition, "tuple[int, ...] | None"]

_SUBJECT = "the reassignment"
_NO_ANSWER = "no answer"
# The controller makes at most 10,000 records for one request (Kafka: ControllerResult, MAX_RECORDS_PER_USER_OP), one or
# two for a partition.
_PARTITIONS_PER_REQUEST = 2_000


def submit_reassignments(
    connection: AdminConnection, targets: Targets, timeout_s: float, change_factor: bool = False
) -> dict[TopicPartition, str]:
    """Submit or cancel reassignments, and return by partition why the controller refused it; the others are accepted.

    Sending a request again is harmless: the same target once more changes nothing.

    Args:
        connection: the admin connection.
        targets: target replicas by partition; None to cancel.
        timeout_s: longest wait for the answer of one broker to one request, seconds.
        change_factor: whether a target may change the replication factor. Brokers before Kafka 4.1 always allow it.

    Raises:
        HeadroomError: no broker accepted a request, or the user lacks the permission.
    """
    refused: dict[TopicPartition, str] = {}
    names = sorted(targets)
    for start in range(0, len(names), _PARTITIONS_PER_REQUEST):
        part = names[start : start + _PARTITIONS_PER_REQUEST]
        request = AlterPartitionReassignmentsRequest(
            timeout_ms=int(timeout_s * 1000),
            allow_replication_factor_change=change_factor,
            topics=_by_topic(part, targets),
        )
        asked = ControllerRequest(
            request, _SUBJECT, "is not allowed", "ALTER", "was taken by no broker", "none is known"
        )
        answer = asked.send(BrokerFailover.for_command(connection, timeout_s), lambda given: int(given.error_code))
        refused |= _refusals(part, answer)
    return refused


def _by_topic(names: Sequence[TopicPartition], targets: Targets) -> list[Any]:
    topic_of = AlterPartitionReassignmentsRequest.ReassignableTopic
    return [
        topic_of(
            name=topic,
            partitions=[
                topic_of.ReassignablePartition(
                    partition_index=name.partition,
                    replicas=None if (target := targets[name]) is None else list(target),
                )
                for name in of_topic
            ],
        )
        for topic, of_topic in groupby(names, key=lambda name: name.topic)
    ]


def _refusals(names: Sequence[TopicPartition], answer: Any) -> dict[TopicPartition, str]:
    results = {TopicPartition(t.name, p.partition_index): p for t in answer.responses for p in t.partitions}
    refused = {}
    for name in names:
        result = results.get(name)
        if result is None:
            refused[name] = _NO_ANSWER
        elif result.error_code:
            error = kafka_errors.for_code(result.error_code).__name__
            refused[name] = f"{error}: {result.error_message}" if result.error_message else error
    return refused
