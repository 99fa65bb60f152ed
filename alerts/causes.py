"""One alert per cause: of findings that have the same one, one is told and names the others."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

from alerts.evidence import named
from schemas.findings import Finding

# Whether the alert of one finding stands for another.
Speaks = Callable[[Finding], bool]


def one_per_cause(findings: Sequence[Finding], speaker: Callable[[Finding], Speaks | None]) -> list[Finding]:
    """Return the findings that are told, each with those it stands for under ``also`` in its evidence.

    One whose alert is told already goes on being told, so that no alert ends while what it is about goes on. Of those
    that no such one stands for, the gravest is told, then the weightiest.

    Args:
        findings: of one cluster in one tick.
        speaker: tells of a finding whom its alert stands for; None: its alert is not told yet.
    """
    told = [finding for finding in findings if not finding.cause]
    for group in _by_cause(findings):
        known = {id(finding): speaks for finding in group if (speaks := speaker(finding)) is not None}
        leads = [finding for finding in group if id(finding) in known]
        others = [finding for finding in group if id(finding) not in known]
        joined = {id(one): one for one in others if any(speaks(one) for speaks in known.values())}
        own = sorted((one for one in others if id(one) not in joined), key=_order)
        if leads:
            told += [_with(leads[0], list(joined.values())), *leads[1:]]
        if own:
            told.append(_with(own[0], own[1:]))
    return told


def _by_cause(findings: Sequence[Finding]) -> list[list[Finding]]:
    groups: dict[str, list[Finding]] = defaultdict(list)
    for finding in findings:
        if finding.cause:
            groups[finding.cause].append(finding)
    return list(groups.values())


def _order(finding: Finding) -> tuple[int, int, float, str]:
    return finding.precedence, finding.severity.rank, -finding.weight, finding.subject


def _with(lead: Finding, others: Sequence[Finding]) -> Finding:
    """Return the finding that speaks for the others as well, as grave as the gravest of them."""
    if not others:
        return lead
    ordered = sorted(others, key=_order)
    severity = min((one.severity for one in (lead, *others)), key=lambda severity: severity.rank)
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
