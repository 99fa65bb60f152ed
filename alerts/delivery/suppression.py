"""Suppression of notifications: acknowledgements, silences and maintenance windows. Pure.

A suppression does not change an alert's state, only when receivers are notified. Every result follows from rows and
times alone, so that a crash does not change it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from enum import Enum
from fnmatch import fnmatchcase

from headroom.alerts.stored_event import evidence_of
from headroom.schemas.alerts import AlertEvent, AlertState, Severity
from headroom.schemas.config import DAYS, MaintenanceWindow

DAY_MS = 86_400_000
# 1970-01-01, where epoch days begin, was a Thursday.
_FIRST_WEEKDAY = DAYS.index("thu")
# Maintenance windows may follow each other indefinitely; the end of a suppression is searched this far ahead.
_HORIZON_MS = 31 * DAY_MS
# The most severe has the highest rank.
_RANK = {severity.value: -severity.rank for severity in Severity}


class SuppressionAction(str, Enum):
    """Action of a suppression record."""

    ACK = "ack"
    SILENCE = "silence"
    UNSILENCE = "unsilence"


@dataclass(frozen=True)
class SuppressionRecord:
    """One acknowledgement, silence, or end of a silence: a row of ``alerts/marks``, which describes the columns."""

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
    """A period without notifications of matching alerts.

    Attributes:
        record: record that created it.
        starts_ms: start, epoch milliseconds.
        ends_ms: end, epoch milliseconds; earlier than in the record if it was ended.
    """

    record: SuppressionRecord
    starts_ms: int
    ends_ms: int

    def matches(self, event: AlertEvent) -> bool:
        """Return whether the silence matches an event's alert."""
        record = self.record
        return _matches(event, _some(record.cluster), _some(record.kind), _some(record.subject))


@dataclass(frozen=True)
class Suppressions:
    """All suppressions in force: records of operators, and maintenance windows of the settings.

    Attributes:
        silences: silences, in order of creation.
        acks: last acknowledgement by alert id.
        windows: maintenance windows.
    """

    silences: Sequence[Silence] = ()
    acks: Mapping[str, SuppressionRecord] = field(default_factory=dict)
    windows: Sequence[MaintenanceWindow] = ()

    @staticmethod
    def of(rows: Iterable[SuppressionRecord], windows: Sequence[MaintenanceWindow] = ()) -> Suppressions:
        """Return the suppressions that rows of ``alerts/marks`` define; the rows may be in any order."""
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
        # After all silences: the machine that ended one may have a clock behind the one that created it.
        for row in ordered:
            silence = silences.get(row.mark_id)
            if row.action == SuppressionAction.UNSILENCE.value and silence is not None:
                silences[row.mark_id] = replace(silence, ends_ms=min(silence.ends_ms, row.mark_ms))
        return Suppressions(tuple(silences.values()), acks, windows)

    def since(self, from_ms: int) -> Suppressions:
        """Return the suppressions without silences that ended before a time."""
        return replace(self, silences=tuple(s for s in self.silences if s.ends_ms > from_ms))

    def suppressed_until_ms(self, event: AlertEvent, at_ms: int) -> int | None:
        """Return when the suppression of an event's alert ends, epoch milliseconds; None if it is not suppressed.

        Suppressions that follow each other without a gap count as one, up to a month ahead.

        Args:
            event: any event of the alert.
            at_ms: the time, epoch milliseconds.
        """
        # Time first, because this runs for every queue and most silences are over.
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
        """Return whether an event's alert is suppressed at a time."""
        return self.suppressed_until_ms(event, at_ms) is not None

    def acknowledgement(self, event: AlertEvent) -> SuppressionRecord | None:
        """Return the acknowledgement that applies to an event; None if there is none.

        It ends with the alert. It does not apply if the alert has become more severe or has escalated since.
        """
        ack = self.acks.get(event.alert_id)
        if ack is None or event.state == AlertState.RESOLVED.value:
            return None
        # A severity that is not known, as a later version may write it, is taken for worse than what was acknowledged.
        if _RANK.get(event.severity, math.inf) > _RANK.get(ack.severity or "", -math.inf):
            return None
        evidence = evidence_of(event)
        # A tick is older than its event, and has the collector's clock: an operator who acknowledged the alert in
        # between has not seen the escalation. Events of older versions have the tick alone.
        written_ms, tick_ms = evidence.escalated_event_ms, evidence.escalated_tick_ms
        escalated_ms = tick_ms if written_ms is None else written_ms
        return None if escalated_ms is not None and escalated_ms > ack.mark_ms else ack


def _window_ends(window: MaintenanceWindow, at_ms: int) -> Iterator[int]:
    """Yield the end of each occurrence of a window that contains a time."""
    hours, _, minutes = window.at.partition(":")
    begins_ms, lasts_ms = (int(hours) * 60 + int(minutes)) * 60_000, round(window.lasts * 1000)
    today = at_ms // DAY_MS
    for day in range((at_ms - lasts_ms) // DAY_MS, today + 1):
        starts_ms = day * DAY_MS + begins_ms
        if DAYS[(day + _FIRST_WEEKDAY) % 7] in window.days and starts_ms <= at_ms < starts_ms + lasts_ms:
            yield starts_ms + lasts_ms


def _matches(event: AlertEvent, clusters: Sequence[str], kinds: Sequence[str], subjects: Sequence[str]) -> bool:
    """Return whether an event matches one value of each matcher; an empty matcher matches all."""
    return (
        (not clusters or event.cluster in clusters)
        and (not kinds or event.kind in kinds)
        # Names may have brackets, which stand for themselves.
        and (not subjects or any(fnmatchcase(event.subject, subject.replace("[", "[[]")) for subject in subjects))
    )


def _some(value: str | None) -> tuple[str, ...]:
    return () if value is None else (value,)
