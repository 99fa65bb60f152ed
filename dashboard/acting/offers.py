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
_LONGEST = 20_000


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
        content = [offer.cluster, offer.command.words, offer.command.config]
        body = base64.urlsafe_b64encode(json.dumps(content, ensure_ascii=False).encode()).decode()
        return f"{body}.{self._signature(body, self._clock_ms() // _PERIOD_MS)}"

    def read(self, text: str) -> CommandOffer | None:
        """Return an offer from its text; None if it was not signed by this server, or too long ago."""
        body, _, signature = text.partition(".")
        period = self._clock_ms() // _PERIOD_MS
        if len(text) > _LONGEST or not text.isascii():
            return None
        if not any(hmac.compare_digest(signature, self._signature(body, one)) for one in (period, period - 1)):
            return None
        cluster, words, config = json.loads(base64.urlsafe_b64decode(body))
        return CommandOffer(cluster, AllowedCommand(tuple(words), config))

    def _signature(self, body: str, period: int) -> str:
        return hmac.new(self._key, f"{period}.{body}".encode(), hashlib.sha256).hexdigest()
