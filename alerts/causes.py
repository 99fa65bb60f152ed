"""One alert per cause: of findings that have the same one, one is told and names the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from alerts.evidence import named
from schemas.findings import Finding


def one_per_cause(findings: Sequence[Finding], active: Callable[[Finding], bool]) -> list[Finding]:
    """Return the findings that are told, each with those it stands for under ``also`` in its evidence.

    One whose alert is active already goes on being told, so that no alert ends while what it is about goes on. Of a
    cause that has none, the gravest finding is told, then the weightiest.

    Args:
        findings: of one cluster in one tick.
        active: whether the alert of a finding is told already.
    """
    told = [finding for finding in findings if not finding.cause]
    for group in _by_cause(findings):
        leads = [finding for finding in group if active(finding)] or [min(group, key=_order)]
        others = [finding for finding in group if finding not in leads]
        told.append(_with(leads[0], others))
        told.extend(leads[1:])
    return told


def _by_cause(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.cause:
            groups[finding.cause].append(finding)
    return list(groups.values())


def _order(finding: Finding) -> tuple[int, float, str]:
    return finding.severity.rank, -finding.weight, finding.subject


def _with(lead: Finding, others: Sequence[Finding]) -> Finding:
    """Return the finding that speaks for the others as well, as grave as the gravest of them."""
    if not others:
        return lead
    ordered = sorted(others, key=_order)
    severity = min((lead, *others), key=_order).severity
    whom = named([other.subject for other in ordered if other.subject != lead.subject])
    summary = f"{lead.summary}; of the same cause: {whom}" if whom else lead.summary
    evidence = {**lead.evidence, "also": [_short(other) for other in ordered]}
    return replace(lead, severity=severity, summary=summary, evidence=evidence)


def _short(finding: Finding) -> dict[str, Any]:
    numbers = ("broker_id", "role", "throttle_bytes_per_s", "in_sync_bytes_per_s", "required_bytes_per_s")
    return {
        "kind": finding.kind.value,
        "subject": finding.subject,
        "severity": finding.severity.value,
        **{name: finding.evidence.get(name) for name in numbers},
    }
