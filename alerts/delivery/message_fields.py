"""Message fields that all receivers share: figures, commands and links of an event."""

from __future__ import annotations

import re
from dataclasses import dataclass
from urllib.parse import quote

from headroom.alerts.stored_event import evidence_of, recommendation_of
from headroom.alerts.text.finish import finish_text
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import NotifySettings
from headroom.schemas.text.amounts import rate_text, size_text

_VALUES = re.compile(r"\{(cluster|kind|subject|alert_id|tick_ms)\}")


@dataclass(frozen=True)
class Links:
    """Links in messages.

    Attributes:
        dashboard: URL with ``{cluster}``, ``{kind}``, ``{subject}``, ``{alert_id}`` and ``{tick_ms}``; empty: none.
        runbook: URL of the same form; empty if there is none.
    """

    dashboard: str = ""
    runbook: str = ""

    @staticmethod
    def of(settings: NotifySettings) -> Links:
        """Return the links of the settings."""
        return Links(settings.dashboard_url, settings.runbook_url)

    def urls_of(self, event: AlertEvent) -> dict[str, str]:
        """Return the configured links of an event, by ``dashboard`` and ``runbook``."""
        urls = {"dashboard": self.dashboard, "runbook": self.runbook}
        return {name: _with_values(url, event) for name, url in urls.items() if url}


def _with_values(url: str, event: AlertEvent) -> str:
    """Return a URL with the values of an event in place of their names."""

    def value(name: re.Match[str]) -> str:
        return quote(str(getattr(event, name[1])), safe="")

    # In one pass: a value may look like the name of another.
    return _VALUES.sub(value, url)


def figures(event: AlertEvent) -> dict[str, str]:
    """Return the figures of an event as text by name; empty if it is not about a broker and role."""
    evidence, advice = evidence_of(event), recommendation_of(event)
    if evidence.role is None:
        return {}
    fields = {
        "Throttle now": "none" if evidence.is_unthrottled else rate_text(evidence.throttle_bytes_per_s),
        "Required": rate_text(evidence.required_bytes_per_s),
        "In-sync followers use": rate_text(evidence.in_sync_bytes_per_s),
        "Still to copy": size_text(evidence.remaining_bytes),
    }
    throttle = advice.throttle_bytes_per_s
    if throttle is not None:
        fields["Recommended throttle"] = f"{rate_text(throttle)} ({throttle})"
        fields["Then it finishes in"] = finish_text(vars(advice.finish)) or "unknown"
    return fields


def reason_text(event: AlertEvent) -> str:
    """Return the reason or action of the recommendation; empty if there is none."""
    return recommendation_of(event).reason


def commands(event: AlertEvent) -> list[str]:
    """Return the recommended commands, the best first."""
    return list(recommendation_of(event).commands)
