"""Secrets of every kind, and whether one of them is found in a text."""

from __future__ import annotations

import base64
from urllib.parse import quote

_KINDS = ("sasl", "key", "jmx", "truststore", "http", "token", "slack", "hook", "path", "query", "signs")
# By kind; of characters that JSON, URLs and HTML write in another way too.
CANARIES = {
    **{kind: f"canary-{number}/{kind}&e" for number, kind in enumerate(_KINDS)},
    # The password of Alertmanager is the only one that no header has as it is.
    "alertmanager": "canary-of-alertmanager/&é",
    "conf": "canary-of-spark-conf",
}
_USERS = ("headroom", "monitor")


def in_settings(text: str, **others: str) -> str:
    """Return settings with the canaries filled in by their kinds; what goes into a URL is written as URLs write it."""
    in_urls = {kind: quote(CANARIES[kind], safe="") for kind in ("hook", "path", "query")}
    return text.format(**(CANARIES | in_urls | others))


def leaks(text: str) -> list[str]:
    """Return the secrets that a text shows, in any form in which a request may have had them."""
    forms = {secret: {secret, quote(secret), quote(secret, safe=""), _as_json(secret)} for secret in CANARIES.values()}
    pairs = (f"{user}:{secret}" for user in _USERS for secret in CANARIES.values())
    forms |= {pair: {base64.b64encode(pair.encode()).decode().rstrip("=")} for pair in pairs}
    return [of for of, written_as in forms.items() if any(form in text for form in written_as)]


def _as_json(secret: str) -> str:
    return secret.replace("/", "\\/")
