"""Requests that only the controller answers: with KRaft any broker passes them on to it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import kafka.errors as kafka_errors
from kafka.errors import ClusterAuthorizationFailedError, KafkaError, NoError, NotControllerError

from cluster.connection.admin_connection import AdminConnection
from schemas.errors import HeadroomError


@dataclass(frozen=True)
class ControllerRequest:
    """A request and the words for its failures.

    Attributes:
        request: what is asked.
        subject: what it is about.
        not_allowed: what a user who may not do it is told.
        right: the right that this user lacks.
        failed: what has happened if no broker takes it; the brokers' reasons follow.
        no_broker: the reason if no broker is known.
    """

    request: Any
    subject: str
    not_allowed: str
    right: str
    failed: str
    no_broker: str

    def ask(self, link: AdminConnection, timeout_s: float, error_code: Callable[[Any], int]) -> Any:
        """Return the answer of the first broker that has one: before KRaft only the controller has.

        Args:
            link: the admin connection.
            timeout_s: longest wait for each broker, seconds.
            error_code: gives the error code of an answer as a whole.

        Raises:
            HeadroomError: this user may not do it, or no broker took it.
        """
        reasons = []
        for node in link.nodes():
            try:
                answer = link.ask(self.request, node, timeout_s)
            except KafkaError as error:
                reasons.append(f"broker {node}: {type(error).__name__}")
                continue
            refusal = kafka_errors.for_code(error_code(answer))
            if refusal is NoError:
                return answer
            if refusal is ClusterAuthorizationFailedError:
                raise HeadroomError(self.subject, self.not_allowed, f"Grant {self.right} on the cluster to this user.")
            reasons.append(f"broker {node}: {refusal.__name__}")
            if refusal is not NotControllerError:
                break
        rule = f"{self.failed} ({'; '.join(reasons) or self.no_broker})"
        raise HeadroomError(self.subject, rule, "See that the controller is up, then run the same command again.")
