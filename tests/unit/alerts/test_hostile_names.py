"""Names of clusters, topics and files that were chosen to do harm: where an alert is printed, and in its commands."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receivers.slack_blocks import alert_blocks, change_text, plain_text
from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import MovingPartition
from headroom.alerts.recommendations.commands import (
    PLAN_FILE,
    cancel,
    cancel_all,
    headroom_apply,
    headroom_clear,
    headroom_elections,
    kafka_clear_lists,
    kafka_elect,
    kafka_elect_these,
)
from headroom.alerts.text.terminal import render_event
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, ClusterSettings, Settings
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import TICK_MS, partition, status
from tests.unit.fakes.hostile import ACTING, SHELL_NAMES, acts

SERVERS = "broker1:9092"
TOOLS = ("headroom", "kafka-configs.sh", "kafka-reassign-partitions.sh", "kafka-leader-election.sh")
# Keeps its arguments, each ended by a zero byte.
STUB = '#!/bin/bash\nprintf \'%s\\0\' "$@" >> "$ARGUMENTS"\n'


@pytest.fixture
def pasted(tmp_path: Path) -> Callable[[str], list[str]]:
    """Returns what runs a command as if it were pasted into a shell, and gives the arguments of all its tools."""
    (tmp_path / "bin").mkdir()
    for tool in TOOLS:
        (tmp_path / "bin" / tool).write_text(STUB)
        (tmp_path / "bin" / tool).chmod(0o755)
    (tmp_path / "there").mkdir()

    def run(command: str) -> list[str]:
        arguments = tmp_path / "arguments"
        arguments.unlink(missing_ok=True)
        environment = {"PATH": f"{tmp_path / 'bin'}:/usr/bin:/bin", "ARGUMENTS": str(arguments), "HOME": "/"}
        shell = ["bash", "-c", command]
        subprocess.run(shell, cwd=tmp_path / "there", env=environment, check=True, timeout=120, capture_output=True)
        assert {path.name for path in (tmp_path / "there").iterdir()} <= {PLAN_FILE, "headroom-elections.json"}
        return arguments.read_bytes().decode().split("\0")[:-1]

    return run


@pytest.mark.parametrize("name", SHELL_NAMES)
def test_a_command_that_is_pasted_runs_itself_and_nothing_else(
    name: str, pasted: Callable[[str], list[str]], tmp_path: Path
) -> None:
    moving = [MovingPartition(name, 0, (1, 2))]
    commands = {
        headroom_apply(9_000_000, [1], name): "--config",
        headroom_clear(name): "--config",
        headroom_elections(name): "--config",
        cancel_all(name, SERVERS): "--config",
        cancel(moving, name): "--bootstrap-server",
        kafka_clear_lists(name, list(Role), SERVERS): "--entity-name",
        kafka_elect(name, SERVERS): "--path-to-json-file",
        kafka_elect_these([(name, 0)], name): "--bootstrap-server",
    }
    for command, option in commands.items():
        assert command.isprintable(), "it begins no line of its own"
        arguments = pasted(command)
        assert arguments[arguments.index(option) + 1] == name
    plan = json.loads((tmp_path / "there" / PLAN_FILE).read_text())
    assert plan["partitions"][0]["topic"] == name


def hostile_event(summary: str | None = None) -> AlertEvent:
    """An alert on a cluster, and with a partition of a topic, whose names act on a terminal."""
    settings = Settings(ClusterSettings(name=ACTING), alerts=AlertSettings(hold_s=0, no_data_s=0))
    engine = AlertEngine(settings, lambda: TICK_MS, f"/tmp/{ACTING}.toml")
    moving = partition(topic=ACTING, leader=2, previous_leader=1, switch_tick_ms=TICK_MS)
    event = engine.evaluate(ACTING, TICK_MS, [status(2, Role.LEADER, 5.6, 8, moving, in_sync_mb=4)])[-1]
    return event if summary is None else replace(event, summary=summary)


def lines(text: str) -> Sequence[str]:
    return text.split("\n")


def test_an_alert_has_the_lines_it_should_have_and_none_that_acts() -> None:
    event = hostile_event()
    text = render_event(event)
    commands = json.loads(event.recommendation)["commands"]
    # Its head, its summary, the numbers, the partition, what to do, and a line for each command.
    assert len(lines(text)) == 5 + len(commands)
    assert acts(text) == []
    assert all(command.isprintable() for command in commands)
    resolved = render_event(replace(event, state="resolved", summary=ACTING))
    assert len(lines(resolved)) == 2
    assert acts(resolved) == []


@pytest.mark.parametrize("output_format", ["text", "json"])
def test_output_of_the_watch_has_no_terminal_control_characters(
    output_format: str, capsys: pytest.CaptureFixture[str]
) -> None:
    printer = VerdictPrinter(output_format)
    printer.print_events([hostile_event()])
    printer.print_tick(ACTING, TICK_MS, [status(2, Role.LEADER, 5.6, None, in_sync_mb=None, reason=ACTING)])
    printer.print_tick(ACTING, TICK_MS, [])
    said = capsys.readouterr().out
    assert acts(said) == []
    assert not [line for line in lines(said) if line.startswith("[RESOLVED]")]


def test_a_name_in_a_message_of_slack_begins_no_line() -> None:
    event = hostile_event(ACTING)
    texts = [plain_text(event), change_text(event), json.dumps(alert_blocks(event, Links()), ensure_ascii=False)]
    assert [acts(text) for text in texts] == [[], [], []]
    assert [len(lines(text)) for text in texts] == [1, 1, 1]
    assert "[RESOLVED] all is well" in texts[0]
