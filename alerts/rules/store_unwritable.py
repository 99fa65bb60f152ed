"""The store that cannot be written: verdicts and alerts go on, and nothing is kept."""

from __future__ import annotations

from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import NOTHING
from schemas.alerts import AlertKind, Finding, Severity

STORE = "store"


def unwritable(trouble: str, recommender: Recommender) -> Finding:
    """Return that nothing is kept.

    Args:
        trouble: which place cannot be written and why, in a few words.
        recommender: makes recommendations.
    """
    return Finding(
        kind=AlertKind.STORE_UNWRITABLE,
        subject=STORE,
        severity=Severity.CRITICAL,
        summary=f"Alerts go on, but nothing is kept: {trouble}",
        evidence={**NOTHING, "trouble": trouble},
        recommendation=recommender.nothing(
            "make the place writable again: room on its disk, its rights, its mount; all goes on by itself then",
            "check",
        ),
        hold_s=0.0,
    )
