"""The demo's scenario, calculated by planning, and its checks of the outcome."""

from __future__ import annotations

import json
import os
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.cli.common.watch_output import Line
from headroom.cli.demo.command import demo
from headroom.cli.demo.outcome import DemoOutcome, failures, missed_times, summary_rows
from headroom.cli.demo.scenario import BROKERS, NEW_LEADER, ORDERS, PARTITIONS, SWITCHING, THROTTLE_BYTES_PER_S, traffic
from headroom.cli.demo.steps import SteadyTraffic
from headroom.planning.quotas.load import ThrottleLoad, throttle_loads
from headroom.schemas.alerts import AlertEvent, Verdict
from headroom.schemas.environment import is_setting
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import Role

THROTTLES: dict[tuple[int, Role], float | None] = {(b, r): THROTTLE_BYTES_PER_S for b in BROKERS for r in Role}


def loads(leaders: dict[tuple[str, int], int]) -> dict[tuple[int, Role], ThrottleLoad]:
    return {(d.broker, d.role): d for d in throttle_loads(traffic(leaders), THROTTLES) if d.verdict is not Verdict.IDLE}


def test_before_the_switch_every_broker_and_role_catches_up() -> None:
    found = loads({})
    assert {d.verdict for d in found.values()} == {Verdict.CATCHING_UP}
    # Brokers 1 and 2 lead one partition of orders each: 2 MB/s x (one in-sync follower + broker 3) = 4 MB/s.
    assert [found[b, Role.LEADER].required_bytes_per_s for b in (1, 2)] == [4e6, 4e6]


def test_after_the_switch_only_the_new_leader_falls_short() -> None:
    found = loads({SWITCHING: NEW_LEADER})
    assert [broker_role for broker_role, d in found.items() if d.verdict is Verdict.LOSING] == [
        (NEW_LEADER, Role.LEADER)
    ]
    # It leads both: 2 x 2 MB/s x 2 followers, half of them in sync.
    losing = found[NEW_LEADER, Role.LEADER]
    assert (losing.in_sync_bytes_per_s, losing.required_bytes_per_s) == (4e6, 8e6)


def limited(topic: str, leaders: dict[tuple[str, int], int]) -> set[tuple[int, Role]]:
    own = [partition for partition in traffic(leaders) if partition.name.topic == topic]
    return {(d.broker, d.role) for d in throttle_loads(own, THROTTLES) if d.limited_replicas}


def test_the_healthy_move_shares_no_throttled_broker_and_role_with_the_other_move() -> None:
    healthy = limited("payments", {})
    assert healthy == {(4, Role.LEADER), (1, Role.FOLLOWER)}
    assert healthy & (limited("orders", {}) | limited("orders", {SWITCHING: NEW_LEADER})) == set()


def test_the_switch_is_to_the_preferred_leader_of_the_running_move() -> None:
    move = next(p.move for p in ORDERS if p.key == SWITCHING)
    assert move.after[0] == NEW_LEADER != move.before[0]


class Load:
    """What a running load has sent, as set by a test."""

    def __init__(self) -> None:
        self.sent_bytes = {p.key: 0 for p in PARTITIONS}

    def send(self, seconds: float, share_of: tuple[str, int] | None = None, share: float = 1.0) -> None:
        sent = {p.key: p.live_bytes_per_s * seconds * (share if p.key == share_of else 1.0) for p in PARTITIONS}
        self.sent_bytes = {key: self.sent_bytes[key] + int(sent[key]) for key in sent}


@pytest.mark.parametrize("share", [0.7, 1.3])
def test_the_move_waits_until_every_rate_was_kept_for_a_while(share: float) -> None:
    load, now = Load(), [100.0]
    steady = SteadyTraffic(load, 10.0, clock=lambda: now[0])  # type: ignore[arg-type]
    now[0] += 9.0
    load.send(9.0)
    assert not steady.is_reached()
    now[0] += 2.0
    load.send(2.0, SWITCHING, share=share)
    # One partition of three is 5 % away from its rate over the whole time.
    assert not steady.is_reached()
    load.send(10.0)
    now[0] += 10.0
    assert steady.is_reached()


def event(**changes: Any) -> AlertEvent:
    partitions = [{"topic": "orders", "partition": 0, "switch_tick_ms": 1}]
    evidence = {"broker_id": 2, "role": "leader", "partitions": partitions, "switch_tick_ms": 1}
    advice = {"throttle_bytes_per_s": 9_600_000, "finish_s": 60.0, "commands": ["headroom throttle"], "reason": None}
    made = AlertEvent(
        alert_id="a",
        kind="throttle_below_leader_write",
        severity="warning",
        state="firing",
        cluster="embedded",
        subject="broker 2 as leader",
        summary="",
        evidence=json.dumps({**evidence, "required_bytes_per_s": 8e6}),
        recommendation=json.dumps(advice),
        tick_ms=1,
        event_ms=2,
    )
    return replace(made, **changes)


def outcome(
    finish_s: float = 60.0, fired: list[AlertEvent] | None = None, alert: AlertEvent | None = None
) -> DemoOutcome:
    first = alert or event()
    return DemoOutcome(first, switch_to_alert_s=2.0, finish_s=finish_s, resolve_s=7.0, fired=fired or [first])


def test_a_demo_as_predicted_has_no_failures() -> None:
    assert failures(outcome()) == []
    # |75 - 60| / 60 = 25 %
    assert ("Real finish", "1 min 15 s (25% off the middle)") in summary_rows(outcome(finish_s=75.0))


def test_the_predicted_finish_is_printed_as_in_the_alert() -> None:
    assert ("Finish promised by the alert", "about 1 min") in summary_rows(outcome())
    advice = {**json.loads(event().recommendation), "finish_low_s": 50.0, "finish_high_s": 58.0}
    ranged = event(recommendation=json.dumps(advice))
    assert ("Finish promised by the alert", "50 to 58 s") in summary_rows(outcome(alert=ranged))


def test_an_alert_announced_twice_is_one_alert() -> None:
    assert failures(outcome(fired=[event(), event(tick_ms=9)])) == []


def test_a_second_alert_is_a_failure() -> None:
    assert failures(outcome(fired=[event(), event(alert_id="b", subject="broker 1 as leader")])) == [
        "2 alerts fired instead of one: throttle_below_leader_write of broker 2 as leader, "
        "throttle_below_leader_write of broker 1 as leader"
    ]


def test_an_alert_of_the_healthy_move_is_a_failure() -> None:
    partitions = [{"topic": "payments", "partition": 0, "switch_tick_ms": None}]
    other = event(alert_id="b", evidence=json.dumps({"partitions": partitions}))
    assert "the healthy move raised an alert" in failures(outcome(fired=[event(), other]))


def test_an_alert_about_another_broker_is_a_failure() -> None:
    evidence = {**json.loads(event().evidence), "broker_id": 1}
    wrong = event(evidence=json.dumps(evidence), subject="broker 1 as leader")
    assert failures(outcome(alert=wrong)) == [
        "the alert is throttle_below_leader_write about broker 1 as leader, not about broker 2 as leader"
    ]


@pytest.mark.parametrize(("finish_s", "true"), [(90.0, True), (91.0, False), (30.0, True), (29.0, False)])
def test_a_finish_more_than_half_off_is_a_time_that_was_not_kept(finish_s: float, true: bool) -> None:
    # Predicted are 60 s, so 30 s to 90 s pass.
    assert (missed_times(outcome(finish_s=finish_s)) == []) is true
    assert failures(outcome(finish_s=finish_s)) == []


def test_ticks_that_are_late_are_a_failure_unless_the_machine_is_overloaded() -> None:
    late = [event(), event(alert_id="b", kind="no_data", subject="ticks")]
    assert len(failures(outcome(fired=late))) == 1
    assert failures(outcome(fired=late), overloaded=True) == []
    assert missed_times(outcome(fired=late)) == ["ticks were evaluated late, and an alert said so"]
    # Another alert is a failure on any machine.
    assert len(failures(outcome(fired=[*late, event(alert_id="c")]), overloaded=True)) == 1


@pytest.mark.parametrize(
    ("finish_s", "load", "strict", "code"), [(60, 9, True, 0), (99, 9, False, 0), (99, 9, True, 1)]
)
def test_only_a_strict_demo_fails_for_a_time(
    finish_s: float, load: float, strict: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr("headroom.cli.demo.command.run_demo", lambda folder: outcome(finish_s=finish_s))
    monkeypatch.setattr("os.getloadavg", lambda: (load, load, load))
    done = CliRunner().invoke(demo, ["--dir", str(tmp_path / "demo"), *(["--strict"] if strict else [])])
    assert done.exit_code == code
    said = done.output if code == 0 else str(done.exception)
    assert ("the move took 1 min 39 s, promised were 1 min" in said) == (finish_s == 99)
    assert ("a load of 9.0 on" in said) == (finish_s == 99)


def test_an_alert_without_a_promise_is_a_failure() -> None:
    advice = {**json.loads(event().recommendation), "finish_s": None}
    silent = event(recommendation=json.dumps(advice))
    assert failures(outcome(alert=silent)) == ["the alert did not predict the finish of the move"]


def test_an_event_reads_back_from_its_json_line() -> None:
    shown = event()
    parsed = {"evidence": json.loads(shown.evidence), "recommendation": json.loads(shown.recommendation)}
    assert Line(0.0, {"type": "event", **asdict(shown), **parsed}).event == shown


def test_a_folder_that_is_not_empty_is_refused(tmp_path: Path) -> None:
    (tmp_path / "mine").touch()
    result = CliRunner().invoke(demo, ["--dir", str(tmp_path)])
    assert isinstance(result.exception, HeadroomError)
    assert "is not empty" in str(result.exception)
    assert (tmp_path / "mine").exists()


def test_settings_of_the_environment_do_not_lead_the_demo_to_another_cluster(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HEADROOM_CLUSTER__BOOTSTRAP_SERVERS", "production:9092")
    monkeypatch.setenv("HEADROOM_NOTIFY__SLACK__TOKEN", "xoxb-of-the-operator")
    monkeypatch.setenv("HEADROOM_SPARK__DRIVER_MEMORY", "3g")

    def run(_: Path) -> DemoOutcome:
        raise HeadroomError("settings", ", ".join(sorted(filter(is_setting, os.environ))), "")

    monkeypatch.setattr("headroom.cli.demo.command.run_demo", run)
    done = CliRunner().invoke(demo, ["--dir", str(tmp_path / "demo")])
    assert isinstance(done.exception, HeadroomError)
    assert str(done.exception).startswith("settings: HEADROOM_SPARK__DRIVER_MEMORY.")
    assert os.environ["HEADROOM_CLUSTER__BOOTSTRAP_SERVERS"] == "production:9092"
