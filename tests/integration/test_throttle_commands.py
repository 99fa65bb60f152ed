"""The commands that alerts recommend, on real brokers: different rates, hanging and dead brokers, Kafka's own tool."""

from __future__ import annotations

import json
import os
import shlex
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka import KafkaAdminClient

from headroom.cli.main import headroom
from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import BROKER, LEADER_RATE, LOG_DIRS_RATE
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.java import jar_folder, java_command
from headroom.cluster.live.live_cluster import read_throttles
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import apply_lists, clear_lists
from headroom.planning.throttles.replica_lists import Move, lists_of_plan
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.integration.support import completed, create_topic, fill, wait_until

TOOL = "org.apache.kafka.tools.reassign.ReassignPartitionsCommand"
MB = 1_000_000
BROKERS = (1, 2, 3, 4)
# Neither hanging nor dead does it take the controller away: with four brokers these are 1 to 3.
VICTIM = 4
# One moves to another broker, the other gains one.
MOVES = [Move(TopicPartition("orders", 0), (1, 2), (4, 2)), Move(TopicPartition("orders", 1), (2, 3), (2, 3, 1))]


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    create_topic(cluster, "orders", {m.name.partition: list(m.before) for m in MOVES} | {2: [3, VICTIM]})


@pytest.fixture(autouse=True)
def nothing_left(settings: Settings) -> Iterator[None]:
    yield
    clear_rates(settings, BROKERS, cluster_default=True)
    clear_lists(settings, ["orders"])


def run(config_file: Path, *arguments: str, request_timeout_ms: int = 10_000) -> Result:
    env = {"HEADROOM_CLUSTER__REQUEST_TIMEOUT_MS": str(request_timeout_ms), "HEADROOM_COLLECT__MEASURE_S": "1"}
    return CliRunner(env=env).invoke(headroom, [*arguments, "--config", str(config_file), "--format", "json"])


def rates(settings: Settings) -> dict[int, tuple[int | None, int | None]]:
    """Return the leader and the follower rate of each broker that is up."""
    state = read_throttles(settings)
    up = {b: r for b, r in sorted(state.rates.items()) if state.alive(b)}
    return {b: (r.leader_bytes_per_s, r.follower_bytes_per_s) for b, r in up.items()}


def set_default(settings: Settings, values: dict[str, str]) -> None:
    link = AdminConnection(settings.cluster)
    alter_configs(link, [ConfigChange(BROKER, "", values)], 10)
    link.close()


def test_raise_only_raises_what_is_lower_and_nothing_else(config_file: Path, settings: Settings) -> None:
    set_default(settings, {LEADER_RATE: str(7 * MB)})
    own = {(1, "leader"): 5_600_000, (1, "follower"): 50 * MB, (4, "leader"): 20 * MB, (4, "follower"): 1 * MB}
    apply_rates(settings, own)
    # Brokers 2 and 3 have the default as leaders, and as followers none.
    before = {1: (5_600_000, 50 * MB), 2: (7 * MB, None), 3: (7 * MB, None), 4: (20 * MB, 1 * MB)}
    wait_until(lambda: rates(settings) == before, 30, "the rates of before", lambda: rates(settings))

    command = ("throttle", "apply", "--rate", "9600000", "--brokers", "1,2,4", "--raise-only", "--execute")
    result = run(config_file, *command)
    assert result.exit_code == 0, result.output
    after = {1: (9_600_000, 50 * MB), 2: (9_600_000, None), 3: (7 * MB, None), 4: (20 * MB, 9_600_000)}
    assert rates(settings) == after
    actions = {b["broker"]: [change["action"] for change in b["changes"].values()] for b in of(result)["brokers"]}
    assert actions == {1: ["raise", "keep"], 2: ["raise", "keep_unlimited"], 4: ["keep", "raise"]}

    again = run(config_file, *command)
    assert (again.exit_code, {b["after"] for b in of(again)["brokers"]}) == (0, {None})
    assert rates(settings) == after


def test_one_role_is_set_alone(config_file: Path, settings: Settings) -> None:
    result = run(config_file, "throttle", "apply", "--rate", "3MB", "--brokers", "2", "--role", "follower", "--execute")
    assert result.exit_code == 0, result.output
    assert rates(settings)[2] == (None, 3 * MB)


def test_a_rate_between_log_directories_that_kafkas_tool_set_is_shown_and_cleared(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    # Where it is, so that nothing is copied.
    logs = wait_until(lambda: [*cluster.folder.parent.glob("broker-1/*/orders-0")], 30, "the log of orders-0")
    (folder,) = (log.parent for log in logs)
    replicas = {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": [str(folder), "any"]}
    plan = tmp_path / "plan.json"
    plan.write_text(json.dumps({"version": 1, "partitions": [replicas]}))
    tool(cluster, tmp_path, plan, "--execute", "--replica-alter-log-dirs-throttle", str(6 * MB))

    def shown() -> dict[int, int | None]:
        brokers = of(run(config_file, "throttle", "show"))["brokers"]
        return {b["broker"]: b["log_dirs_bytes_per_s"] for b in brokers}

    wait_until(lambda: shown() == {1: 6 * MB, 2: None, 3: None, 4: None}, 30, "the rate of Kafka's tool", shown)
    assert "log directories" in CliRunner().invoke(headroom, ["throttle", "show", "--config", str(config_file)]).stdout
    cleared = run(config_file, "throttle", "clear", "--rates", "--execute")
    assert cleared.exit_code == 0, cleared.output
    assert of(cleared)["keys"]["brokers"] == [{"broker": 1, "keys": [LOG_DIRS_RATE]}]
    assert {r.log_dirs_source for r in read_throttles(settings).rates.values()} == {"none"}


def test_a_cluster_default_that_own_rates_hide_is_cleared_too(config_file: Path, settings: Settings) -> None:
    set_default(settings, {LEADER_RATE: str(7 * MB)})
    apply_rates(settings, dict.fromkeys(BROKERS, 5 * MB))
    assert run(config_file, "throttle", "clear", "--cluster-default", "--execute").exit_code == 0
    assert set(rates(settings).values()) == {(None, None)}


def test_kafkas_tool_cancels_what_the_file_names(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    # Nine fetches of 1 MiB at 20 kB/s, one each eleven seconds or more: the moves would take minutes.
    fill(cluster, "orders", {m.name.partition: 10 * MB for m in MOVES})
    apply_lists(settings, lists_of_plan(MOVES))
    apply_rates(settings, dict.fromkeys(BROKERS, 20_000))
    admin = KafkaAdminClient(bootstrap_servers=cluster.bootstrap_servers)
    try:
        targets = {m.name: list(m.after) for m in MOVES}
        assert not any(admin.alter_partition_reassignments(targets).values())
        running = of(run(config_file, "reassignments"))["reassignments"]
        assert [(r["partition"], r["target"], r["adding"], r["removing"]) for r in running] == [
            (0, [4, 2], [4], [1]),
            (1, [2, 3, 1], [1], []),
        ]
        assert [r["leader"] for r in running] == [1, 2]

        # The command as an alert prints it, in a shell.
        done = shell(cluster, config_file, tmp_path)
        assert done.returncode == 0, done.stdout + done.stderr
        assert "Successfully cancelled partition reassignments for: orders-0,orders-1" in done.stdout
        wait_until(lambda: not admin.list_partition_reassignments(), 30, "the reassignments end")
        assert set(rates(settings).values()) == {(20_000, 20_000)}

        # Nothing runs any more: the file of before is left alone and Kafka's tool is not started.
        before = (tmp_path / "headroom-move.json").read_text()
        again = shell(cluster, config_file, tmp_path)
        assert (again.returncode, "cancelled" in again.stdout) == (1, False)
        assert (tmp_path / "headroom-move.json").read_text() == before
    finally:
        admin.close()


def test_a_broker_that_hangs_is_named_and_the_others_are_set(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster
) -> None:
    command = ("throttle", "apply", "--rate", "3MB", "--brokers", "1,2,4", "--execute")

    def result_while_it_hangs() -> Result | None:
        cluster.pause(VICTIM)
        try:
            result = run(config_file, *command, request_timeout_ms=4000)
        finally:
            cluster.resume(VICTIM)
        # Where this took so long that the controller had the broker down, the command passed it over.
        if result.exit_code:
            return result
        wait_until(lambda: VICTIM in rates(settings), 60, "the broker is up again", lambda: rates(settings))
        return None

    result = wait_until(result_while_it_hangs, 60, "a command that meets a broker that hangs")
    assert result is not None
    assert result.exit_code == 1
    assert isinstance(result.exception, HeadroomError)
    assert result.exception.subject == f"broker {VICTIM}"
    assert {b["broker"] for b in of(result)["brokers"] if b["after"]} == {1, 2}
    wait_until(lambda: VICTIM in rates(settings), 60, "the broker answers again", lambda: rates(settings))
    assert [rates(settings)[b] for b in (1, 2)] == [(3 * MB, 3 * MB)] * 2


def test_a_broker_that_nothing_names_is_refused_with_all_others(config_file: Path, settings: Settings) -> None:
    result = run(config_file, "throttle", "apply", "--rate", "3MB", "--brokers", "1,9", "--execute")
    assert (result.exit_code, "broker 9: is not known" in str(result.exception)) == (1, True)
    assert rates(settings)[1] == (None, None)


def test_a_broker_that_is_down_is_skipped_and_returns_with_its_old_rate(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster
) -> None:
    apply_rates(settings, dict.fromkeys(BROKERS, 2 * MB))
    cluster.kill(VICTIM)
    wait_until(lambda: VICTIM not in rates(settings), 60, "the broker is known to be down")

    command = ("throttle", "apply", "--rate", "9600000", "--brokers", "1,2,4", "--raise-only", "--execute")
    raised = run(config_file, *command)
    assert raised.exit_code == 0, raised.output
    assert of(raised)["passed_over"] == [{"broker": VICTIM, "reason": "down"}]
    assert rates(settings) == {1: (9_600_000, 9_600_000), 2: (9_600_000, 9_600_000), 3: (2 * MB, 2 * MB)}
    assert "is not up" in str(run(config_file, *command[:5], str(VICTIM), "--execute").exception)

    cleared = run(config_file, "throttle", "clear", "--execute")
    assert cleared.exit_code == 0, cleared.output
    assert of(cleared)["passed_over"] == [{"broker": VICTIM, "reason": "down"}]
    assert set(rates(settings).values()) == {(None, None)}

    cluster.restart(VICTIM)
    wait_until(lambda: rates(settings).get(VICTIM) == (2 * MB, 2 * MB), 60, "its rate back", lambda: rates(settings))
    assert run(config_file, "throttle", "clear", "--execute").exit_code == 0
    assert rates(settings)[VICTIM] == (None, None)


def of(result: Result) -> Any:
    """Return the JSON that a command printed."""
    return json.loads(result.stdout)


def commands(folder: Path) -> Path:
    """Return a folder in which both tools are programs, as on the machine of an operator."""
    tools = folder / "bin"
    tools.mkdir(exist_ok=True)
    java = [java_command(), "-cp", f"{jar_folder('kafka')}/*", TOOL]
    lines = {"kafka-reassign-partitions.sh": java, "headroom": [sys.executable, "-m", "headroom.cli.main"]}
    for name, words in lines.items():
        (tools / name).write_text(f'#!/bin/sh\nexec {shlex.join(words)} "$@"\n')
        (tools / name).chmod(0o755)
    return tools


def in_shell(command: str, folder: Path) -> subprocess.CompletedProcess[str]:
    root = str(Path(__file__).resolve().parents[2])
    path = f"{commands(folder)}{os.pathsep}{os.environ['PATH']}"
    env = {**os.environ, "PATH": path, "PYTHONPATH": root}
    return completed(["sh", "-c", command], 90, cwd=folder, env=env)


def shell(cluster: EmbeddedCluster, config_file: Path, folder: Path) -> subprocess.CompletedProcess[str]:
    return in_shell(
        f"headroom reassignments --config {config_file} --file headroom-move.json && "
        f"kafka-reassign-partitions.sh --bootstrap-server {cluster.bootstrap_servers} "
        "--reassignment-json-file headroom-move.json --cancel --preserve-throttles",
        folder,
    )


def tool(cluster: EmbeddedCluster, folder: Path, plan: Path, *arguments: str) -> None:
    command = ["kafka-reassign-partitions.sh", "--bootstrap-server", cluster.bootstrap_servers]
    done = in_shell(shlex.join([*command, "--reassignment-json-file", str(plan), *arguments]), folder)
    assert done.returncode == 0, done.stdout + done.stderr
