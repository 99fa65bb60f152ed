"""Plans estimated and made on real brokers: state, sizes and free space are those of the cluster; nothing changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.cli.main import headroom
from headroom.cluster.embedded import EmbeddedCluster
from tests.integration.support import create_topic, fill

MB = 1_000_000
TOPIC_NAME = "planned"
BEFORE = {0: [1, 2], 1: [2, 3], 2: [3, 1]}
SIZE_BYTES = 3 * MB


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    create_topic(cluster, TOPIC_NAME, BEFORE)
    fill(cluster, TOPIC_NAME, dict.fromkeys(BEFORE, SIZE_BYTES))


def plan(config_file: Path, *arguments: str) -> Any:
    ran = CliRunner().invoke(headroom, ["plan", *arguments, "--config", str(config_file), "--format", "json"])
    assert ran.exit_code == 0, ran.output
    return json.loads(ran.stdout)


def test_a_file_is_estimated_from_the_live_cluster_and_from_its_saved_state_alike(
    config_file: Path, tmp_path: Path
) -> None:
    file, state = tmp_path / "move.json", tmp_path / "state.json"
    target = {"topic": TOPIC_NAME, "partition": 0, "replicas": [1, 2, 4]}
    file.write_text(json.dumps({"version": 1, "partitions": [target]}))
    live = plan(config_file, str(file), "--throttle", "20MB", "--save-state", str(state))
    assert live["lists"][TOPIC_NAME] == {"leader": "0:1,0:2", "follower": "0:4"}
    assert {(row["broker"], row["role"]) for row in live["sides"]} >= {(1, "leader"), (4, "follower")}
    assert live["finish_s"] is not None
    saved = json.loads(state.read_text())
    (placement,) = (p for p in saved["partitions"] if (p["topic"], p["partition"]) == (TOPIC_NAME, 0))
    assert placement["size_bytes"] == pytest.approx(SIZE_BYTES, rel=0.1)
    assert set(placement["log_dirs"]) == {"1", "2"}
    assert all(broker["log_dirs"][0]["usable_bytes"] > 0 for broker in saved["brokers"])
    ran = CliRunner().invoke(
        headroom, ["plan", str(file), "--throttle", "20MB", "--state", str(state), "--format", "json"]
    )
    assert json.loads(ran.stdout) == live


def test_a_drained_broker_keeps_no_replica_and_nothing_is_changed(config_file: Path, tmp_path: Path) -> None:
    made = tmp_path / "made.json"
    found = plan(config_file, "--topics", TOPIC_NAME, "--drain", "3", "--save-plan", str(made))
    targets = {p["partition"]: p["replicas"] for p in json.loads(made.read_text())["partitions"]}
    assert set(targets) == {1, 2}
    assert all(3 not in replicas and len(set(replicas)) == 2 for replicas in targets.values())
    assert found["fingerprint"]
    # In flight there is nothing, so nothing was submitted.
    ran = CliRunner().invoke(headroom, ["plan", "--in-flight", "--config", str(config_file)])
    assert ran.exit_code == 1
    assert "no running reassignment" in str(ran.exception)
