"""JSON posts to receivers; answers are shortened to one printable line without secrets."""

from __future__ import annotations

import json
import os
import ssl
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import urlsplit

from aiohttp import ClientError, ClientResponseError, ServerDisconnectedError

from headroom.alerts.delivery.exchange import exchange
from headroom.alerts.delivery.receiver import DeliveryError
from headroom.schemas.errors import HeadroomError
from headroom.schemas.redaction import redact, secrets_of
from headroom.schemas.text import one_line

# Returns a secret at the moment of its use; None if there is none.
Secret = Callable[[], "str | None"]

JSON = "application/json; charset=utf-8"

_ANSWER_MOST = 200
# Only the beginning of a body is used, so that a body truncated within a secret does not show half of it.
_MOST_READ = 4096
_ACCEPTED = range(200, 300)
# Of a proxy: it asks for a password, or has not reached the server.
_NOT_REACHED = (407, 502, 503, 504)


class HttpPoster:
    """Posts JSON to servers.

    Args:
        timeout_s: deadline of a whole exchange, in seconds.
        ssl_cafile: PEM file of trusted authorities; None for those of the system.
        setting: name of the setting of that file, for errors.

    Raises:
        HeadroomError: the file cannot be used.
    """

    def __init__(self, timeout_s: float, ssl_cafile: str | None = None, setting: str = "") -> None:
        self._timeout_s = timeout_s
        self._tls = tls_context(ssl_cafile, setting)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], hidden: Sequence[str | None] = ()) -> str:
        """Post to a server and return its answer, shortened.

        Args:
            url: URL of the server.
            body: JSON.
            headers: headers in addition to the content type, JSON.
            hidden: secrets that an answer might repeat, in addition to those in URL and headers.

        Raises:
            DeliveryError: the server did not accept the post, or the outcome is unknown.
        """
        server = _server(url)
        all_headers = {"Content-Type": JSON, "User-Agent": "headroom", **headers}
        try:
            answer = exchange(url, body, all_headers, self._tls, self._timeout_s)
        except (OSError, ClientError) as error:
            raise connection_error(server, error) from None
        secrets = [*hidden, *secrets_of(url, headers)]
        text = f"{answer.status} {answer.body.decode('utf-8', 'replace')}"
        if answer.status in _ACCEPTED:
            return safe_line(text, secrets)
        # After a 5xx error the server may have accepted the post.
        raise DeliveryError(
            safe_line(f"{server}: answered {text}", secrets),
            retry_after_s(answer.retry_after),
            unsent=answer.status < 500,
        )

    def reach(self, url: str) -> str:
        """Return which server answers at a URL, without posting anything to it.

        Raises:
            DeliveryError: it was not reached, or its answer is not HTTP.
        """
        server = _server(url)
        try:
            answer = exchange(url, b"", {"User-Agent": "headroom"}, self._tls, self._timeout_s, method="HEAD")
        except (OSError, ClientError) as error:
            raise connection_error(server, error) from None
        if answer.status in _NOT_REACHED:
            raise DeliveryError(f"{server}: answered {answer.status}")
        return f"{server} answers"


def json_body(content: Any) -> bytes:
    """Return content as compact JSON in UTF-8."""
    # Half of a surrogate pair has no UTF-8 form; backslashreplace writes it as a JSON escape.
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode("utf-8", "backslashreplace")


def retry_after_s(text: str | None) -> float | None:
    """Return the number of seconds in ``Retry-After``, at most an hour; None if missing or not a number."""
    return min(float(text), 3600.0) if text is not None and text.strip().isdecimal() else None


def connection_error(server: str, error: BaseException) -> DeliveryError:
    """Return the delivery error for a failed connection; unless marked unsent, the post may have arrived."""
    if isinstance(error, ssl.SSLCertVerificationError):
        return DeliveryError(f"{server}: TLS failed: {error.verify_message}", unsent=True)
    if isinstance(error, TimeoutError):
        return DeliveryError(f"{server}: did not answer in time")
    if isinstance(error, ServerDisconnectedError):
        return DeliveryError(f"{server}: closed the connection without an answer")
    if isinstance(error, ClientResponseError):
        return DeliveryError(f"{server}: its answer is not HTTP")
    # Of a failed connection asyncio's own text has the address instead of the reason.
    reason = getattr(error, "strerror", None) or type(error).__name__
    if isinstance(error, ConnectionError) and error.errno:
        reason = os.strerror(error.errno)
    return DeliveryError(f"{server}: {reason}", unsent=isinstance(error, ConnectionRefusedError))


def safe_line(text: str, hidden: Sequence[str | None] = ()) -> str:
    """Return text as one printable line of bounded length, with secrets redacted."""
    return one_line(redact(text, hidden)[:_MOST_READ], _ANSWER_MOST)


def header_secret(secret: Secret, setting: str) -> str | None:
    """Return a secret for use in a header.

    Raises:
        HeadroomError: it has characters that no header can contain; the error does not show the secret.
    """
    value = secret()
    if value is not None and not (value.isascii() and value.isprintable()):
        remedy = "Remove that character from the secret."
        raise HeadroomError(setting, "has a character that no header can carry", remedy)
    return value


def tls_context(ssl_cafile: str | None = None, setting: str = "") -> ssl.SSLContext:
    """Return the TLS context that trusts the authorities of a PEM file; those of the system if None.

    Raises:
        HeadroomError: the file cannot be used; names the setting.
    """
    try:
        return ssl.create_default_context(cafile=ssl_cafile)
    except OSError as error:
        reason = error.strerror or "not PEM"
        raise HeadroomError(setting, f"cannot use {ssl_cafile}: {reason}", "Name a PEM file of authorities.") from None


def _server(url: str) -> str:
    """Return host and port of a URL, because its path may be a secret."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
