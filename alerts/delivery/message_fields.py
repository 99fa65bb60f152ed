"""Message fields that all receivers share: figures, commands and links of an event."""

from __future__ import annotations

import json
from dataclasses import dataclass
from urllib.parse import quote

from alerts.text.formatting import finish_text, format_rate, size
from schemas.alerts import AlertEvent, Verdict
from schemas.config import NotifySettings


@dataclass(frozen=True)
class Links:
    """Links in messages.

    Attributes:
        dashboard: URL with ``{cluster}`` and ``{kind}``; empty if there is none.
        runbook: URL of the same form; empty if there is none.
    """

    dashboard: str = ""
    runbook: str = ""

    @staticmethod
    def of(settings: NotifySettings) -> Links:
        """Return the links of the settings."""
        return Links(settings.dashboard_url, settings.runbook_url)

    def filled(self, event: AlertEvent) -> dict[str, str]:
        """Return the configured links of an event, by ``dashboard`` and ``runbook``."""
        urls = {"dashboard": self.dashboard, "runbook": self.runbook}
        return {name: _filled(url, event) for name, url in urls.items() if url}


def _filled(url: str, event: AlertEvent) -> str:
    return url.replace("{cluster}", quote(event.cluster, safe="")).replace("{kind}", quote(event.kind, safe=""))


def figures(event: AlertEvent) -> dict[str, str]:
    """Return the figures of an event as text by name; empty if it is not about a broker and role."""
    evidence, advice = json.loads(event.evidence), json.loads(event.recommendation)
    if evidence.get("role") is None:
        return {}
    throttle = evidence.get("throttle_bytes_per_s")
    unlimited = throttle is None and evidence.get("verdict") == Verdict.UNTHROTTLED.value
    fields = {
        "Throttle now": "none" if unlimited else format_rate(throttle),
        "Required": format_rate(evidence.get("required_bytes_per_s")),
        "In-sync followers use": format_rate(evidence.get("in_sync_bytes_per_s")),
        "Still to copy": size(evidence.get("remaining_bytes")),
    }
    if advice.get("throttle_bytes_per_s") is not None:
        fields["Recommended throttle"] = (
            f"{format_rate(advice['throttle_bytes_per_s'])} ({advice['throttle_bytes_per_s']})"
        )
        fields["Then it finishes in"] = finish_text(advice) or "unknown"
    return fields


def reason_text(event: AlertEvent) -> str:
    """Return the reason or action of the recommendation; empty if there is none."""
    return str(json.loads(event.recommendation).get("reason") or "")


def commands(event: AlertEvent) -> list[str]:
    """Return the recommended commands, the best first."""
    found: list[str] = json.loads(event.recommendation).get("commands") or []
    return found
