"""What people have said of alerts, and when nobody is told: acknowledgements, silences, maintenance windows. Pure.

A cover says nothing of an alert's state: it decides who hears of it, and when. Every answer follows from rows and times
alone, so that it is the same after a crash.
"""

from __future__ import annotations

import json
import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase

from schemas.alerts import AlertEvent, AlertState, Severity
from schemas.config import DAYS, MaintenanceWindow

DAY_MS = 86_400_000
# 1970-01-01, where epoch days begin, was a Thursday.
_FIRST_WEEKDAY = DAYS.index("thu")
# Windows may follow each other without a break for ever; the end of a cover is looked for no further ahead.
_HORIZON_MS = 31 * DAY_MS
# The gravest has the greatest.
_RANK = {severity.value: -severity.rank for severity in Severity}


class SuppressionAction(str, Enum):
    """What a mark does."""

    ACK = "ack"
    SILENCE = "silence"
    UNSILENCE = "unsilence"


@dataclass(frozen=True)
class SuppressionRecord:
    """One acknowledgement, silence, or end of a silence: a row of ``alerts/marks``, whose table tells the columns."""

    mark_id: str
    action: str
    cluster: str | None
    kind: str | None
    subject: str | None
    alert_id: str | None
    severity: str | None
    starts_ms: int | None
    ends_ms: int | None
    by: str
    note: str
    mark_ms: int


@dataclass(frozen=True)
class Silence:
    """A time in which receivers are told of no alert that it matches.

    Attributes:
        record: as it was made.
        starts_ms: when it begins, epoch milliseconds.
        ends_ms: when it ends; less than it was made for if somebody ended it.
    """

    record: SuppressionRecord
    starts_ms: int
    ends_ms: int

    def matches(self, event: AlertEvent) -> bool:
        """Return whether it is about an event's alert."""
        record = self.record
        return _matches(event, _some(record.cluster), _some(record.kind), _some(record.subject))


@dataclass(frozen=True)
class Suppressions:
    """All that holds: what people have said, and the windows of the settings.

    Attributes:
        silences: in the order in which they were made.
        acks: by alert the last acknowledgement.
        windows: maintenance windows.
    """

    silences: Sequence[Silence] = ()
    acks: Mapping[str, SuppressionRecord] = field(default_factory=dict)
    windows: Sequence[MaintenanceWindow] = ()

    @staticmethod
    def of(rows: Iterable[SuppressionRecord], windows: Sequence[MaintenanceWindow] = ()) -> Suppressions:
        """Return what rows of ``alerts/marks`` say, which may come in any order."""
        silences: dict[str, Silence] = {}
        acks: dict[str, SuppressionRecord] = {}
        ordered = sorted(rows, key=lambda row: (row.mark_ms, row.mark_id))
        for row in ordered:
            if row.action == SuppressionAction.ACK.value and row.alert_id is not None:
                acks[row.alert_id] = row
            elif (
                row.action == SuppressionAction.SILENCE.value and row.starts_ms is not None and row.ends_ms is not None
            ):
                silences[row.mark_id] = Silence(row, row.starts_ms, row.ends_ms)
        # After all silences: the clock of who ended one may be behind that of who made it.
        for row in ordered:
            silence = silences.get(row.mark_id)
            if row.action == SuppressionAction.UNSILENCE.value and silence is not None:
                silences[row.mark_id] = replace(silence, ends_ms=min(silence.ends_ms, row.mark_ms))
        return Suppressions(tuple(silences.values()), acks, windows)

    def since(self, from_ms: int) -> Suppressions:
        """Return them without the silences that had ended by then."""
        return replace(self, silences=tuple(s for s in self.silences if s.ends_ms > from_ms))

    def suppressed_until_ms(self, event: AlertEvent, at_ms: int) -> int | None:
        """Return when the cover that an event's alert has at a time ends; None: it has none.

        Covers that follow each other without a break count as one, up to a month ahead.

        Args:
            event: any event of the alert.
            at_ms: the time, epoch milliseconds.
        """
        # By time first: this is asked of every queue, and most silences are over.
        silences = [s for s in self.silences if s.ends_ms > at_ms and s.matches(event)]
        windows = [w for w in self.windows if _matches(event, w.clusters, w.kinds, w.subjects)]
        end_ms = at_ms
        while end_ms < at_ms + _HORIZON_MS:
            ends_ms = [s.ends_ms for s in silences if s.starts_ms <= end_ms < s.ends_ms]
            ends_ms += [end for window in windows for end in _window_ends(window, end_ms)]
            if not ends_ms:
                break
            end_ms = max(ends_ms)
        return end_ms if end_ms > at_ms else None

    def is_suppressed(self, event: AlertEvent, at_ms: int) -> bool:
        """Return whether an event's alert is covered at a time."""
        return self.suppressed_until_ms(event, at_ms) is not None

    def acknowledgement(self, event: AlertEvent) -> SuppressionRecord | None:
        """Return the acknowledgement that holds for an event; None: there is none.

        It ends with the alert, and holds neither for what is more severe than the alert was then, nor when the alert
        has become about something else, or about many more replicas, since.
        """
        ack = self.acks.get(event.alert_id)
        if ack is None or event.state == AlertState.RESOLVED.value or _rank(event.severity) > _rank(ack.severity):
            return None
        escalated_ms = json.loads(event.evidence).get("escalated_tick_ms")
        return None if escalated_ms is not None and escalated_ms > ack.mark_ms else ack


def _window_ends(window: MaintenanceWindow, at_ms: int) -> Iterator[int]:
    """Yield the end of each turn of a window that a time lies in."""
    hours, _, minutes = window.at.partition(":")
    begins_ms, lasts_ms = (int(hours) * 60 + int(minutes)) * 60_000, round(window.lasts * 1000)
    today = at_ms // DAY_MS
    for day in range((at_ms - lasts_ms) // DAY_MS, today + 1):
        starts_ms = day * DAY_MS + begins_ms
        if DAYS[(day + _FIRST_WEEKDAY) % 7] in window.days and starts_ms <= at_ms < starts_ms + lasts_ms:
            yield starts_ms + lasts_ms


def _matches(event: AlertEvent, clusters: Sequence[str], kinds: Sequence[str], subjects: Sequence[str]) -> bool:
    """Return whether an event is of one of each; none named: of any."""
    return (
        (not clusters or event.cluster in clusters)
        and (not kinds or event.kind in kinds)
        and (not subjects or any(fnmatchcase(event.subject, subject) for subject in subjects))
    )


def _some(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)


def _rank(severity: str | None) -> float:
    return _RANK.get(severity or "", -math.inf)
