"""Posting JSON to a receiver: one deadline, no redirects, and errors that hold no secret.

A redirect is not followed: the user, the signature and the alert would go to whom nobody has named.
"""

from __future__ import annotations

import json
import ssl
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping, Sequence
from http.client import HTTPException, HTTPMessage
from typing import IO, Any
from urllib.parse import urlsplit

from alerts.delivery.receiver import DeliveryError
from schemas.errors import HeadroomError

# Gives a secret at the moment of its use; None: there is none.
Secret = Callable[[], "str | None"]

_ANSWER_MOST = 200
_READ_MOST = 1 << 16


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    def redirect_request(
        self, req: urllib.request.Request, fp: IO[bytes], code: int, msg: str, headers: HTTPMessage, newurl: str
    ) -> None:
        return None


class Poster:
    """Posts to one or several servers.

    Args:
        timeout_s: longest wait for an answer.
        ssl_cafile: PEM file of the authorities to trust; None: the system's.
        setting: name of the setting of that file, for the error.
    """

    def __init__(self, timeout_s: float, ssl_cafile: str | None = None, setting: str = "") -> None:
        self._timeout_s = timeout_s
        tls = urllib.request.HTTPSHandler(context=_tls_context(ssl_cafile, setting))
        self._opener = urllib.request.build_opener(_NoRedirect, tls)

    def post(self, url: str, body: bytes, headers: Mapping[str, str], hidden: Sequence[str | None] = ()) -> str:
        """Return what a server answered to a post that it took, in short.

        Args:
            url: where to.
            body: JSON.
            headers: besides the type of the content.
            hidden: secrets that an answer might repeat.

        Raises:
            DeliveryError: it did not take it, or nothing is known of it.
        """
        given = {"Content-Type": "application/json", "User-Agent": "headroom", **headers}
        request = urllib.request.Request(url, data=body, headers=given, method="POST")
        try:
            with self._opener.open(request, timeout=self._timeout_s) as response:
                return short(f"{response.status} {self._read(response)}", hidden)
        except urllib.error.HTTPError as error:
            with error:
                raise self._refused(_where(url), error, hidden) from None
        except (OSError, HTTPException) as error:
            raise lost(_where(url), error) from None

    def _read(self, response: Any) -> str:
        """Return the beginning of an answer; a server that trickles it does not outlast the deadline."""
        end_s, read = time.monotonic() + self._timeout_s, b""
        while len(read) < _READ_MOST and time.monotonic() < end_s:
            piece = response.read1(_READ_MOST)
            if not piece:
                break
            read += piece
        return read.decode("utf-8", "replace")

    def _refused(self, where: str, error: urllib.error.HTTPError, hidden: Sequence[str | None]) -> DeliveryError:
        try:
            said = self._read(error)
        except (OSError, HTTPException):
            said = ""
        # Of an error of its own a server may have taken the post all the same.
        return DeliveryError(
            short(f"{where}: answered {error.code} {said}", hidden),
            retry_after_s(error.headers.get("Retry-After")),
            unsent=error.code < 500,
        )


def json_body(content: Any) -> bytes:
    """Return JSON as it is sent."""
    return json.dumps(content, separators=(",", ":"), ensure_ascii=False).encode()


def retry_after_s(text: str | None) -> float | None:
    """Return how long a server wants to be left alone, seconds; None: it did not say, or not as a number."""
    return min(float(text), 3600.0) if text is not None and text.strip().isdecimal() else None


def lost(where: str, error: BaseException) -> DeliveryError:
    """Return that a server was not reached, or did not answer; then nobody knows whether it took what was sent."""
    reason = getattr(error, "reason", None)
    cause = reason if isinstance(reason, BaseException) else error
    if isinstance(cause, ssl.SSLCertVerificationError):
        return DeliveryError(f"{where}: TLS failed: {cause.verify_message}", unsent=True)
    if isinstance(cause, TimeoutError):
        return DeliveryError(f"{where}: did not answer in time")
    told = getattr(cause, "strerror", None) or type(cause).__name__
    return DeliveryError(f"{where}: {told}", unsent=isinstance(cause, ConnectionRefusedError))


def short(text: str, hidden: Sequence[str | None] = ()) -> str:
    """Return text in one line of bounded length, without the secrets that it might repeat."""
    for secret in filter(None, hidden):
        text = text.replace(secret, "***")
    line = " ".join(text.split())
    return line if len(line) <= _ANSWER_MOST else f"{line[: _ANSWER_MOST - 1]}…"


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


def _where(url: str) -> str:
    """Return the host and port of a URL; what follows may be a secret."""
    parts = urlsplit(url)
    return f"{parts.hostname}:{parts.port or (443 if parts.scheme == 'https' else 80)}"
