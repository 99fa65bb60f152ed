"""Rule ``store_unwritable``: verdicts and alerts continue, but nothing is stored."""

from __future__ import annotations

from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import EMPTY_EVIDENCE
from schemas.alerts import AlertKind, Finding, Severity

STORE = "store"


def store_unwritable_finding(trouble: str, recommender: Recommender) -> Finding:
    """Return the finding that the store cannot be written.

    Args:
        trouble: location that cannot be written, and the reason.
        recommender: makes recommendations.
    """
    return Finding(
        kind=AlertKind.STORE_UNWRITABLE,
        subject=STORE,
        severity=Severity.CRITICAL,
        summary=f"Alerts go on, but nothing is kept: {trouble}",
        evidence={**EMPTY_EVIDENCE, "trouble": trouble},
        recommendation=recommender.no_throttle_change(
            "make the place writable again: room on its disk, its rights, its mount; all goes on by itself then",
            "check",
        ),
        hold_s=0.0,
    )
