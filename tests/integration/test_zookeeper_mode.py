"""Kafka 3.9 in ZooKeeper mode, where only the controller knows of moves and elections, and passes nothing on."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.cli.main import headroom
from headroom.cluster.embedded.paced_producer import PacedProducer
from headroom.cluster.live.live_cluster import read_throttles
from headroom.schemas.config import Settings
from tests.integration.scene import MB, SLOW_MOVES, WRITE, Scene
from tests.integration.support import alert_path, create_topic, leaders, wait_until
from tests.support.zookeeper import ZooKeeperCluster


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperCluster]:
    cluster = ZooKeeperCluster(tmp_path_factory.mktemp("zookeeper"), brokers=4)
    with cluster:
        yield cluster


@pytest.fixture
def scene(cluster: ZooKeeperCluster, settings: Settings, config_file: Path) -> Iterator[Scene]:
    """Both partitions on their way to broker 4, until the test has ended."""
    create_topic(cluster, "w", {m.name.partition: list(m.before) for m in SLOW_MOVES})
    with PacedProducer(cluster.bootstrap_servers, {("w", 0): 8 * WRITE, ("w", 1): 8 * WRITE}) as load:
        scene = Scene(cluster, settings)
        scene.start_slow_moves(load)
        yield scene
        scene.cancel(SLOW_MOVES)
        scene.await_end("w", 60)
        run(config_file, "throttle", "clear", "--execute")
        scene.close()


def run(config_file: Path, *arguments: str) -> Any:
    """Return the JSON of a command that succeeds."""
    result = CliRunner().invoke(headroom, [*arguments, "--config", str(config_file), "--format", "json"])
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def test_check_finds_everything(cluster: ZooKeeperCluster, config_file: Path) -> None:
    create_topic(cluster, "checked", {n: [1 + (n + i) % 4 for i in range(3)] for n in range(4)})

    def noes() -> list[dict[str, str]]:
        text = CliRunner().invoke(headroom, ["check", "--config", str(config_file), "--format", "json"])
        return [row for row in json.loads(text.stdout) if row["answer"] == "no"]

    wait_until(lambda: not noes(), 60, "a check without a no", noes)


def test_elections_and_throttles_work_after_the_controller_changed(
    cluster: ZooKeeperCluster, config_file: Path, settings: Settings
) -> None:
    create_topic(cluster, "led", {n: [1 + (n + i) % 4 for i in range(2)] for n in range(8)})
    first = wait_until(lambda: max(cluster.controller(), 0), 60, "a controller")
    # Another broker, and at last the first again, is the controller.
    for _ in range(2):
        before = wait_until(lambda: max(cluster.controller(), 0), 60, "a controller")
        cluster.kill(before)
        wait_until(lambda gone=before: cluster.controller() not in (gone, -1), 60, "another controller")
        cluster.restart(before)
        wait_until(lambda: len(leaders(cluster, "led")) == 8, 60, "all partitions")
    assert first in (1, 2, 3, 4)

    def led_as_preferred() -> bool:
        # Again where a broker was not back in sync yet.
        CliRunner().invoke(headroom, ["elections", "--execute", "--yes", "--config", str(config_file)])
        return leaders(cluster, "led") == {n: 1 + n % 4 for n in range(8)}

    wait_until(led_as_preferred, 120, "elections by the controller", lambda: leaders(cluster, "led"))
    applied = run(config_file, "throttle", "apply", "--rate", "3000000", "--brokers", "1,2,3,4", "--execute")
    assert applied
    rates = read_throttles(settings).rates
    assert {r.leader_bytes_per_s for r in rates.values()} == {3_000_000}
    run(config_file, "throttle", "clear", "--execute")
    assert {r.leader_bytes_per_s for r in read_throttles(settings).rates.values()} == {None}


def test_a_dead_leader_makes_the_new_one_fall_short_at_once(
    cluster: ZooKeeperCluster, config_file: Path, scene: Scene, tmp_path: Path
) -> None:
    with alert_path(config_file, tmp_path / "alerts.log") as watch:
        watch.wait(lambda: (watch.verdicts() or {}).get((2, "leader")) == "catching_up", 120, "a verdict")
        # The throttle of broker 4 as destination is too low, and says so. While the logs are filled more is written
        # than the leaders' throttles allow, too: those alerts are to be over.
        watch.wait(
            lambda: {line.event.subject for line in watch.firing()} <= {"broker 4 as destination"},
            120,
            "the end of alerts about the filling",
        )
        began = time.monotonic()
        cluster.kill(1)
        try:
            shown = watch.wait(
                lambda: next(
                    (e for e in watch.firing_events() if e.event.subject == "broker 2 as leader" and e.at_s >= began),
                    None,
                ),
                120,
                "an alert on broker 2",
            )
        finally:
            cluster.restart(1)
    evidence = json.loads(shown.event.evidence)
    assert evidence["required_bytes_per_s"] == pytest.approx(4 * MB, rel=0.25)
    assert evidence["switch_tick_ms"] is not None
