"""What a receiver of alert events has to do, and how it says that it could not."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from schemas.alerts import AlertEvent


@dataclass(frozen=True)
class Receipt:
    """That a receiver has an event.

    Attributes:
        answer: what it said, in short.
        reference: what later messages on the same alert need, JSON; empty: what was needed before still holds.
    """

    answer: str
    reference: str = ""


class DeliveryError(Exception):
    """An attempt that failed.

    Attributes:
        answer: what the receiver said, or why nothing was heard of it; never holds a secret.
        retry_after_s: how long the receiver wants to be left alone, seconds; None: it did not say.
        unsent: whether the receiver surely did not take the event; else the next attempt has to look.
    """

    def __init__(self, answer: str, retry_after_s: float | None = None, unsent: bool = False) -> None:
        self.answer = answer
        self.retry_after_s = retry_after_s
        self.unsent = unsent
        super().__init__(answer)


class Receiver(Protocol):
    """Someone who is told of alerts; used by one thread only."""

    @property
    def name(self) -> str:
        """Return what it is called in ``alerts/deliveries``, for ever."""

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


@runtime_checkable
class DigestReceiver(Receiver, Protocol):
    """A receiver that would rather get one message when many alerts fire at once."""

    @property
    def digest_after(self) -> int:
        """Return how many alerts may fire at once before they are told of together."""

    def deliver_together(self, events: Sequence[AlertEvent], may_have_arrived: bool) -> list[Receipt]:
        """Tell of the beginnings of many alerts; one receipt for each.

        Args:
            events: first firing events, of an alert each.
            may_have_arrived: whether an earlier attempt may have arrived.

        Raises:
            DeliveryError: it could not be told.
        """


@runtime_checkable
class ResendingReceiver(Receiver, Protocol):
    """A receiver that forgets an alert unless it hears of it now and then."""

    @property
    def resend_in_s(self) -> float:
        """Return how long after the last time it wants to be told anew of what fires, seconds."""

    def restore(self, alerts: Sequence[tuple[AlertEvent, str]]) -> None:
        """Take up alerts that it was told of before a restart: the last event of each, and its reference."""

    def forget(self, alert_id: str) -> None:
        """Tell no more of an alert whose end was given up."""

    def resend(self) -> None:
        """Tell anew of what fires.

        Raises:
            DeliveryError: it could not be told.
        """
