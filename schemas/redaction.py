"""Removal of secrets from server responses, because some servers repeat the request."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlsplit

_HIDDEN = "***"
# Shorter parts of a URL are hidden only as part of the whole URL: "hook" or "v1" alone reveal nothing.
_MIN_PART_LENGTH = 8


def redact(text: str, secrets: Iterable[str | None]) -> str:
    """Return a text with every secret replaced by ``***``, in plain form and as encoded in JSON, HTML, URLs and base64.

    Args:
        text: text to be shown or stored.
        secrets: complete secrets; None and empty ones are skipped.
    """
    forms = {form for secret in secrets if secret for form in _forms(secret)}
    # Longest first, because one secret may be a part of another.
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _HIDDEN)
    return text


def secrets_of(url: str, headers: Mapping[str, str]) -> list[str]:
    """Return the secrets in the URL and headers of a request.

    Args:
        url: URL of the request; its path and query may contain a token.
        headers: headers of the request; ``Authorization`` is a secret, and so is its credential alone.
    """
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    pieces = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query)), parts.query]
    secrets = [piece for piece in pieces if len(piece) >= _MIN_PART_LENGTH]
    if len(target) > 1:
        secrets += [url, target]
    authorization = headers.get("Authorization", "")
    if authorization:
        secrets += [authorization, authorization.partition(" ")[2]]
    return secrets


def _forms(secret: str) -> set[str]:
    as_json = json.dumps(secret)[1:-1]
    return {
        secret,
        as_json,
        as_json.replace("/", "\\/"),
        json.dumps(secret, ensure_ascii=False)[1:-1],
        quote(secret),
        quote(secret, safe=""),
        unquote(secret) or secret,
        html.escape(secret),
        html.escape(secret, quote=False),
        base64.b64encode(secret.encode()).decode().rstrip("="),
    }
