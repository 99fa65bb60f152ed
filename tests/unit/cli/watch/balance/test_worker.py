"""Proposals and capacity risks beside the watch: when they are made, one at a time, and what becomes of them."""

from __future__ import annotations

import errno
import logging
from collections.abc import Mapping
from typing import Any

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.cli.config.several_files import ConfiguredClusters
from headroom.cli.watch.balance import child_command
from headroom.cli.watch.balance.child_command import ChildCommand, CommandResult
from headroom.cli.watch.balance.worker import BalanceWorker
from headroom.schemas.config import AlertSettings, BalanceSettings, ClusterSettings, Settings
from tests.unit.builders.broker_load import loads
from tests.unit.builders.throttle_status import TICK_MS

UNEVEN = {1: 30.0, 2: 20.0, 3: 10.0}
PROPOSAL: dict[str, Any] = {
    "cluster": "orders",
    "read_ms": TICK_MS,
    "proposal_id": "abc",
    "until_in_band": {"brokers": [1, 3], "reached": True},
    "chosen_actions": 2,
    "actions": [
        {"kind": "elect", "copied_bytes_after": 0.0, "outside_after": 3.0},
        {"kind": "move", "copied_bytes_after": 5e9, "outside_after": 1.0},
        {"kind": "move", "copied_bytes_after": 9e9, "outside_after": 0.0},
    ],
    "outside_before": 4.0,
    "duration_s": 60.0,
    "after": {"brokers": [{"broker": 1, "loads": {"network_in": {"load": 21e6}, "requests": {"load": None}}}]},
}
RISK = {"lost": "broker 2", "broker": 3, "resource": "network_out", "load": 118e6, "limit": 100e6}


class Command:
    """A command that ends when it gets a result."""

    def __init__(self, arguments: tuple[str, ...]) -> None:
        self.arguments = arguments
        self.ends_with: CommandResult | None = None
        self.stopped = False

    def result(self) -> CommandResult | None:
        return self.ends_with

    def stop(self) -> None:
        self.stopped = True

    def end(self, output: Mapping[str, Any] | None, error: str = "") -> None:
        self.ends_with = CommandResult(output, error)


class Scene:
    """A worker with an engine; time passes only by ``tick``."""

    def __init__(self, balance: BalanceSettings | None = None, others: tuple[WatchedCluster, ...] = ()) -> None:
        alerts = AlertSettings(out_of_band_s=900)
        settings = Settings(cluster=ClusterSettings(name="orders"), alerts=alerts, balance=balance or BalanceSettings())
        self.passed_s = 0.0
        self.commands: list[Command] = []
        self.engine = AlertEngine(settings, self.now_ms, "orders.toml", others, self.now_ms)
        clusters = ConfiguredClusters(settings, "orders.toml", others)
        self.worker = BalanceWorker(clusters, self.start, lambda: self.passed_s, self.now_ms)
        self.proposals: list[tuple[str, BalanceAdvice]] = []
        self.worker.follow(self.engine, lambda *proposal: self.proposals.append(proposal))

    def now_ms(self) -> int:
        return TICK_MS + round(self.passed_s * 1000)

    def start(self, arguments: tuple[str, ...]) -> Command:
        self.commands.append(Command(arguments))
        return self.commands[-1]

    def tick(self, seconds: float, mb_in: Mapping[int, float | None] | None = None) -> list[tuple[str, ...]]:
        """Let time pass in steps of half a minute with such loads, and return the commands that were started."""
        before, end_s = len(self.commands), self.passed_s + seconds
        while self.passed_s < end_s:
            self.passed_s = min(end_s, self.passed_s + 30)
            self.engine.inputs("orders").loads = loads(mb_in or UNEVEN, tick_ms=self.now_ms())
            self.engine.evaluate("orders", self.now_ms(), [])
            self.worker.check()
        return [command.arguments for command in self.commands[before:]]


def test_it_proposes_for_a_finding_that_lasts_and_again_after_the_interval() -> None:
    scene = Scene(BalanceSettings(propose_every_s=3600))
    assert scene.tick(120) == []
    expected = ("balance", "propose", "--until-in-band", "1,3", "--format", "json", "--config", "orders.toml")
    assert scene.tick(120) == [expected]
    # It runs; nothing else is started.
    assert scene.tick(600) == []
    scene.commands[0].end(PROPOSAL)
    assert scene.tick(2700) == []
    assert scene.tick(300) == [expected]


def test_nothing_is_proposed_for_even_loads_or_a_finding_that_is_over() -> None:
    scene = Scene()
    assert scene.tick(600, {1: 20.0, 2: 20.0, 3: 20.0}) == []
    scene.tick(60)
    assert scene.tick(600, {1: 20.0, 2: 20.0, 3: 20.0}) == []


def test_the_alert_has_the_cost_of_the_proposal() -> None:
    scene = Scene()
    scene.tick(240)
    scene.commands[0].end(PROPOSAL)
    scene.tick(900)
    (event,) = scene.engine.active()
    assert "carry out the first 2 action(s) (1 of them elections, they copy 5.0 GB in about 1 min)" in (
        event.recommendation
    )


def test_a_proposal_reaches_the_metrics_with_its_gain_and_what_it_promises() -> None:
    scene = Scene()
    scene.tick(240)
    scene.commands[0].end(PROPOSAL)
    scene.tick(30)
    ((cluster, advice),) = scene.proposals
    # 3 of 4 shares of load outside of bands are gone after the first 2 actions.
    assert (cluster, advice.gain_ratio, advice.promised) == ("orders", 0.75, {(1, "network_in"): 21e6})


def test_risks_are_estimated_only_with_a_capacity() -> None:
    assert Scene().tick(600, {1: 20.0, 2: 20.0}) == []
    scene = Scene(BalanceSettings(network_out_capacity=125e6, propose_every_s=600))
    even = {1: 20.0, 2: 20.0}
    assert scene.tick(90, even) == []
    assert scene.tick(60, even) == [("balance", "--format", "json", "--config", "orders.toml")]
    scene.commands[0].end({"cluster": "orders", "at_risk": [RISK]})
    scene.tick(450, even)
    (event,) = scene.engine.active()
    assert (event.kind, event.subject, event.state) == ("capacity_at_risk", "loss of broker 2", "firing")
    assert len(scene.commands) == 1
    scene.tick(150, even)
    assert len(scene.commands) == 2


def test_a_failure_is_logged_once_and_tried_again_after_the_interval(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(BalanceSettings(propose_every_s=600))
    for _ in range(2):
        scene.tick(600)
        scene.commands[-1].end(None, "Error: cluster cannot be reached")
    scene.tick(30)
    assert len(scene.commands) == 2
    with caplog.at_level(logging.WARNING):
        (message,) = [r.message for r in caplog.records if "failed" in r.message]
    assert message.endswith("failed: Error: cluster cannot be reached")


def test_a_command_that_cannot_be_started_stops_no_watch(caplog: pytest.LogCaptureFixture) -> None:
    scene = Scene(BalanceSettings(propose_every_s=600))

    def no_room(arguments: tuple[str, ...]) -> Command:
        raise OSError(errno.ENOSPC, "No space left on device")

    scene.worker.start = no_room
    scene.tick(1500)
    (message,) = [r.message for r in caplog.records if "failed" in r.message]
    assert message.endswith("failed: No space left on device")
    scene.worker.start = scene.start
    scene.tick(600)
    assert len(scene.commands) == 1


def test_a_command_that_hangs_is_ended() -> None:
    scene = Scene()
    scene.tick(240)
    scene.tick(1000)
    assert scene.commands[0].stopped


def test_a_stop_ends_the_command() -> None:
    scene = Scene()
    scene.tick(240)
    scene.worker.stop()
    assert scene.commands[0].stopped
    scene.worker.stop()


def awaited(command: ChildCommand) -> CommandResult:
    command._process.wait(timeout=120)
    found = command.result()
    assert found is not None
    return found


def test_a_child_gives_its_json_or_the_last_line_of_its_messages(
    tmp_path: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    # At the lowest priority it would wait for all tests that run beside it.
    monkeypatch.setattr(child_command, "_LOWEST_PRIORITY", 0)
    state = "docs/examples/balance_state.json"
    found = awaited(ChildCommand(("balance", "propose", "--until-in-band", "1", "--state", state, "--format", "json")))
    assert found.output is not None
    assert found.output["until_in_band"]["brokers"] == [1]
    failed = awaited(ChildCommand(("balance", "--state", str(tmp_path / "none.json"), "--format", "json")))
    assert failed.output is None
    assert "none.json" in failed.error
