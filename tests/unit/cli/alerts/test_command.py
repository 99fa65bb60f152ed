from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType, Table
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from headroom.cli.alerts.command import alerts
from headroom.schemas.errors import HeadroomError


def _event(alert_id: str, state: str, tick_ms: int, kind: str = "no_data") -> dict[str, Any]:
    return {
        "alert_id": alert_id,
        "kind": kind,
        "severity": "critical",
        "state": state,
        "cluster": "orders",
        "subject": "broker 2 as leader",
        "summary": "one sentence",
        "evidence": '{"broker_id": 2}',
        "recommendation": '{"action": "none", "commands": []}',
        "tick_ms": tick_ms,
        "event_ms": tick_ms + 5,
    }


@pytest.fixture
def store(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path))
    return tmp_path


def _written(store: Path, *events: dict[str, Any], table: str = "events") -> None:
    columns = {
        name: Array([event[name] for event in events], DataType.int64() if isinstance(value, int) else DataType.utf8())
        for name, value in events[0].items()
    }
    write_deltalake(str(store / "alerts" / table), Table.from_pydict(columns), mode="append")


def _step(
    event: dict[str, Any], state: str, attempt: int = 1, answer: str = "", receiver: str = "log"
) -> dict[str, Any]:
    return {
        "receiver": receiver,
        "event_key": f"{event['alert_id']}/{event['tick_ms']}/{event['state']}",
        "alert_id": event["alert_id"],
        "cluster": "orders",
        "state": state,
        "attempt": attempt,
        "answer": answer,
        "reference": "",
        "delivery_ms": 10 + attempt,
    }


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, arguments, catch_exceptions=False)


def _shown(*arguments: str) -> list[tuple[str, str]]:
    return [(event["alert_id"], event["state"]) for event in json.loads(_run("--format", "json", *arguments).stdout)]


def test_each_alert_is_shown_in_its_latest_state(store: Path) -> None:
    _written(store, _event("a", "pending", 1), _event("a", "firing", 2), _event("b", "firing", 1))
    _written(store, _event("b", "resolved", 3), _event("c", "pending", 4))
    assert _shown() == [("c", "pending"), ("a", "firing")]
    assert _shown("--all") == [("c", "pending"), ("b", "resolved"), ("a", "firing")]


def test_the_later_state_of_two_events_of_one_tick_is_shown(store: Path) -> None:
    _written(store, _event("a", "firing", 1), _event("a", "pending", 1))
    assert _shown() == [("a", "firing")]


def test_alerts_of_one_kind_can_be_asked_for(store: Path) -> None:
    _written(store, _event("a", "firing", 1), _event("b", "firing", 2, "reassignment_stalled"))
    assert _shown("--kind", "reassignment_stalled") == [("b", "firing")]


# A filter that leaves nothing over must not read as all clear.
def test_alerts_of_other_kinds_are_counted_where_none_of_the_kind_is_active(store: Path) -> None:
    _written(store, _event("a", "firing", 1), _event("b", "pending", 2), _event("c", "resolved", 3, "eta_slipping"))
    others = "Of other kinds 2 are pending or firing (shown without --kind)."
    never = "No alert of kind under_replicated was ever raised."
    ended = "No alert of kind eta_slipping is pending or firing; 1 in all have ended (--all shows them)."
    assert f"{never} {others}" in _run("--kind", "under_replicated").stdout
    assert f"{never} {others}" in _run("--kind", "under_replicated", "--all").stdout
    assert f"{ended} {others}" in _run("--kind", "eta_slipping").stdout


def test_undelivered_events_of_other_kinds_are_counted(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_NOTIFY__LOG", "true")
    _written(store, _event("a", "firing", 1))
    text = _run("--undelivered", "--kind", "under_replicated").stdout
    assert "Every receiver has every event" not in text
    assert "No event of this kind is undelivered; 1 of other kinds are (shown without --kind)." in text


def test_an_alert_that_cleared_before_it_fired_is_not_called_resolved(store: Path) -> None:
    _written(store, _event("a", "pending", 1), _event("a", "resolved", 2))
    _written(store, _event("b", "pending", 3), _event("b", "firing", 3), _event("b", "resolved", 4))
    fired, passed = _run("--all").stdout.split("\n\n")
    assert "id b\n  Resolved. It was: one sentence." in fired
    assert "id a\n  Cleared before it fired. It was: one sentence." in passed
    shown = json.loads(_run("--all", "--format", "json").stdout)
    assert [(event["alert_id"], event["fired"]) for event in shown] == [("b", True), ("a", False)]


def test_evidence_and_recommendation_are_objects_in_json(store: Path) -> None:
    _written(store, _event("a", "firing", 1))
    event = json.loads(_run("--format", "json").stdout)[0]
    assert event["evidence"] == {"broker_id": 2}
    assert event["recommendation"]["action"] == "none"


def test_without_a_table_the_command_that_creates_it_is_shown(store: Path) -> None:
    text = _run().stdout
    assert str(store / "alerts" / "events") in text
    assert "headroom watch" in text
    assert _shown() == []


def test_without_active_alerts_a_sentence_is_printed(store: Path) -> None:
    _written(store, _event("a", "resolved", 1))
    assert "No alert is pending or firing" in _run().stdout


def test_a_broken_table_is_an_error_and_not_an_empty_answer(store: Path) -> None:
    _written(store, _event("a", "firing", 1))
    (store / "alerts" / "events" / "_delta_log" / "00000000000000000001.json").write_text("{")
    with pytest.raises(HeadroomError, match="is damaged"):
        _run()


def _undelivered() -> list[tuple[str, str, str, int, str]]:
    rows = json.loads(_run("--undelivered", "--format", "json").stdout)
    return [tuple(row[name] for name in ("receiver", "alert_id", "state", "attempts", "answer")) for row in rows]


def test_undelivered_events_are_shown_with_their_attempts(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HEADROOM_NOTIFY__LOG", "true")
    monkeypatch.setenv("HEADROOM_NOTIFY__WEBHOOK__URL", "http://a/")
    shown, ended, new = _event("a", "firing", 1), _event("a", "resolved", 2), _event("b", "firing", 3)
    _written(store, shown, ended, new, _event("c", "pending", 4), _event("d", "resolved", 5))
    # Receivers that never had anything are new: what was over before they came is nothing that they miss.
    assert _undelivered() == [(name, "b", "firing", 0, "") for name in ("log", "webhook")]
    earlier = _event("e", "firing", 0)
    _written(store, *(_step(earlier, "delivered", 1, "", name) for name in ("log", "webhook")), table="deliveries")
    everything = [("a", "firing"), ("a", "resolved"), ("b", "firing")]
    assert _undelivered() == [(name, *one, 0, "") for name in ("log", "webhook") for one in everything]
    steps = [_step(shown, "sending"), _step(shown, "delivered"), _step(ended, "failed", 2, "answered 500")]
    _written(store, *steps, *(_step(e, "delivered", 1, "", "webhook") for e in (shown, ended)), table="deliveries")
    assert _undelivered() == [
        ("log", "a", "resolved", 2, "answered 500"),
        ("log", "b", "firing", 0, ""),
        ("webhook", "b", "firing", 0, ""),
    ]
    text = _run("--undelivered").stdout
    assert "answered 500" in text
    assert "not tried yet" in text
    _written(store, _step(ended, "dropped"), table="deliveries")
    _written(store, _step(new, "delivered"), _step(new, "delivered", 1, "", "webhook"), table="deliveries")
    assert "Every receiver has every event: log, webhook." in _run("--undelivered").stdout


def test_without_a_receiver_nothing_is_undelivered(store: Path) -> None:
    _written(store, _event("a", "firing", 1))
    assert "No receiver of alerts is configured" in _run("--undelivered").stdout
