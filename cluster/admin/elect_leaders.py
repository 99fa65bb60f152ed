"""Asking Kafka for preferred leader elections, every answer checked."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from itertools import groupby
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import ElectionNotNeededError, NotControllerError
from kafka.protocol.admin import ElectLeadersRequest

from cluster.connection.admin_connection import AdminConnection
from cluster.connection.controller_requests import ControllerRequest
from planning.elections.planner import Name

_PREFERRED = 0
_SUBJECT = "the election"
_NO_ANSWER = "no answer"


@dataclass(frozen=True)
class ElectionResults:
    """What became of each partition of a request.

    Attributes:
        elected: its preferred replica was elected.
        not_needed: its preferred replica led it already.
        refused: no election, and why.
    """

    elected: tuple[Name, ...] = ()
    not_needed: tuple[Name, ...] = ()
    refused: Mapping[Name, str] = field(default_factory=dict)


def elect_preferred(connection: AdminConnection, names: Collection[Name], timeout_s: float) -> ElectionResults:
    """Ask for the election of the preferred leaders of some partitions, and return what became of each.

    Asking again after a lost answer is safe: a partition that has its preferred leader needs no election.

    Args:
        connection: the admin connection.
        names: the partitions, one at least: no partitions would mean all of the cluster to Kafka.
        timeout_s: longest wait for the answer of one broker, seconds.

    Raises:
        HeadroomError: no broker took the request, or this user may not ask.
    """
    if not names:
        raise ValueError("an election names its partitions: none would mean those of the whole cluster")
    request = ElectLeadersRequest(
        election_type=_PREFERRED, topic_partitions=_by_topic(names), timeout_ms=int(timeout_s * 1000)
    )
    return _answers(names, _ask(connection, request, timeout_s))


def _by_topic(names: Collection[Name]) -> list[Any]:
    return [
        ElectLeadersRequest.TopicPartitions(topic=topic, partitions=[partition for _, partition in of_topic])
        for topic, of_topic in groupby(sorted(names), key=lambda name: name[0])
    ]


def _ask(connection: AdminConnection, request: Any, timeout_s: float) -> Any:
    asked = ControllerRequest(request, _SUBJECT, "is not allowed", "ALTER", "was taken by no broker", "none is known")
    return asked.send(connection, timeout_s, _error_code)


def _error_code(answer: Any) -> int:
    """Return the error of an answer as a whole: its own, or that of a broker that is not the controller.

    In ZooKeeper mode such a broker gives that error for each partition. The first version of the answer has none of its
    own.
    """
    if answer.API_VERSION >= 1 and answer.error_code:
        return int(answer.error_code)
    codes = {p.error_code for r in answer.replica_election_results for p in r.partition_result}
    return int(NotControllerError.errno) if codes == {NotControllerError.errno} else 0


def _answers(names: Collection[Name], answer: Any) -> ElectionResults:
    said = {(r.topic, p.partition_id): p for r in answer.replica_election_results for p in r.partition_result}
    results = {name: _result(said.get(name)) for name in sorted(names)}
    return ElectionResults(
        tuple(name for name, error in results.items() if error is None),
        tuple(name for name, error in results.items() if error == ElectionNotNeededError.message),
        {n: error for n, error in results.items() if error not in (None, ElectionNotNeededError.message)},
    )


def _result(said: Any) -> str | None:
    """Return Kafka's name of an error; None: elected."""
    if said is None:
        return _NO_ANSWER
    if not said.error_code:
        return None
    return str(kafka_errors.for_code(said.error_code).message)
