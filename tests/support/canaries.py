"""Recognizable secrets of every kind, and a search for them in texts."""

from __future__ import annotations

import base64
from urllib.parse import quote

_KINDS = ("sasl", "key", "jmx", "truststore", "http", "token", "slack", "hook", "path", "query", "signs")
# Secret by kind, with characters that JSON, URLs and HTML escape.
CANARIES = {
    **{kind: f"canary-{number}/{kind}&e" for number, kind in enumerate(_KINDS)},
    # Basic authentication encodes this one, so it never occurs in plain form.
    "alertmanager": "canary-of-alertmanager/&é",
    "conf": "canary-of-spark-conf",
}
_USERS = ("headroom", "monitor")


def in_settings(text: str, **others: str) -> str:
    """Return settings with the secrets filled in by their kinds, quoted in URLs."""
    in_urls = {kind: quote(CANARIES[kind], safe="") for kind in ("hook", "path", "query")}
    return text.format(**(CANARIES | in_urls | others))


def leaks(text: str) -> list[str]:
    """Return the secrets in a text, in any form that a request may contain."""
    forms = {secret: {secret, quote(secret), quote(secret, safe=""), _as_json(secret)} for secret in CANARIES.values()}
    pairs = (f"{user}:{secret}" for user in _USERS for secret in CANARIES.values())
    forms |= {pair: {base64.b64encode(pair.encode()).decode().rstrip("=")} for pair in pairs}
    return [of for of, written_as in forms.items() if any(form in text for form in written_as)]


def _as_json(secret: str) -> str:
    return secret.replace("/", "\\/")
