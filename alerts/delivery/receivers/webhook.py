"""Receiver for a generic webhook: signed JSON with an idempotency key."""

from __future__ import annotations

import hashlib
import hmac
from collections.abc import Callable

from headroom.alerts.delivery.delivery_log import event_key
from headroom.alerts.delivery.http import HttpPoster, Secret, json_body
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import Reach, Receipt
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import WebhookSettings

KEY_HEADER = "Idempotency-Key"
TIMESTAMP_HEADER = "Headroom-Timestamp"
SIGNATURE_HEADER = "Headroom-Signature"


class WebhookReceiver:
    """Posts each event to a web server.

    Args:
        settings: section ``[notify.webhook]``.
        secret: key that posts are signed with.
        links: links in each event.
        clock_ms: returns the current time, epoch milliseconds.
    """

    name = "webhook"

    def __init__(self, settings: WebhookSettings, secret: Secret, links: Links, clock_ms: Callable[[], int]) -> None:
        self._url = settings.url
        self._poster = HttpPoster(settings.timeout_s, settings.ssl_cafile, "notify.webhook.ssl_cafile")
        self._secret = secret
        self._links = links
        self._clock_ms = clock_ms

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        """Post the event; a repeated post has the same key, so that the server can detect it.

        Raises:
            DeliveryError: the server did not accept it.
        """
        key = f"{event_key(event)}/{self.name}"
        body = json_body({"key": key, "event": event.as_objects(), "links": self._links.urls_of(event)})
        secret, timestamp = self._secret(), str(self._clock_ms() // 1000)
        headers = {KEY_HEADER: key, TIMESTAMP_HEADER: timestamp}
        if secret is not None:
            headers[SIGNATURE_HEADER] = signature(secret, timestamp, body)
        return Receipt(self._poster.post(self._url, body, headers, [secret]))

    def reach(self) -> Reach:
        """Return whether the web server answers; it gets no event.

        Raises:
            DeliveryError: it does not.
            HeadroomError: the file of the secret cannot be read.
        """
        self._secret()
        return Reach(self._poster.reach(self._url), "whether it takes events shows only the first one")


def signature(secret: str, timestamp: str, body: bytes) -> str:
    """Return ``v1=`` and the HMAC-SHA256, in hex, of the timestamp, a dot and the body."""
    return "v1=" + hmac.new(secret.encode(), timestamp.encode() + b"." + body, hashlib.sha256).hexdigest()
