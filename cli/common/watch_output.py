"""Reader of the JSON lines of ``headroom watch --format json``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState, Severity


@dataclass(frozen=True)
class Line:
    """One line of JSON, with its time of arrival in seconds of the monotonic clock."""

    at_s: float
    fields: dict[str, Any]

    @property
    def event(self) -> AlertEvent:
        """Return the alert event of a line of type ``event``."""
        fields = {name: self.fields[name] for name in AlertEvent.__dataclass_fields__}
        texts = {name: json.dumps(fields[name]) for name in ("evidence", "recommendation")}
        return AlertEvent(**{**fields, **texts})


class WatchLines:
    """The lines of one ``headroom watch``, and the alerts and verdicts that follow from them.

    Attributes:
        lines: all lines so far, in order of arrival.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def events(self) -> list[Line]:
        """Return the alert events, in order of arrival."""
        return [line for line in self.lines if line.fields["type"] == "event"]

    def firing_events(self, earlier: int = 0, *, informing: bool = False) -> list[Line]:
        """Return the firing events after the first ``earlier`` events, without alerts of severity info.

        Args:
            earlier: number of events to skip.
            informing: also return alerts of severity info.
        """
        return [line for line in self.events()[earlier:] if _fires(line) and (informing or not _informs(line))]

    def firing(self, *, informing: bool = False) -> list[Line]:
        """Return the last event of every alert that is firing, without alerts of severity info.

        Args:
            informing: also return alerts of severity info.
        """
        last = {
            line.fields["alert_id"]: line for line in self.events() if line.fields["state"] != AlertState.PENDING.value
        }
        return [line for line in last.values() if _fires(line) and (informing or not _informs(line))]

    def last_info(self, kind: AlertKind) -> Line | None:
        """Return the last firing event of a kind with severity info; None if there is none."""
        newest_first = reversed(self.firing_events(informing=True))
        return next((line for line in newest_first if _informs(line) and line.fields["kind"] == kind.value), None)

    def last_recommendation(self, earlier: int = 0) -> Line | None:
        """Return the last firing event after the first ``earlier`` that recommends a throttle; None if there is none.

        An alert may fire one tick before all inputs of its recommendation are known. It is then announced again.
        """
        newest_first = reversed(self.firing_events(earlier))
        return next((line for line in newest_first if line.fields["recommendation"]["throttle_bytes_per_s"]), None)

    def resolving_event(self, alert_id: str) -> Line | None:
        """Return the event that resolved an alert; None if it is not resolved."""
        ended = (line for line in self.events() if line.fields["state"] == AlertState.RESOLVED.value)
        return next((line for line in ended if line.fields["alert_id"] == alert_id), None)

    def verdicts(self) -> dict[tuple[int, str], str] | None:
        """Return the last verdict by broker and role; None if no verdicts were printed yet."""
        printed = [line.fields["sides"] for line in self.lines if line.fields["type"] == "verdicts"]
        return {(status["broker"], status["role"]): status["verdict"] for status in printed[-1]} if printed else None

    def summary(self) -> str:
        """Return the last verdicts and the firing alerts as text for an error message."""
        last = (self.verdicts() or {}).items()
        verdicts = ", ".join(f"broker {broker} as {role} {verdict}" for (broker, role), verdict in last)
        alerts = ", ".join(line.fields["subject"] for line in self.firing())
        return f"verdicts: {verdicts or 'none'}; alerts firing: {alerts or 'none'}"


def _fires(line: Line) -> bool:
    return bool(line.fields["state"] == AlertState.FIRING.value)


def _informs(line: Line) -> bool:
    return bool(line.fields["severity"] == Severity.INFO.value)
