"""Alerts and verdicts read from the JSON lines of ``headroom watch``."""

from __future__ import annotations

from typing import Any

from headroom.cli.common.watch_output import Line, WatchLines
from headroom.schemas.alerts import AlertKind


def lines(*text: dict[str, Any]) -> WatchLines:
    shown = WatchLines()
    shown.lines += [Line(float(number), line) for number, line in enumerate(text)]
    return shown


def event(alert_id: str, state: str, severity: str = "warning") -> dict[str, Any]:
    who = {"kind": "throttle_at_risk", "severity": severity, "subject": f"subject of {alert_id}"}
    return {"type": "event", "alert_id": alert_id, "state": state, **who}


def verdicts(*statuses: tuple[int, str, str]) -> dict[str, Any]:
    return {"type": "verdicts", "sides": [{"broker": b, "role": r, "verdict": v} for b, r, v in statuses]}


def test_no_verdict_yet_differs_from_an_empty_verdict() -> None:
    assert lines().verdicts() is None
    assert lines(event("a", "firing")).verdicts() is None
    assert lines(verdicts()).verdicts() == {}


def test_the_last_verdicts_count() -> None:
    shown = lines(verdicts((1, "leader", "losing"), (2, "leader", "losing")), verdicts((1, "leader", "catching_up")))
    assert shown.verdicts() == {(1, "leader"): "catching_up"}


def test_an_alert_fires_from_its_firing_to_its_resolution() -> None:
    course = [event("a", "pending"), event("a", "firing"), event("b", "firing"), event("a", "resolved")]
    assert [line.fields["alert_id"] for line in lines(*course[:1]).firing()] == []
    assert [line.fields["alert_id"] for line in lines(*course[:3]).firing()] == ["a", "b"]
    assert [line.fields["alert_id"] for line in lines(*course).firing()] == ["b"]
    assert [line.at_s for line in lines(*course).firing_events()] == [1.0, 2.0]


def test_info_alerts_are_returned_only_on_request() -> None:
    shown = lines(event("a", "firing", "info"), event("b", "firing"))
    assert [line.fields["alert_id"] for line in shown.firing()] == ["b"]
    assert [line.fields["alert_id"] for line in shown.firing_events()] == ["b"]
    assert [line.fields["alert_id"] for line in shown.firing(informing=True)] == ["a", "b"]
    assert [line.fields["alert_id"] for line in shown.firing_events(informing=True)] == ["a", "b"]
    assert shown.last_info(AlertKind.THROTTLE_AT_RISK) == shown.lines[0]
    assert shown.last_info(AlertKind.ETA_SLIPPING) is None


def test_the_end_of_an_alert_is_that_of_no_other() -> None:
    shown = lines(event("a", "firing"), event("b", "firing"), event("b", "resolved"))
    assert shown.resolving_event("a") is None
    assert shown.resolving_event("b") == shown.lines[2]


def test_the_summary_names_verdicts_and_alerts() -> None:
    assert lines().summary() == "verdicts: none; alerts firing: none"
    shown = lines(verdicts((1, "leader", "losing")), event("a", "firing"))
    assert shown.summary() == "verdicts: broker 1 as leader losing; alerts firing: subject of a"
