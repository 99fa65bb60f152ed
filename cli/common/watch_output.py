"""What ``headroom watch --format json`` says, line by line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Any

from schemas.alerts import AlertEvent, AlertKind, AlertState, Severity


@dataclass(frozen=True)
class Line:
    """One line of JSON and when it came, in seconds of the monotonic clock."""

    at_s: float
    said: dict[str, Any]

    @property
    def event(self) -> AlertEvent:
        """Return the event that the line tells; it must be of the type ``event``."""
        fields = {name: self.said[name] for name in AlertEvent.__dataclass_fields__}
        texts = {name: json.dumps(fields[name]) for name in ("evidence", "recommendation")}
        return AlertEvent(**{**fields, **texts})


class WatchLines:
    """The lines of one ``headroom watch``, and what they come to.

    Attributes:
        lines: what it said so far, in the order it came.
    """

    def __init__(self) -> None:
        self.lines: list[Line] = []

    def events(self) -> list[Line]:
        """Return the changes of alerts, in the order they came."""
        return [line for line in self.lines if line.said["type"] == "event"]

    def fired(self, earlier: int = 0, *, informing: bool = False) -> list[Line]:
        """Return the events after the first ``earlier`` by which an alert fires that someone has to act on.

        Args:
            earlier: how many events are left out.
            informing: those too that only inform.
        """
        return [line for line in self.events()[earlier:] if _fires(line) and (informing or not _informs(line))]

    def firing(self, *, informing: bool = False) -> list[Line]:
        """Return the last event of every alert that fires, is not resolved, and that someone has to act on.

        Args:
            informing: those too that only inform.
        """
        last = {line.said["alert_id"]: line for line in self.events() if line.said["state"] != AlertState.PENDING.value}
        return [line for line in last.values() if _fires(line) and (informing or not _informs(line))]

    def informed(self, kind: AlertKind) -> Line | None:
        """Return the last event by which an alert of a kind fires that only informs; None: there is none."""
        told = reversed(self.fired(informing=True))
        return next((line for line in told if _informs(line) and line.said["kind"] == kind.value), None)

    def advice(self, earlier: int = 0) -> Line | None:
        """Return the last event after the first ``earlier`` that fires and recommends a throttle; None: there is none.

        An alert may fire a tick before everything is known that its recommendation needs, and is told again then.
        """
        fired = reversed(self.fired(earlier))
        return next((line for line in fired if line.said["recommendation"]["throttle_bytes_per_s"]), None)

    def resolved(self, alert_id: str) -> Line | None:
        """Return the event that ended an alert; None: it has not ended."""
        ended = (line for line in self.events() if line.said["state"] == AlertState.RESOLVED.value)
        return next((line for line in ended if line.said["alert_id"] == alert_id), None)

    def verdicts(self) -> dict[tuple[int, str], str] | None:
        """Return the verdict of each broker and role that takes part, as last told; None: nothing was told yet."""
        told = [line.said["sides"] for line in self.lines if line.said["type"] == "verdicts"]
        return {(side["broker"], side["role"]): side["verdict"] for side in told[-1]} if told else None

    def last_seen(self) -> str:
        """Return the last verdicts and the alerts that fire, as an error tells them."""
        verdicts = (self.verdicts() or {}).items()
        sides = ", ".join(f"broker {broker} as {role} {verdict}" for (broker, role), verdict in verdicts)
        alerts = ", ".join(line.said["subject"] for line in self.firing())
        return f"verdicts: {sides or 'none'}; alerts firing: {alerts or 'none'}"


def _fires(line: Line) -> bool:
    return bool(line.said["state"] == AlertState.FIRING.value)


def _informs(line: Line) -> bool:
    return bool(line.said["severity"] == Severity.INFO.value)
