"""Offers: commands on a page that this server carries out when they come back, and no others."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
import secrets
from collections.abc import Callable
from typing import NamedTuple

from headroom.dashboard.acting.allowed import AllowedCommand

# An offer is good for one to two of these times. It must not change with each tick: the part that has it would too.
_PERIOD_MS = 600_000
_LONGEST = 10_000


class CommandOffer(NamedTuple):
    """A command with the cluster that it is about."""

    cluster: str
    command: AllowedCommand


class Offers:
    """Signs commands, and reads what it has signed.

    Args:
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(self, clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        # Offers end with the server: what a page of an earlier one shows is looked at anew.
        self._key = secrets.token_bytes(32)

    def sign(self, offer: CommandOffer) -> str:
        """Return an offer as text."""
        return self._signed(offer, self._clock_ms() // _PERIOD_MS)

    def read(self, text: str) -> CommandOffer | None:
        """Return an offer from its text; None if it was not signed by this server, or too long ago."""
        body = text.partition(".")[0]
        try:
            if len(text) > _LONGEST:
                return None
            cluster, words, config = json.loads(base64.urlsafe_b64decode(body.encode("ascii")))
            offer = CommandOffer(cluster, AllowedCommand(tuple(words), config))
            period = self._clock_ms() // _PERIOD_MS
            signed = [self._signed(offer, one) for one in (period, period - 1)]
        except (ValueError, TypeError):
            return None
        return offer if any(hmac.compare_digest(text.encode(), one.encode()) for one in signed) else None

    def _signed(self, offer: CommandOffer, period: int) -> str:
        content = json.dumps([offer.cluster, offer.command.words, offer.command.config]).encode()
        body = base64.urlsafe_b64encode(content)
        signature = hmac.new(self._key, b"%d." % period + body, hashlib.sha256)
        return f"{body.decode()}.{signature.hexdigest()}"
