"""Failover of admin requests: sends a request to one broker after another until one answers."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, NamedTuple

from kafka.errors import KafkaError, NotControllerError, UnsupportedVersionError

from headroom.cluster.connection.admin_connection import AdminConnection

log = logging.getLogger(__name__)
# Two tries must fit: one on a broker that hangs, one on another.
_TRIES = 2
_LEAST_WAIT_S = 0.01
# Pause between two searches for the controller: electing one takes at least some 0.1 s.
_RETRY_S = 0.2


class NoAnswerError(Exception):
    """No broker answered a request within its deadline.

    Attributes:
        failures: error of each broker that was tried, by id in that order; empty if no broker is known.
    """

    def __init__(self, failures: Mapping[int, KafkaError]) -> None:
        super().__init__(", ".join(f"broker {node}: {type(error).__name__}" for node, error in failures.items()))
        self.failures = failures


class MetadataError(Exception):
    """No broker returned the cluster's metadata within the tick; the text lists each broker and its failure."""


class UnsupportedRequestError(MetadataError):
    """A broker is too old to support the request."""


class BrokerAnswer(NamedTuple):
    """The answer of the first broker that gave one.

    Attributes:
        node: id of that broker.
        answer: its answer, which may be an error of any kind but NotController.
        failures: error of each broker that was tried before, by id.
    """

    node: int
    answer: Any
    failures: Mapping[int, KafkaError]


class _Route(NamedTuple):
    """How a request is sent: by which connection, for how long in all, and to which broker first."""

    connection: AdminConnection
    timeout_s: float
    first: int | None


def _own_error_code(answer: Any) -> int:
    """Return the error code of a whole answer; 0 if answers of this kind have none."""
    return int(getattr(answer, "error_code", 0))


class BrokerFailover:
    """Sends requests to any broker that answers, first to the one that answered last.

    Args:
        connection: the admin connection.
        timeout_s: longest wait for one answer, all attempts together, seconds; one broker gets at most half of it.
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

    @classmethod
    def for_command(cls, connection: AdminConnection, broker_timeout_s: float) -> BrokerFailover:
        """Return the failover of a command, which has time for two brokers that take ``broker_timeout_s`` seconds.

        However many brokers hang, a request of the command ends after twice that time.
        """
        return cls(connection, _TRIES * broker_timeout_s)

    def send(self, request: Any, error_code: Callable[[Any], int] = _own_error_code) -> BrokerAnswer:
        """Return the first answer that is not NotController.

        Args:
            request: the request; sending it to a second broker must be harmless.
            error_code: returns the error code of a whole answer; 0 for none.

        Raises:
            NoAnswerError: no broker answered in time.
            HeadroomError: no broker could be reached at all.
        """
        return self._send(request, _Route(self._connection, self._timeout_s, self._preferred), error_code)

    def send_to_any(self, subject: str, request: Any) -> Any:
        """Return the answer of the first broker that answers; ``subject`` names the request in errors.

        Raises:
            MetadataError: no broker answered in time.
            UnsupportedRequestError: a broker does not support the request.
        """
        return self._read(subject, request, _Route(self._connection, self._timeout_s, self._preferred))

    def send_to_any_forwarding(self, subject: str, request: Any, share: float) -> Any:
        """Return the answer to a request that the broker forwards to the controller, within a share of the time.

        In ZooKeeper mode brokers forward nothing, so all are tried until the controller itself answers.

        Raises:
            MetadataError: no broker answered in time.
            HeadroomError: no broker could be reached at all.
        """
        first = self._preferred if self._controller is None else self._controller
        return self._read(subject, request, _Route(self._connection.forwarding, share * self._timeout_s, first))

    def demote_last(self) -> None:
        """Try the broker that answered last after all others from now on, because its metadata is stale."""
        if self._preferred is not None:
            log.warning("broker %d reports metadata from before what is known; others are asked first", self._preferred)
            self._behind, self._preferred = self._preferred, None

    def _read(self, subject: str, request: Any, route: _Route) -> Any:
        try:
            return self._send(request, route, final=UnsupportedVersionError).answer
        except NoAnswerError as error:
            listed = (f"broker {node}: {_error_text(why)}" for node, why in error.failures.items())
            rule = f"{subject} could not be read ({'; '.join(listed) or 'no broker is known'})"
            # The caller has another request for old brokers, so it is not sent to all the others first.
            is_unsupported = any(isinstance(why, UnsupportedVersionError) for why in error.failures.values())
            raise (UnsupportedRequestError if is_unsupported else MetadataError)(rule) from None

    def _send(
        self,
        request: Any,
        route: _Route,
        error_code: Callable[[Any], int] = _own_error_code,
        final: type[KafkaError] | None = None,
    ) -> BrokerAnswer:
        """Return the first answer that is not NotController; an error of the type ``final`` ends the search."""
        deadline_s = self._clock() + route.timeout_s
        failures: dict[int, KafkaError] = {}
        for node in self._in_turn(route.first, deadline_s, failures):
            wait_s = min(route.timeout_s / _TRIES, deadline_s - self._clock())
            if wait_s <= _LEAST_WAIT_S:
                break
            try:
                answer = route.connection.send(request, node, wait_s)
            except KafkaError as error:
                failures[node] = error
                if final is not None and isinstance(error, final):
                    break
                continue
            if error_code(answer) != NotControllerError.errno:
                self._note_responder(node, _is_controller_sought(failures))
                return BrokerAnswer(node, answer, failures)
            failures[node] = NotControllerError()
        raise NoAnswerError(failures)

    def _in_turn(self, first: int | None, deadline_s: float, failures: Mapping[int, KafkaError]) -> Iterator[int]:
        """Yield the brokers to try; once more from the beginning while the controller may be moving."""
        yield from self._candidates(first)
        while _is_controller_sought(failures) and deadline_s - self._clock() > _RETRY_S:
            self._sleep(_RETRY_S)
            yield from self._candidates(first)

    def _note_responder(self, node: int, others_refused: bool) -> None:
        """Remember the responder: as the controller if others refused, otherwise as the broker to try first."""
        if others_refused:
            self._controller = node
        elif node != self._controller:
            self._preferred = node

    def _candidates(self, first: int | None) -> list[int]:
        known = dict.fromkeys([*self._connection.nodes(), *self.alive])
        return sorted(known, key=lambda node: (node == self._behind, node != first))


def _is_controller_sought(failures: Mapping[int, KafkaError]) -> bool:
    """Return whether a broker answered that another one is the controller."""
    return any(isinstance(error, NotControllerError) for error in failures.values())


def _error_text(error: KafkaError) -> str:
    if isinstance(error, NotControllerError):  # an answer: it has no text of its own
        return type(error).__name__
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
