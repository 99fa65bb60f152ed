"""Secrets taken out of what a server answers: some repeat the request that they got."""

from __future__ import annotations

import base64
import html
import json
from collections.abc import Iterable, Mapping
from urllib.parse import parse_qsl, quote, unquote, urlsplit

_HIDDEN = "***"
# A part of a URL that is shorter is hidden only with the rest of it: "hook" or "v1" alone say nothing.
_LEAST_PART = 8


def redacted(text: str, secrets: Iterable[str | None]) -> str:
    """Return text without the secrets, as they are or as JSON, HTML, URLs and base 64 write them.

    Args:
        text: what is to be shown or kept.
        secrets: each whole; None and empty ones are passed over.
    """
    forms = {form for secret in secrets if secret for form in _forms(secret)}
    # The longest first: a part of a secret may be one too.
    for form in sorted(forms, key=len, reverse=True):
        text = text.replace(form, _HIDDEN)
    return text


def secrets_of(url: str, headers: Mapping[str, str]) -> list[str]:
    """Return the secrets of a request.

    Args:
        url: where it goes: its path and query may be a token.
        headers: its headers: ``Authorization`` is a secret, and each of its words.
    """
    parts = urlsplit(url)
    target = f"{parts.path}?{parts.query}" if parts.query else parts.path
    pieces = [*parts.path.split("/"), *(value for _, value in parse_qsl(parts.query)), parts.query]
    found = [piece for piece in pieces if len(piece) >= _LEAST_PART]
    if len(target) > 1:
        found += [url, target]
    authorization = headers.get("Authorization", "")
    if authorization:
        found += [authorization, authorization.partition(" ")[2]]
    return found


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
