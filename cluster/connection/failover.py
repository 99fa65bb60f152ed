"""Questions that any broker can answer, asked of one after the other until one does."""

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
# From one search for the controller to the next: an election of one takes some tenths of a second at least.
_AGAIN_S = 0.2


class MetadataError(Exception):
    """No broker told the cluster's metadata within the tick; the text says what each was asked and answered."""


class UnsupportedRequestError(MetadataError):
    """A broker does not know the request: it is older than that."""


class BrokerFailover:
    """Asks whichever broker answers, starting with the one that answered last.

    Args:
        link: the admin connection.
        timeout_s: longest wait for one answer, all tries together, seconds.
        clock: monotonic seconds.
        sleep: waits for so many seconds.

    Attributes:
        alive: brokers that the metadata lists; asked besides those that the connection knows.
    """

    def __init__(
        self,
        link: AdminConnection,
        timeout_s: float,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        self._link = link
        self._timeout_s = timeout_s
        self._clock = clock
        self._sleep = sleep
        self._preferred: int | None = None
        self._behind: int | None = None
        # Who answered what others had refused, for it is the controller and they pass nothing on; None: nobody had to.
        self._controller: int | None = None
        self.alive: Collection[int] = ()

    def ask(self, what: str, request: Any) -> Any:
        """Return the answer to a request; ``what`` names it in errors.

        Raises:
            MetadataError: no broker answered in time.
        """
        return self._ask(what, request, self._link, self._timeout_s, self._preferred)

    def ask_forwarded(self, what: str, request: Any, share: float) -> Any:
        """Return the answer to a request that the broker passes on to the controller, in a share of the time.

        In ZooKeeper mode none is passed on: there the controller itself is looked for among all.

        Raises:
            MetadataError: no broker answered in time.
            HeadroomError: no broker could be reached at all.
        """
        first = self._preferred if self._controller is None else self._controller
        return self._ask(what, request, self._link.forwarding, share * self._timeout_s, first)

    def ask_last(self) -> None:
        """Ask the broker that answered last after all others from now on: its metadata is behind."""
        if self._preferred is not None:
            log.warning("broker %d reports metadata from before what is known; others are asked first", self._preferred)
            self._behind, self._preferred = self._preferred, None

    def _ask(self, what: str, request: Any, link: AdminConnection, timeout_s: float, first: int | None) -> Any:
        deadline = self._clock() + timeout_s
        failures: dict[int, str] = {}
        while True:
            for node in self._candidates(first):
                wait_s = min(timeout_s / _TRIES, deadline - self._clock())
                if wait_s <= _LEAST_WAIT_S:
                    break
                try:
                    answer = link.ask(request, node, wait_s)
                except UnsupportedVersionError as error:
                    raise UnsupportedRequestError(
                        f"{what} could not be read (broker {node}: {_short(error)})"
                    ) from None
                except KafkaError as error:
                    failures[node] = _short(error)
                    continue
                if getattr(answer, "error_code", 0) == NotControllerError.errno:
                    failures[node] = NotControllerError.__name__
                    continue
                self._note_answer(node, NotControllerError.__name__ in failures.values())
                return answer
            # Where one has refused, the controller may be moving to another broker just now.
            if NotControllerError.__name__ not in failures.values() or deadline - self._clock() <= _AGAIN_S:
                break
            self._sleep(_AGAIN_S)
        reasons = "; ".join(f"broker {node}: {why}" for node, why in failures.items())
        raise MetadataError(f"{what} could not be read ({reasons or 'no broker is known'})")

    def _note_answer(self, node: int, others_refused: bool) -> None:
        """Ask a broker that has answered first from now on, what others refuse if it is the controller, else all."""
        if others_refused:
            self._controller = node
        elif node != self._controller:
            self._preferred = node

    def _candidates(self, first: int | None) -> list[int]:
        known = dict.fromkeys([*self._link.nodes(), *self.alive])
        return sorted(known, key=lambda node: (node == self._behind, node != first))


def _short(error: KafkaError) -> str:
    return f"{type(error).__name__}: {error}".splitlines()[0][:200]
