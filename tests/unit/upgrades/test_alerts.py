"""Alerts, notifications, acknowledgements and silences of an earlier version: shown, and gone on with after a start."""

from __future__ import annotations

import json
import shlex
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from headroom.alerts.delivery.delivery_log import delivery_status, event_key
from headroom.alerts.delivery.receivers.slack import MessageRef
from headroom.alerts.stored_event import evidence_of, recommendation_of
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.keys import Role
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS, ALERT_MARKS
from headroom.streaming.store.delivery_table import DeliveryTable
from headroom.streaming.tables.rows import row_records
from tests.unit.alerts.test_engine import START_MS, EngineAtTime
from tests.unit.builders import throttle_views
from tests.unit.builders.commands import json_of, run_headroom, succeed
from tests.unit.builders.throttle_status import MB, partition, status
from tests.unit.streaming.store.test_delivery_table import PlainStore
from tests.unit.upgrades.saved import rows_of, save

ENDED, FIRING = "0e30e074c0e93782", "f803d0da98179662"
SUBJECT = "broker 1 as leader"
COMMAND = "headroom throttle apply --config headroom.toml --rate 1000000 --brokers 1 --raise-only --execute"
TOO_LOW = [status(1, Role.LEADER, 0.3, 0.4, partition(), in_sync_mb=0.2)]
GOOD = [status(1, Role.LEADER, 9, 4, partition())]


@pytest.fixture
def store(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    for table in (ALERT_EVENTS, ALERT_DELIVERIES, ALERT_MARKS):
        save(tmp_path, table, rows_of(f"{table.path}.jsonl"))
    monkeypatch.setenv("HEADROOM_STORE__PATH", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    # Within the silence.
    for module in ("streaming.tables.current_alerts", "cli.alerts.suppressing"):
        monkeypatch.setattr(f"headroom.{module}.now_ms", lambda: START_MS + 20_000)
    return tmp_path


def events() -> list[AlertEvent]:
    return row_records(AlertEvent, rows_of("alerts/events.jsonl"), ALERT_EVENTS)


@pytest.mark.usefixtures("store")
def test_alerts_are_shown_with_their_acknowledgement() -> None:
    # No watch runs, so the command ends with another exit code.
    shown = json.loads(run_headroom("alerts", "--all", "--format", "json").stdout)
    assert [(one["alert_id"], one["state"], one["acknowledged_by"]) for one in shown] == [
        (FIRING, "firing", "anna"),
        (ENDED, "resolved", None),
    ]
    assert shown[0]["evidence"]["required_bytes_per_s"] == 0.4 * MB
    text = run_headroom("alerts").stdout
    assert f"$ {COMMAND}" in text
    assert "Acknowledged by anna" in text


@pytest.mark.usefixtures("store")
def test_silences_are_in_force_and_can_be_ended() -> None:
    def silences() -> dict[str, str]:
        shown: Any = json_of("alerts", "silences", "--all")
        return {one["note"]: one["state"] for one in shown}

    assert silences() == {"broker 2 restarts": "holds", "agents are updated": "ended"}
    in_force: Any = json_of("alerts", "silences")
    succeed("alerts", "unsilence", in_force[0]["mark_id"])
    assert silences() == {"broker 2 restarts": "ended", "agents are updated": "ended"}


def test_a_firing_alert_goes_on_under_its_id_and_ends() -> None:
    engine = EngineAtTime()
    engine.engine.restore(events())
    (active,) = engine.engine.active()
    assert (active.alert_id, evidence_of(active).required_bytes_per_s) == (FIRING, 0.4 * MB)
    assert engine.tick(20, TOO_LOW) == []
    assert [change for second in range(21, 40) for change in engine.tick(second, GOOD)] == [
        ("throttle_below_leader_write", SUBJECT, "resolved")
    ]


def test_an_event_that_may_not_have_arrived_is_left_to_send(store: Path) -> None:
    nothing: Any = None
    plain: Any = PlainStore(store)
    backlog = DeliveryTable(nothing, plain).backlog(["slack"])
    known = delivery_status("slack", backlog.records)
    (firing,) = [event for event in backlog.events if event.alert_id == FIRING]
    assert (known[event_key(firing)].attempts, known[event_key(firing)].settled) == (1, False)


def test_a_message_in_slack_is_found_again() -> None:
    references = {row["reference"] for row in rows_of("alerts/deliveries.jsonl") if row["reference"]}
    assert [MessageRef.of(reference) for reference in references] == [MessageRef("C1", "1.5")]


def test_the_command_of_an_alert_runs_as_it_is_shown(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (store / "headroom.toml").write_text('[cluster]\nbootstrap_servers = "broker1:9092"\n')
    rates = replace(throttle_views.OWN, leader_bytes_per_s=300_000, follower_bytes_per_s=None, follower_source="none")
    cluster = throttle_views.FakeCluster(throttle_views.view_of({1: rates}))
    cluster.install(monkeypatch)
    assert recommendation_of(events()[-1]).commands[0] == COMMAND
    done = run_headroom(*shlex.split(COMMAND)[1:])
    assert (done.exit_code, cluster.changes) == (0, [{(1, "leader"): 1_000_000}]), done.output
