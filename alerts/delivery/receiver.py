"""Protocols of alert receivers, and the error of a failed delivery."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from headroom.schemas.alerts import AlertEvent
from headroom.schemas.errors import HeadroomError


@dataclass(frozen=True)
class Receipt:
    """Confirmation that a receiver has an event.

    Attributes:
        answer: answer of the receiver, shortened.
        reference: data that later messages on the alert need, JSON; empty if the last reference stays valid.
    """

    answer: str
    reference: str = ""


@dataclass(frozen=True)
class Reach:
    """How far a receiver can be reached without notifying anybody.

    Attributes:
        answer: what answered.
        untried: what only an event can show; empty if the receiver takes events.
    """

    answer: str
    untried: str = ""


class DeliveryError(Exception):
    """A failed attempt to deliver an event.

    Attributes:
        answer: answer of the receiver, or the connection error; never contains a secret.
        retry_after_s: wait that the receiver asked for, seconds; None if it did not.
        unsent: whether the event has certainly not arrived; otherwise the next attempt has to check.
    """

    def __init__(self, answer: str, retry_after_s: float | None = None, unsent: bool = False) -> None:
        self.answer = answer
        self.retry_after_s = retry_after_s
        self.unsent = unsent
        super().__init__(answer)


def error_text(error: BaseException) -> str:
    """Return the text of a Headroom error; only the type of any other, because its text may contain a secret."""
    return str(error) if isinstance(error, (DeliveryError, HeadroomError)) else type(error).__name__


class Receiver(Protocol):
    """A receiver of alert events; one thread uses it."""

    @property
    def name(self) -> str:
        """Return its permanent name in ``alerts/deliveries``."""

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        """Send one event.

        Args:
            event: event; events of one alert come in order.
            before: reference from the last delivery for this alert; empty if there was none.
            may_have_arrived: whether an earlier attempt may have arrived. Then the receiver checks, if it can, before
                it sends again.

        Raises:
            DeliveryError: the receiver did not accept the event.
        """


class CheckedReceiver(Receiver, Protocol):
    """A receiver that can be checked without notifying anybody."""

    def reach(self) -> Reach:
        """Return how far the receiver can be reached.

        Raises:
            DeliveryError: it would not accept an event now.
            HeadroomError: a secret cannot be read.
        """


@runtime_checkable
class DigestReceiver(Receiver, Protocol):
    """A receiver that gets one digest when many alerts fire together."""

    @property
    def digest_after(self) -> int:
        """Return the number of alerts that may fire together without a digest."""

    def deliver_together(self, events: Sequence[AlertEvent], may_have_arrived: bool) -> list[Receipt]:
        """Send the first events of many alerts as one digest and return one receipt per event.

        Args:
            events: first firing event of each alert.
            may_have_arrived: whether an earlier attempt may have arrived.

        Raises:
            DeliveryError: the receiver did not accept it.
        """


@runtime_checkable
class ResendingReceiver(Receiver, Protocol):
    """A receiver that resolves an alert unless it is sent again periodically."""

    @property
    def resend_in_s(self) -> float:
        """Return the interval at which firing alerts are sent again, seconds."""

    def restore(self, alerts: Sequence[tuple[AlertEvent, str]]) -> None:
        """Restore the alerts sent before a restart: the last event of each, and its reference."""

    def forget(self, alert_id: str) -> None:
        """Stop sending an alert whose resolution could not be delivered."""

    def resend(self) -> None:
        """Send all firing alerts again.

        Raises:
            DeliveryError: the receiver did not accept it.
        """
