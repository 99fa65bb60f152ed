"""Plans carried out on real brokers: to the end, killed, cancelled; nothing of them is left behind."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from headroom.cli.main import headroom
from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import LEADER_LIST, TOPIC
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.live.live_cluster import read_throttles
from headroom.cluster.throttles.rates import apply_rates, clear_rates
from headroom.cluster.throttles.replica_lists import clear_lists
from headroom.schemas.config import Settings
from tests.integration.scene import Scene
from tests.integration.support import admin_of, create_topic, exit_code, fill, leaders, wait_until

MB = 1_000_000
BROKERS = (1, 2, 3, 4)
TOPIC_NAME = "moves"
BEFORE = {0: [1, 2], 1: [2, 3], 2: [3, 2], 3: [1, 3], 4: [3, 2]}
# Two batches: two moves; a replaced replica, another order, and a new one.
AFTER = {0: [4, 2], 1: [4, 3], 2: [4, 2], 3: [3, 1], 4: [3, 2, 1]}
BATCHES = ((0, 1), (2, 3, 4))
# Rates and an entry of others: lower than the throttle, and higher.
OTHERS = {(1, "leader"): 1 * MB, (2, "leader"): 90 * MB}
OTHERS_ENTRY = "0:1"
# Pauses are for clusters in use, and write rates are not what is tested.
ENVIRON = {
    "HEADROOM_REASSIGN__PAUSE_S": "0",
    "HEADROOM_ELECTIONS__PAUSE_S": "0",
    "HEADROOM_COLLECT__MEASURE_S": "1",
}


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    create_topic(cluster, TOPIC_NAME, BEFORE)
    fill(cluster, TOPIC_NAME, dict.fromkeys(BEFORE, 8 * MB))


@pytest.fixture(autouse=True)
def throttles_of_others(settings: Settings) -> Iterator[None]:
    apply_rates(settings, OTHERS)
    set_list(settings, OTHERS_ENTRY)
    yield
    clear_rates(settings, BROKERS)
    clear_lists(settings, [TOPIC_NAME])


@pytest.fixture(autouse=True)
def placed(cluster: EmbeddedCluster, settings: Settings) -> None:
    """Put every replica where the tests have them at first: what ended before a test took the rest back stays ended."""
    with closing(Scene(cluster, settings)) as scene:
        scene.reorder(TOPIC_NAME, {p: BEFORE[p] for p, order in replicas(cluster).items() if order != BEFORE[p]})
    wait_until(lambda: replicas(cluster) == BEFORE, 60, "the replicas of the beginning", lambda: replicas(cluster))


def set_list(settings: Settings, text: str) -> None:
    link = AdminConnection(settings.cluster)
    alter_configs(link, [ConfigChange(TOPIC, TOPIC_NAME, {LEADER_LIST: text})], 10)
    link.close()


def plan_files(folder: Path, target: dict[int, list[int]]) -> list[str]:
    files = []
    for number, partitions in enumerate(BATCHES, start=1):
        file = folder / f"batch-{number:03d}.json"
        rows = [{"topic": TOPIC_NAME, "partition": p, "replicas": target[p]} for p in partitions]
        file.write_text(json.dumps({"version": 1, "partitions": rows}))
        files.append(str(file))
    return files


def run(config_file: Path, *arguments: str) -> Result:
    command = ["reassign", *arguments, "--config", str(config_file), "--format", "json"]
    return CliRunner(env=ENVIRON).invoke(headroom, command)


def of(result: Result) -> Any:
    return json.loads(result.stdout)


def start(config_file: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headroom.cli.main", "reassign", *arguments, "--config", str(config_file)]
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        command, cwd=root, env={**os.environ, **ENVIRON}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def replicas(cluster: EmbeddedCluster) -> dict[int, list[int]]:
    with admin_of(cluster) as admin:
        found = admin.describe_topics([TOPIC_NAME])[0]["partitions"]
    return {int(p["partition_index"]): list(p["replica_nodes"]) for p in found}


def moving(cluster: EmbeddedCluster) -> bool:
    with admin_of(cluster) as admin:
        return bool(admin.list_partition_reassignments())


def rates(settings: Settings) -> dict[tuple[int, str], int]:
    found = read_throttles(settings).rates
    by_role = {
        (b, role): getattr(r, f"{role}_bytes_per_s") for b, r in found.items() for role in ("leader", "follower")
    }
    return {key: rate for key, rate in by_role.items() if rate is not None}


def lists(settings: Settings) -> tuple[str | None, str | None]:
    config = read_throttles(settings).snapshot.topic_configs[TOPIC_NAME]
    return config.leader_list, config.follower_list


def assert_placed(cluster: EmbeddedCluster, expected: dict[int, list[int]]) -> None:
    """Each connection asks another broker, whose metadata may be a moment behind that of the one before."""
    seen = lambda: (replicas(cluster), moving(cluster))  # noqa: E731
    wait_until(lambda: seen() == (expected, False), 30, "the replicas, and nothing that moves", seen)


def assert_nothing_left(config_file: Path, settings: Settings) -> None:
    seen = lambda: (rates(settings), lists(settings))  # noqa: E731
    wait_until(lambda: seen() == (OTHERS, (OTHERS_ENTRY, None)), 30, "the throttles of others alone", seen)
    for made in of(run(config_file, "runs"))["runs"]:
        assert made["left_behind"] == {"entries": [], "rates": []}
        assert made["state"] != "unfinished"


def test_a_plan_is_run_to_its_end_and_rolled_back(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    files = plan_files(tmp_path, AFTER)
    shown = run(config_file, "run", *files, "--throttle", "20MB")
    assert shown.exit_code == 0, shown.output
    assert (replicas(cluster), rates(settings)) == (BEFORE, OTHERS)
    steps = of(shown)
    assert [len(batch["submit"]) for batch in steps["batches"]] == [2, 3]
    fingerprint = steps["fingerprint"]
    assert run(config_file, "run", *files, "--throttle", "20MB", "--fingerprint", "other").exit_code == 1

    done = run(config_file, "run", *files, "--throttle", "20MB", "--fingerprint", fingerprint, "--execute", "--yes")
    assert done.exit_code == 0, done.output + str(done.exception)
    assert (of(done)["state"], of(done)["refused"]) == ("done", [])
    assert_placed(cluster, AFTER)
    preferred = {p: target[0] for p, target in AFTER.items()}
    wait_until(
        lambda: leaders(cluster, TOPIC_NAME) == preferred, 30, "the leaders", lambda: leaders(cluster, TOPIC_NAME)
    )
    assert_nothing_left(config_file, settings)
    verified = run(config_file, "verify", *files)
    assert (verified.exit_code, of(verified)["counts"]["done"]) == (0, len(AFTER))

    back = run(config_file, "rollback", of(done)["run_id"], "--throttle", "20MB", "--execute", "--yes")
    assert back.exit_code == 0, back.output + str(back.exception)
    assert_placed(cluster, BEFORE)
    assert_nothing_left(config_file, settings)


def test_a_killed_run_is_resumed_by_the_same_command(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    files = plan_files(tmp_path, AFTER)
    command = ["run", *files, "--execute", "--yes", "--throttle"]
    # Slow enough to be killed while the first batch moves.
    process = start(config_file, *command, "50KB", "--low-rate")
    try:
        wait_until(lambda: moving(cluster), 120, "the first batch moves")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert rates(settings) != OTHERS
    left = of(run(config_file, "runs"))["runs"][-1]
    assert (left["state"], bool(left["left_behind"]["rates"])) == ("unfinished", True)
    # Its throttle is not lifted while it moves, and another plan may not begin.
    assert run(config_file, "clean", "--execute").exit_code == 1
    other = plan_files(tmp_path, {**AFTER, 4: [3, 1]})
    refused = run(config_file, "run", *other, "--throttle", "20MB", "--execute", "--yes")
    assert "is unfinished" in str(refused.exception)

    files = plan_files(tmp_path, AFTER)
    resumed = run(config_file, *command, "20MB")
    assert resumed.exit_code == 0, resumed.output + str(resumed.exception)
    assert (of(resumed)["resumes"], of(resumed)["run_id"]) == (True, left["run_id"])
    assert_placed(cluster, AFTER)
    assert_nothing_left(config_file, settings)
    back = run(config_file, "rollback", left["run_id"], "--throttle", "20MB", "--execute", "--yes")
    assert back.exit_code == 0, back.output + str(back.exception)
    assert_placed(cluster, BEFORE)


def test_a_cancelled_move_has_its_replicas_in_the_order_of_before_and_clean_removes_the_throttle(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    # Partition 2 from [3, 2] to [4, 2]: cancelled, Kafka leaves [2, 3].
    (_, file) = plan_files(tmp_path, AFTER)
    process = start(config_file, "run", file, "--execute", "--yes", "--throttle", "50KB", "--low-rate")
    try:
        wait_until(lambda: moving(cluster), 120, "the batch moves")
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    cancelled = run(config_file, "cancel", file, "--execute", "--yes")
    assert cancelled.exit_code == 0, cancelled.output + str(cancelled.exception)
    assert {row["partition"]: row["restored"] for row in of(cancelled)["cancelled"]}[2] == BEFORE[2]
    assert_placed(cluster, {**replicas(cluster), 2: BEFORE[2]})
    cleaned = run(config_file, "clean", "--execute")
    assert cleaned.exit_code == 0, cleaned.output + str(cleaned.exception)
    assert_nothing_left(config_file, settings)


def test_ctrl_c_takes_the_batch_back(
    config_file: Path, settings: Settings, cluster: EmbeddedCluster, tmp_path: Path
) -> None:
    (file, _) = plan_files(tmp_path, AFTER)
    process = start(
        config_file, "run", file, "--execute", "--yes", "--throttle", "50KB", "--low-rate", "--cancel-on-stop"
    )
    try:
        wait_until(lambda: moving(cluster), 120, "the batch moves")
        process.send_signal(signal.SIGINT)
        assert exit_code(process, 120) == 1
    finally:
        process.kill()
        process.wait()
    assert_placed(cluster, BEFORE)
    assert_nothing_left(config_file, settings)
