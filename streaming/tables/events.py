"""Rows of the table of alert events."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from headroom.schemas.alerts import AlertEvent


def event_of(row: Mapping[str, Any]) -> AlertEvent:
    """Return the event of a row of ``alerts/events``; columns of a newer version are ignored."""
    return AlertEvent(
        alert_id=row["alert_id"],
        kind=row["kind"],
        severity=row["severity"],
        state=row["state"],
        cluster=row["cluster"],
        subject=row["subject"],
        summary=row["summary"],
        evidence=row["evidence"],
        recommendation=row["recommendation"],
        tick_ms=row["tick_ms"],
        event_ms=row["event_ms"],
    )
