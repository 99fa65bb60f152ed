"""Failover of admin requests: sends a request to one broker after another until one answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection
from typing import Any

from kafka.errors import KafkaError, NotControllerError, UnsupportedVersionError

from cluster.connection.admin_connection import AdminConnection

log = logging.getLogger(__name__)
# Two tries in a tick must fit: one on a broker that hangs, one on another.
_TRIES = 2
_LEAST_WAIT_S = 0.01
# Pause between two searches for the controller: electing one takes at least some 0.1 s.
_RETRY_S = 0.2


class MetadataError(Exception):
    """No broker returned the cluster's metadata within the tick; the text lists each broker and its failure."""


class UnsupportedRequestError(MetadataError):
    """A broker is too old to support the request."""


class BrokerFailover:
    """Sends requests to any broker that answers, first to the one that answered last.

    Args:
        connection: the admin connection.
        timeout_s: longest wait for one answer, all attempts together, seconds.
        clock: monotonic seconds.
        sleep: waits for the given seconds.

    Attributes:
        alive: ids of the brokers in the metadata; tried in addition to those that the connection knows.
    """

    def __init__(
        self,
        connection: AdminConnection,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._connection = connection
        self._timeout_s = timeout_s
        self._clock = clock
        self._sleep = sleep
        self._preferred: int | None = None
        self._behind: int | None = None
        # The controller, once it answered a request that others refused with NotController; None if none did.
        self._controller: int | None = None
        self.alive: Collection[int] = ()

    def send_to_any(self, subject: str, request: Any) -> Any:
        """Return the answer of the first broker that answers; ``subject`` names the request in errors.

        Raises:
            MetadataError: no broker answered in time.
        """
        return self._send(subject, request, self._connection, self._timeout_s, self._preferred)

    def send_to_any_forwarding(self, subject: str, request: Any, share: float) -> Any:
        """Return the answer to a request that the broker forwards to the controller, within a share of the time.

        In ZooKeeper mode brokers forward nothing, so all are tried until the controller itself answers.

        Raises:
            MetadataError: no broker answered in time.
            HeadroomError: no broker could be reached at all.
        """
        first = self._preferred if self._controller is None else self._controller
        return self._send(subject, request, self._connection.forwarding, share * self._timeout_s, first)

    def demote_last(self) -> None:
        """Try the broker that answered last after all others from now on, because its metadata is stale."""
        if self._preferred is not None:
            log.warning("broker %d reports metadata from before what is known; others are asked first", self._preferred)
            self._behind, self._preferred = self._preferred, None

    def _send(
        self, subject: str, request: Any, connection: AdminConnection, timeout_s: float, first: int | None
    ) -> Any:
        deadline = self._clock() + timeout_s
        failures: dict[int, str] = {}
        while True:
            for node in self._candidates(first):
                wait_s = min(timeout_s / _TRIES, deadline - self._clock())
                if wait_s <= _LEAST_WAIT_S:
                    break
                try:
                    answer = connection.send(request, node, wait_s)
                except UnsupportedVersionError as error:
                    raise UnsupportedRequestError(
                        f"{subject} could not be read (broker {node}: {_error_text(error)})"
                    ) from None
                except KafkaError as error:
                    failures[node] = _error_text(error)
                    continue
                if getattr(answer, "error_code", 0) == NotControllerError.errno:
                    failures[node] = NotControllerError.__name__
                    continue
                self._note_responder(node, NotControllerError.__name__ in failures.values())
                return answer
            # After a NotController answer the controller may be moving to another broker: search again.
            if NotControllerError.__name__ not in failures.values() or deadline - self._clock() <= _RETRY_S:
                break
            self._sleep(_RETRY_S)
        reasons = "; ".join(f"broker {node}: {why}" for node, why in failures.items())
        raise MetadataError(f"{subject} could not be read ({reasons or 'no broker is known'})")

    def _note_responder(self, node: int, others_refused: bool) -> None:
        """Remember the responder: as the controller if others refused, otherwise as the broker to try first."""
        if others_refused:
            self._controller = node
        elif node != self._controller:
            self._preferred = node

    def _candidates(self, first: int | None) -> list[int]:
        known = dict.fromkeys([*self._connection.nodes(), *self.alive])
        return sorted(known, key=lambda node: (node == self._behind, node != first))


def _error_text(error: KafkaError) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
