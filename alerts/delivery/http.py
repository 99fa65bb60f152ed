"""Posting JSON to a receiver, and what it answers in short: without a secret, and in one line that can be printed."""

from __future__ import annotations

import json
import ssl
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException
from typing import Any
from urllib.parse import urlsplit

from alerts.delivery.exchange import MOST_BYTES, HttpAnswer, exchange
from alerts.delivery.receiver import DeliveryError
from schemas.errors import HeadroomError
from schemas.redaction import redacted, secrets_of
from schemas.text import one_line

# Gives a secret at the moment of its use; None: there is none.
Secret = Callable[[], "str | None"]

JSON = "application/json; charset=utf-8"

_ANSWER_MOST = 200
# Of a body only its beginning is looked at, so that one that was cut in the middle of a secret shows no half of it.
_MOST_READ = 4096
_ACCEPTED = range(200, 300)


class HttpPoster:
    """Posts to one or several servers.

    Args:
        timeout_s: longest time for a whole exchange.
        ssl_cafile: PEM file of the authorities to trust; None: the system's.
        setting: name of the setting of that file, for the error.

    Raises:
        HeadroomError: the file cannot be used.
    """

    def __init__(self, timeout_s: float, ssl_cafile: str | None = None, setting: str = "") -> None:
        self._timeout_s = timeout_s
        self._tls = _tls_context(ssl_cafile, setting)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], hidden: Sequence[str | None] = ()) -> str:
        """Return what a server answered to a post that it took, in short.

        Args:
            url: where to.
            body: JSON.
            headers: besides the type of the content.
            hidden: secrets that an answer might repeat, besides those in URL and headers.

        Raises:
            DeliveryError: it did not take it, or nothing is known of it.
        """
        server = _server(url)
        answer = self.answer(server, url, body, headers)
        secrets = [*hidden, *secrets_of(url, headers)]
        text = f"{answer.status} {answer.body.decode('utf-8', 'replace')}"
        if answer.status in _ACCEPTED:
            return truncated(text, secrets)
        # Of an error of its own a server may have taken the post all the same.
        raise DeliveryError(
            truncated(f"{server}: answered {text}", secrets),
            retry_after_s(answer.retry_after),
            unsent=answer.status < 500,
        )

    def answer(
        self, server: str, url: str, body: bytes, headers: Mapping[str, str], most_bytes: int = MOST_BYTES
    ) -> HttpAnswer:
        """Return what a server answered to a post, whatever its status.

        Args:
            server: what an error calls the server.
            url: where to.
            body: body.
            headers: they win over the type of the content, JSON.
            most_bytes: most of the answer that is read.

        Raises:
            DeliveryError: it was not reached, or did not answer.
        """
        all_headers = {"Content-Type": JSON, "User-Agent": "headroom", **headers}
        try:
            request = urllib.request.Request(url, data=body, headers=all_headers, method="POST")
            return exchange(request, self._tls, self._timeout_s, most_bytes)
        except (OSError, HTTPException) as error:
            raise connection_error(server, error) from None


def json_body(content: Any) -> bytes:
    """Return JSON as it is sent."""
    # Half of a surrogate pair has no UTF-8; what replaces it here is how JSON escapes it.
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")


def retry_after_s(text: str | None) -> float | None:
    """Return how long a server wants to be left alone, seconds; None: it did not say, or not as a number."""
    return min(float(text), 3600.0) if text is not None and text.strip().isdecimal() else None


def connection_error(server: str, error: BaseException) -> DeliveryError:
    """Return that a server was not reached, or did not answer; then nobody knows whether it took what was sent."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return DeliveryError(f"{server}: TLS failed: {error.verify_message}", unsent=True)
    if isinstance(error, TimeoutError):
        return DeliveryError(f"{server}: did not answer in time")
    reason = getattr(error, "strerror", None) or type(error).__name__
    return DeliveryError(f"{server}: {reason}", unsent=isinstance(error, ConnectionRefusedError))


def truncated(text: str, hidden: Sequence[str | None] = ()) -> str:
    """Return text in one printable line of bounded length, without the secrets that it might repeat."""
    return one_line(redacted(text, hidden)[:_MOST_READ], _ANSWER_MOST)


def header_secret(secret: Secret, setting: str) -> str | None:
    """Return a secret that a header can carry.

    Raises:
        HeadroomError: it cannot; told without it.
    """
    value = secret()
    if value is not None and not (value.isascii() and value.isprintable()):
        raise HeadroomError(setting, "has a character that no header can carry", "Put it right.")
    return value


def _tls_context(ssl_cafile: str | None, setting: str) -> ssl.SSLContext:
    try:
        return ssl.create_default_context(cafile=ssl_cafile)
    except OSError as error:
        reason = error.strerror or "not PEM"
        raise HeadroomError(setting, f"cannot use {ssl_cafile}: {reason}", "Name a PEM file of authorities.") from None


def _server(url: str) -> str:
    """Return the host and port of a URL; what follows may be a secret."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
