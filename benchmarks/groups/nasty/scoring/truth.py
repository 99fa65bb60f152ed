"""What is true in a scene: its causes, and what an alert has to say to be about one of them."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from alerts.rules.evidence import EMPTY_EVIDENCE
from cli.common.watch_output import Line
from schemas.alerts import AlertKind, AlertState, Severity

# The tick that was under way when a cause ended, and the time until its alert is printed.
GRACE_S = 5.0


@dataclass(frozen=True)
class Announcement:
    """One event by which an alert fires: its first one, or an update of it.

    Attributes:
        alert_id: the alert.
        kind: kind of alert.
        subject: subject of the alert.
        severity: info, warning or critical.
        at_s: when its line was printed, seconds of the monotonic clock.
        summary: the sentence.
        evidence: the numbers behind it.
        recommendation: what is advised, with its commands.
    """

    alert_id: str
    kind: str
    subject: str
    severity: str
    at_s: float
    summary: str
    evidence: Mapping[str, Any] = field(default_factory=lambda: dict(EMPTY_EVIDENCE))
    recommendation: Mapping[str, Any] = field(default_factory=dict)

    @property
    def is_page(self) -> bool:
        """Return whether it calls a person: an info does not."""
        return self.severity != Severity.INFO.value


# Returns what is wrong in an announcement; None if all of it is right.
Check = Callable[[Announcement], "str | None"]


# Returns whether an announcement is about a cause at all.
Matcher = Callable[[Announcement], bool]


def no_numbers(_announcement: Announcement) -> None:
    """Return that nothing is wrong: a claim without numbers."""


def applies_always(_announcement: Announcement) -> bool:
    """Return that an announcement of the right kind and subject is about the cause, whatever else it says."""
    return True


@dataclass(frozen=True)
class Claim:
    """What an alert says that is about a cause.

    Attributes:
        kind: kind of alert.
        subject: regular expression that its subject matches as a whole.
        applies: whether an announcement is about the cause at all; else it may be about another one.
        check: finds wrong numbers in an announcement that is about the cause.
    """

    kind: AlertKind
    subject: str
    applies: Matcher = applies_always
    check: Check = no_numbers

    def matches(self, announcement: Announcement) -> bool:
        """Return whether an announcement makes this claim."""
        same_kind = announcement.kind == self.kind.value
        return same_kind and re.fullmatch(self.subject, announcement.subject) is not None and self.applies(announcement)


@dataclass
class Cause:
    """One thing that is wrong, or may look so with reason.

    Attributes:
        name: what is wrong.
        claims: what alerts may say of it, any of them.
        from_s: when it began, seconds of the monotonic clock.
        within_s: time in which an alert has to announce it.
        required: whether an alert must announce it; else one may.
        until_s: when it was over; None if it is not.
    """

    name: str
    claims: Sequence[Claim]
    from_s: float
    within_s: float
    required: bool = True
    until_s: float | None = None

    def claim_of(self, announcement: Announcement) -> Claim | None:
        """Return the claim on this cause that an announcement makes in the time of the cause; None if it makes none."""
        until_s = float("inf") if self.until_s is None else self.until_s + GRACE_S
        if not self.from_s <= announcement.at_s <= until_s:
            return None
        return next((claim for claim in self.claims if claim.matches(announcement)), None)

    def announced_by(self, announcement: Announcement) -> bool:
        """Return whether an announcement tells of this cause, rightly and in time."""
        claim = self.claim_of(announcement)
        in_time = announcement.at_s <= self.from_s + self.within_s
        return claim is not None and in_time and claim.check(announcement) is None


def announcement_of(line: Line) -> Announcement:
    """Return the announcement that a line of the watch makes; the line has to be an alert that fires."""
    said = line.fields
    return Announcement(
        said["alert_id"],
        said["kind"],
        said["subject"],
        said["severity"],
        line.at_s,
        said["summary"],
        said["evidence"],
        said["recommendation"],
    )


def announcements(lines: Sequence[Line]) -> list[Announcement]:
    """Return every firing event among the lines of a watch, in their order."""
    fired = [
        line for line in lines if line.fields["type"] == "event" and line.fields["state"] == AlertState.FIRING.value
    ]
    return [announcement_of(line) for line in fired]


def all_of(*checks: Check) -> Check:
    """Return a check that finds what the first of several checks finds wrong."""

    def check(announcement: Announcement) -> str | None:
        return next((wrong for one in checks if (wrong := one(announcement)) is not None), None)

    return check


def near(key: str, expected: float, tolerance_ratio: float) -> Check:
    """Return a check that a number of the evidence is what was counted by hand.

    Args:
        key: of the evidence.
        expected: the right number.
        tolerance_ratio: how far from it the evidence may be, against the right number.
    """
    return within(key, expected * (1 - tolerance_ratio), expected * (1 + tolerance_ratio))


def within(key: str, least: float, most: float) -> Check:
    """Return a check that a number of the evidence lies between two bounds."""

    def check(announcement: Announcement) -> str | None:
        found = announcement.evidence.get(key)
        if found is not None and least <= found <= most:
            return None
        return f"{key} is {json.dumps(found)}, not {least:.0f} to {most:.0f}"

    return check


def has_severity(severity: Severity) -> Check:
    """Return a check of the severity."""

    def check(announcement: Announcement) -> str | None:
        if announcement.severity == severity.value:
            return None
        return f"severity is {announcement.severity}, not {severity.value}"

    return check


def blames_no_switch(announcement: Announcement) -> str | None:
    """Return what is wrong if an announcement blames a leader switch."""
    blamed = announcement.evidence.get("switch_tick_ms") is not None or "leader switch" in announcement.summary
    return f"a leader switch is blamed: {announcement.summary}" if blamed else None


def shows_extent(count: int) -> Matcher:
    """Return a test that the sentence shows a number of replicas or partitions, or that the broker is down.

    Args:
        count: the least number that the sentence has to show; "and 57 more" behind three names counts as 57.
    """

    def applies(announcement: Announcement) -> bool:
        numbers = [int(text) for text in re.findall(r"(?<![\w.-])\d+(?![\w.-])", announcement.summary)]
        return "is down" in announcement.summary or max(numbers, default=0) >= count

    return applies
