from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from arro3.core import Array, DataType, Table
from click.testing import CliRunner, Result
from deltalake import write_deltalake

from cli.alerts_command import alerts
from schemas.errors import HeadroomError


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


def _written(store: Path, *events: dict[str, Any]) -> None:
    columns = {
        name: Array([event[name] for event in events], DataType.int64() if name.endswith("_ms") else DataType.utf8())
        for name in events[0]
    }
    write_deltalake(str(store / "alerts" / "events"), Table.from_pydict(columns), mode="append")


def _run(*arguments: str) -> Result:
    return CliRunner().invoke(alerts, arguments, catch_exceptions=False)


def _shown(*arguments: str) -> list[tuple[str, str]]:
    return [(event["alert_id"], event["state"]) for event in json.loads(_run("--format", "json", *arguments).stdout)]


def test_each_alert_is_shown_where_it_stands_now(store: Path) -> None:
    _written(store, _event("a", "pending", 1), _event("a", "firing", 2), _event("b", "firing", 1))
    _written(store, _event("b", "resolved", 3), _event("c", "pending", 4))
    assert _shown() == [("c", "pending"), ("a", "firing")]
    assert _shown("--all") == [("c", "pending"), ("b", "resolved"), ("a", "firing")]


def test_of_two_events_of_one_tick_the_later_state_counts(store: Path) -> None:
    _written(store, _event("a", "firing", 1), _event("a", "pending", 1))
    assert _shown() == [("a", "firing")]


def test_alerts_of_one_kind_can_be_asked_for(store: Path) -> None:
    _written(store, _event("a", "firing", 1), _event("b", "firing", 2, "reassignment_stalled"))
    assert _shown("--kind", "reassignment_stalled") == [("b", "firing")]


def test_an_alert_that_passed_before_it_fired_is_not_called_put_right(store: Path) -> None:
    _written(store, _event("a", "pending", 1), _event("a", "resolved", 2))
    _written(store, _event("b", "pending", 3), _event("b", "firing", 3), _event("b", "resolved", 4))
    fired, passed = _run("--all").stdout.split("\n\n")
    assert "id b\n  It is put right. It was: one sentence." in fired
    assert "id a\n  It passed before it fired. It was: one sentence." in passed
    told = json.loads(_run("--all", "--format", "json").stdout)
    assert [(event["alert_id"], event["fired"]) for event in told] == [("b", True), ("a", False)]


def test_evidence_and_recommendation_are_objects_in_json(store: Path) -> None:
    _written(store, _event("a", "firing", 1))
    event = json.loads(_run("--format", "json").stdout)[0]
    assert event["evidence"] == {"broker_id": 2}
    assert event["recommendation"]["action"] == "none"


def test_without_a_table_it_is_told_how_it_comes_to_be(store: Path) -> None:
    said = _run().stdout
    assert str(store / "alerts" / "events") in said
    assert "headroom watch" in said
    assert _shown() == []


def test_nothing_firing_is_said_so(store: Path) -> None:
    _written(store, _event("a", "resolved", 1))
    assert "No alert is pending or firing" in _run().stdout


def test_a_broken_table_is_an_error_and_not_an_empty_answer(store: Path) -> None:
    _written(store, _event("a", "firing", 1))
    (store / "alerts" / "events" / "_delta_log" / "00000000000000000001.json").write_text("{")
    with pytest.raises(HeadroomError, match="cannot be read"):
        _run()
