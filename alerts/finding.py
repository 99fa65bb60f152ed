"""A finding: one problem that a rule found in one tick, alone or for others of the same cause."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.recommendations.recommendation import Recommendation
from headroom.schemas.alerts import AlertKind, Severity

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
        evidence: numbers of the finding.
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
        also: other findings of the group, which this one represents.
        goes_on_with: kind and subject that the rule found, if an active alert of the group continues with the finding;
            None if the finding has its own kind and subject.
    """

    kind: AlertKind
    subject: str
    severity: Severity
    summary: str
    evidence: Evidence
    recommendation: Recommendation
    hold_s: float
    cause: str = ""
    precedence: int = 0
    weight: float = 0.0
    joins: bool = True
    affected: int = 0
    continues: tuple[str, ...] = ()
    hold_of: str = ""
    also: tuple[Finding, ...] = ()
    goes_on_with: Subject | None = None

    @property
    def key(self) -> Subject:
        """Return kind and subject, which identify its alert within the cluster."""
        return self.kind, self.subject

    def evidence_json(self) -> dict[str, Any]:
        """Return the evidence as it is stored, ready for JSON: that of the rule, and what grouping adds."""
        continued = self.goes_on_with
        added = {
            "also": [_list_entry(other) for other in self.also] or None,
            "goes_on_with": None if continued is None else {"kind": continued[0].value, "subject": continued[1]},
            "affected": self.affected or None,
            "group": self.cause or None,
        }
        return self.evidence.to_json() | {name: value for name, value in added.items() if value is not None}


def _list_entry(finding: Finding) -> dict[str, Any]:
    """Return a finding as the evidence of another one lists it."""
    evidence = finding.evidence
    return {
        "kind": finding.kind.value,
        "subject": finding.subject,
        "severity": finding.severity.value,
        "broker_id": evidence.broker_id,
        "role": None if evidence.role is None else evidence.role.value,
        "throttle_bytes_per_s": evidence.throttle_bytes_per_s,
        "in_sync_bytes_per_s": evidence.in_sync_bytes_per_s,
        "required_bytes_per_s": evidence.required_bytes_per_s,
    }
