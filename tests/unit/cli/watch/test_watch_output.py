"""What the JSON lines of ``headroom watch`` come to."""

from __future__ import annotations

from typing import Any

from cli.common.watch_output import Line, WatchLines
from schemas.alerts import AlertKind


def lines(*said: dict[str, Any]) -> WatchLines:
    told = WatchLines()
    told.lines += [Line(float(number), line) for number, line in enumerate(said)]
    return told


def event(alert_id: str, state: str, severity: str = "warning") -> dict[str, Any]:
    who = {"kind": "throttle_at_risk", "severity": severity, "subject": f"subject of {alert_id}"}
    return {"type": "event", "alert_id": alert_id, "state": state, **who}


def verdicts(*sides: tuple[int, str, str]) -> dict[str, Any]:
    return {"type": "verdicts", "sides": [{"broker": b, "role": r, "verdict": v} for b, r, v in sides]}


def test_no_verdict_yet_is_not_the_verdict_that_nobody_takes_part() -> None:
    assert lines().verdicts() is None
    assert lines(event("a", "firing")).verdicts() is None
    assert lines(verdicts()).verdicts() == {}


def test_the_last_verdicts_count() -> None:
    told = lines(verdicts((1, "leader", "losing"), (2, "leader", "losing")), verdicts((1, "leader", "catching_up")))
    assert told.verdicts() == {(1, "leader"): "catching_up"}


def test_an_alert_fires_from_its_firing_to_its_resolution() -> None:
    course = [event("a", "pending"), event("a", "firing"), event("b", "firing"), event("a", "resolved")]
    assert [line.fields["alert_id"] for line in lines(*course[:1]).firing()] == []
    assert [line.fields["alert_id"] for line in lines(*course[:3]).firing()] == ["a", "b"]
    assert [line.fields["alert_id"] for line in lines(*course).firing()] == ["b"]
    assert [line.at_s for line in lines(*course).fired()] == [1.0, 2.0]


def test_what_only_informs_asks_nobody_to_act() -> None:
    told = lines(event("a", "firing", "info"), event("b", "firing"))
    assert [line.fields["alert_id"] for line in told.firing()] == ["b"]
    assert [line.fields["alert_id"] for line in told.fired()] == ["b"]
    assert [line.fields["alert_id"] for line in told.firing(informing=True)] == ["a", "b"]
    assert [line.fields["alert_id"] for line in told.fired(informing=True)] == ["a", "b"]
    assert told.last_info(AlertKind.THROTTLE_AT_RISK) == told.lines[0]
    assert told.last_info(AlertKind.ETA_SLIPPING) is None


def test_the_end_of_an_alert_is_that_of_no_other() -> None:
    told = lines(event("a", "firing"), event("b", "firing"), event("b", "resolved"))
    assert told.resolved("a") is None
    assert told.resolved("b") == told.lines[2]


def test_what_was_last_seen_names_verdicts_and_alerts() -> None:
    assert lines().summary() == "verdicts: none; alerts firing: none"
    told = lines(verdicts((1, "leader", "losing")), event("a", "firing"))
    assert told.summary() == "verdicts: broker 1 as leader losing; alerts firing: subject of a"
