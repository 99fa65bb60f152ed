"""Requests that only the controller answers; with KRaft any broker forwards them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import ClusterAuthorizationFailedError, KafkaError, NoError

from headroom.cluster.connection.failover import BrokerFailover, NoAnswerError
from headroom.schemas.errors import HeadroomError


@dataclass(frozen=True)
class ControllerRequest:
    """A request and the texts of its errors.

    Attributes:
        request: the request itself.
        subject: subject of its errors.
        not_allowed: rule for a user without the permission.
        right: the Kafka ACL operation that the user needs.
        failed: rule if no broker accepts the request; the brokers' reasons follow.
        no_broker: reason if no broker is known.
    """

    request: Any
    subject: str
    not_allowed: str
    right: str
    failed: str
    no_broker: str

    def send(self, brokers: BrokerFailover, error_code: Callable[[Any], int]) -> Any:
        """Return the answer of the first broker that accepts the request; before KRaft only the controller does.

        Args:
            brokers: sends the request to one broker after another.
            error_code: returns the error code of a whole answer.

        Raises:
            HeadroomError: the user lacks the permission, or no broker accepted the request.
        """
        try:
            node, answer, failures = brokers.send(self.request, error_code)
        except NoAnswerError as error:
            raise self._failure(error.failures) from None
        refusal = kafka_errors.for_code(error_code(answer))
        if refusal is NoError:
            return answer
        if refusal is ClusterAuthorizationFailedError:
            raise HeadroomError(self.subject, self.not_allowed, f"Grant {self.right} on the cluster to this user.")
        raise self._failure({**failures, node: refusal()})

    def _failure(self, failures: Mapping[int, KafkaError]) -> HeadroomError:
        reasons = "; ".join(f"broker {node}: {type(error).__name__}" for node, error in failures.items())
        rule = f"{self.failed} ({reasons or self.no_broker})"
        return HeadroomError(self.subject, rule, "See that the controller is up, then run the same command again.")
