"""A finding: one problem that a rule found in one tick."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alerts.recommendations.recommendation import Recommendation
from schemas.alerts import AlertKind, Severity

# Alert kind and subject: with its cluster, they identify an alert.
Subject = tuple[AlertKind, str]


@dataclass(frozen=True)
class Finding:
    """One problem found in one tick.

    Attributes:
        kind: kind of the alert.
        subject: affected broker, role or component. Cluster, kind and subject identify the alert, so it contains no
            changing number.
        severity: urgency.
        summary: one sentence for the operator.
        evidence: numbers of the finding, ready for JSON.
        recommendation: recommended action; costly values are computed when they are read.
        hold_s: time for which the problem must last before the alert fires, in seconds. 0: fires at once.
        cause: group key: findings of a cluster with the same key form one group, and one of them is announced for all.
            Empty: no group.
        precedence: order within the group: the lowest value is announced, then the most severe, then the greatest
            weight.
        weight: tie-break after precedence and severity.
        joins: true if an active alert of the group also covers this finding; otherwise it gets an alert of its own.
        affected: number of affected replicas or partitions. 0: not counted.
        continues: group keys whose active alert continues while this problem lasts, although its own condition has
            ended.
        hold_of: key of the condition that must last for ``hold_s``. Another key for the same kind and subject restarts
            the time.
    """

    kind: AlertKind
    subject: str
    severity: Severity
    summary: str
    evidence: dict[str, Any]
    recommendation: Recommendation
    hold_s: float
    cause: str = ""
    precedence: int = 0
    weight: float = 0.0
    joins: bool = True
    affected: int = 0
    continues: tuple[str, ...] = ()
    hold_of: str = ""

    @property
    def key(self) -> Subject:
        """Return kind and subject, which identify its alert within the cluster."""
        return self.kind, self.subject
