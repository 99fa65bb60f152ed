"""Causes of a scene, and the claims that an alert must make to be about one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from headroom.alerts.evidence.evidence import Evidence
from headroom.cli.common.watch_output import Line
from headroom.schemas.alerts import AlertKind, Severity

# Time for a tick that was being collected when a cause ended, and for printing its alert.
GRACE_S = 5.0


@dataclass(frozen=True)
class PrintedAlert:
    """One firing event of an alert: its first one, or an update.

    Attributes:
        alert_id: id of the alert.
        kind: kind of alert.
        subject: subject of the alert.
        severity: info, warning or critical.
        at_s: time at which its line was printed, monotonic seconds.
        summary: summary of the alert.
        evidence: numbers of the alert.
        recommendation: advice with its commands.
    """

    alert_id: str
    kind: str
    subject: str
    severity: str
    at_s: float
    summary: str
    evidence: Mapping[str, Any] = field(default_factory=Evidence().to_json)
    recommendation: Mapping[str, Any] = field(default_factory=dict)

    @classmethod
    def of(cls, line: Line) -> PrintedAlert:
        """Return the announcement in an output line of the watch. The line must be a firing event."""
        names = (one.name for one in fields(cls) if one.name != "at_s")
        return cls(at_s=line.at_s, **{name: line.fields[name] for name in names})

    @property
    def is_page(self) -> bool:
        """Return whether it pages: an info does not."""
        return self.severity != Severity.INFO.value


# Returns the problem of an announcement; None if it is right.
Check = Callable[[PrintedAlert], "str | None"]
# Returns whether an announcement is about a cause.
Matcher = Callable[[PrintedAlert], bool]


def applies_always(_announcement: PrintedAlert) -> bool:
    """Accept every announcement of the right kind and subject."""
    return True


def all_of(*checks: Check) -> Check:
    """Return a check with the first problem that several checks find; without any check it accepts everything."""

    def check(announcement: PrintedAlert) -> str | None:
        return next((wrong for one in checks if (wrong := one(announcement)) is not None), None)

    return check


@dataclass(frozen=True)
class Claim:
    """Statement of an alert about a cause.

    Attributes:
        kind: kind of alert.
        subject: regular expression for the whole subject.
        applies: whether an announcement is about this cause, and not about another one of the same kind and subject.
        check: returns the wrong numbers of an announcement about the cause.
    """

    kind: AlertKind
    subject: str
    applies: Matcher = applies_always
    check: Check = field(default_factory=all_of)

    def matches(self, announcement: PrintedAlert) -> bool:
        """Return whether an announcement makes this claim."""
        same_kind = announcement.kind == self.kind.value
        return same_kind and re.fullmatch(self.subject, announcement.subject) is not None and self.applies(announcement)


@dataclass
class Cause:
    """One fault, or a state that justifies an alert.

    Attributes:
        name: name of the cause.
        claims: claims of alerts about it; any of them suffices.
        from_s: beginning, monotonic seconds.
        within_s: seconds within which an alert has to announce it.
        required: whether an alert has to announce it; otherwise one may.
        until_s: end, monotonic seconds; None while it lasts.
    """

    name: str
    claims: Sequence[Claim]
    from_s: float
    within_s: float
    required: bool = True
    until_s: float | None = None

    def claim_of(self, announcement: PrintedAlert) -> Claim | None:
        """Return the claim of an announcement about this cause, if it comes in the cause's time; otherwise None."""
        until_s = float("inf") if self.until_s is None else self.until_s + GRACE_S
        if not self.from_s <= announcement.at_s <= until_s:
            return None
        return next((claim for claim in self.claims if claim.matches(announcement)), None)

    def announced_by(self, announcement: PrintedAlert) -> bool:
        """Return whether an announcement reports this cause in time and with right numbers."""
        claim = self.claim_of(announcement)
        in_time = announcement.at_s <= self.from_s + self.within_s
        return claim is not None and in_time and claim.check(announcement) is None


def near(key: str, expected: float, tolerance_ratio: float) -> Check:
    """Return a check of a number in the evidence against the right one, with a tolerance as a share of that."""
    return within(key, expected * (1 - tolerance_ratio), expected * (1 + tolerance_ratio))


def within(key: str, least: float, most: float) -> Check:
    """Return a check that a number in the evidence lies between two bounds."""

    def check(announcement: PrintedAlert) -> str | None:
        number = announcement.evidence.get(key)
        if number is not None and least <= number <= most:
            return None
        return f"{key} is {json.dumps(number)}, not {least:.0f} to {most:.0f}"

    return check


def has_severity(severity: Severity) -> Check:
    """Return a check of the severity."""

    def check(announcement: PrintedAlert) -> str | None:
        if announcement.severity == severity.value:
            return None
        return f"severity is {announcement.severity}, not {severity.value}"

    return check


def blames_no_switch(announcement: PrintedAlert) -> str | None:
    """Return a problem if an announcement blames a leader switch."""
    blamed = announcement.evidence.get("switch_tick_ms") is not None or "leader switch" in announcement.summary
    return f"a leader switch is blamed: {announcement.summary}" if blamed else None


def shows_extent(count: int) -> Matcher:
    """Return a matcher for summaries with a number of replicas or partitions, or with a broker that is down.

    Args:
        count: minimum number in the summary; "and 57 more" behind three names counts as 57.
    """

    def applies(announcement: PrintedAlert) -> bool:
        numbers = [int(text) for text in re.findall(r"(?<![\w.-])\d+(?![\w.-])", announcement.summary)]
        return "is down" in announcement.summary or max(numbers, default=0) >= count

    return applies
