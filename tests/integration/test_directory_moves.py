"""Moves between the log directories of a broker, and throttles for a move that has none, on real brokers."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result
from kafka.protocol.admin import AlterPartitionReassignmentsRequest, ListPartitionReassignmentsRequest

from headroom.cli.main import headroom
from headroom.cluster.admin.alter_configs import ConfigChange, alter_configs
from headroom.cluster.admin.config_keys import LEADER_LIST, TOPIC
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.live.live_cluster import read_throttles
from headroom.cluster.log_dirs.alter import DirectoryChange, alter_log_dirs
from headroom.cluster.log_dirs.describe import LogDirsReading, describe_log_dirs
from headroom.cluster.throttles.rates import clear_rates
from headroom.cluster.throttles.replica_lists import clear_lists
from headroom.planning.log_dirs.broker_logs import with_log_dirs
from headroom.planning.log_dirs.duration import directory_moves_time
from headroom.planning.log_dirs.progress import DirectoryProgress, DirectoryState, directory_progress
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.reassignments.directory_moves import directory_moves
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.schemas.config import Settings
from headroom.schemas.keys import ReplicaKey, TopicPartition
from tests.integration.support import create_topic, fill, wait_until

MB, SLOW = 1_000_000, 100_000
# The rate at which a copy is watched: 16 s of it.
COPY = 1 * MB
# Pauses are for clusters in use.
ENVIRON = {
    "HEADROOM_REASSIGN__PAUSE_S": "0",
    "HEADROOM_ELECTIONS__PAUSE_S": "0",
    "HEADROOM_COLLECT__MEASURE_S": "1",
}
ORDERS = TopicPartition("orders", 0)
SIZE_BYTES = 16_000_000
BROKERS = (1, 2, 3, 4)
# Frozen, it does not take the controller away: with four brokers these are 1 to 3.
VICTIM = 4


@pytest.fixture(scope="module", autouse=True)
def topic(cluster: EmbeddedCluster) -> None:
    """Orders-0 has 16 MB on brokers 1 and 2."""
    create_topic(cluster, "orders", {0: [1, 2], 1: [2, 1]})
    fill(cluster, "orders", {0: SIZE_BYTES})


@pytest.fixture(scope="module")
def link(settings: Settings) -> Iterator[AdminConnection]:
    with closing(AdminConnection(settings.cluster)) as opened:
        yield opened


@pytest.fixture(autouse=True)
def nothing_left(settings: Settings) -> Iterator[None]:
    yield
    clear_rates(settings, BROKERS)
    clear_lists(settings, ["orders"])


def run(config_file: Path, *arguments: str, **environ: str) -> Result:
    return CliRunner(env={**ENVIRON, **environ}).invoke(
        headroom, [*arguments, "--config", str(config_file), "--format", "json"]
    )


def of(result: Result) -> Any:
    """Return the JSON that a command printed."""
    assert result.exit_code == 0, result.output
    return json.loads(result.stdout)


def read(link: AdminConnection) -> LogDirsReading:
    return describe_log_dirs(link, BROKERS, 10)


def directories(link: AdminConnection, broker: int) -> tuple[str, str]:
    """Return the directory of orders-0 on a broker, and the other one."""
    logs = read(link).brokers[broker]
    now = logs.logs[ORDERS].path
    (other,) = (directory.path for directory in logs.directories if directory.path != now)
    return now, other


def to_directory(path: str, broker: int = 1) -> ReassignmentPlan:
    """Return the plan that puts orders-0 into a directory of broker 1 or 2."""
    paths = (path, "any") if broker == 1 else ("any", path)
    return ReassignmentPlan((TargetAssignment(ORDERS, (1, 2), paths),))


def progress(link: AdminConnection, path: str, broker: int = 1) -> DirectoryProgress:
    (shown,) = directory_progress(to_directory(path, broker), read(link).brokers)
    return shown


def test_every_broker_reports_its_directories_and_logs(link: AdminConnection, cluster: EmbeddedCluster) -> None:
    wait_until(lambda: 2 in read(link).brokers and ORDERS in read(link).brokers[2].logs, 30, "the log on broker 2")
    found = read(link)
    assert (sorted(found.brokers), found.errors) == ([1, 2, 3, 4], {})
    for logs in found.brokers.values():
        assert len(logs.directories) == 2
        assert all(d.total_bytes and d.usable_bytes and not d.offline and not d.cordoned for d in logs.directories)
    assert found.brokers[1].logs[ORDERS].size_bytes >= SIZE_BYTES
    assert ORDERS not in found.brokers[3].logs
    only = describe_log_dirs(link, (1,), 10, [TopicPartition("orders", 1)]).brokers[1]
    assert (list(only.logs), len(only.directories)) == ([TopicPartition("orders", 1)], 2)


def test_a_broker_that_hangs_costs_itself_alone(link: AdminConnection, cluster: EmbeddedCluster) -> None:
    cluster.pause(VICTIM)
    try:
        found = describe_log_dirs(link, BROKERS, 5)
    finally:
        cluster.resume(VICTIM)
    assert (sorted(found.brokers), sorted(found.errors)) == ([1, 2, 3], [VICTIM])
    wait_until(lambda: VICTIM in read(link).brokers, 60, "the broker answers again")


def test_a_throttled_move_between_directories_takes_as_long_as_estimated(
    link: AdminConnection, config_file: Path
) -> None:
    now, other = directories(link, 1)
    set_rate = ("throttle", "apply", "--log-dirs", "1MB", "--brokers", "1", "--execute")
    assert of(run(config_file, *set_rate))["brokers"][0]["after"]["log_dirs_bytes_per_s"] == COPY
    estimated = estimate(link, other)
    began = time.monotonic()
    replica = ReplicaKey(ORDERS, 1)
    assert alter_log_dirs(link, {replica: other}, 10).accepted == {replica: DirectoryChange.ACCEPTED}
    under_way = wait_until(lambda: moving(link, other), 10, "the copy", lambda: progress(link, other))
    assert under_way.current == now
    assert under_way.remaining_bytes is not None

    # Nothing else moves, so that only the log directories are read, and nothing is measured.
    shown = of(run(config_file, "throttle", "show"))
    (need,) = shown["needs"]["brokers"]
    assert (need["broker"], need["role"], need["throttle_bytes_per_s"]) == (1, "log_dirs", COPY)
    assert need["partitions"] == [{"topic": "orders", "partition": 0, "write_bytes_per_s": None}]
    assert shown["left_behind"]["rates"] == []

    wait_until(lambda: progress(link, other).state is DirectoryState.DONE, 60, "the end of the move")
    took_s = time.monotonic() - began
    print(f"took {took_s:.1f} s, estimated {estimated}")
    # The machine may be busy.
    assert 0.6 * estimated[0] <= took_s <= 2 * estimated[1] + 5
    left = of(run(config_file, "throttle", "show"))["left_behind"]["rates"]
    assert [(rate["broker"], rate["role"], rate["bytes_per_s"]) for rate in left] == [(1, "log_dirs", COPY)]
    assert of(run(config_file, "throttle", "clear", "--execute"))["brokers"] == [1]


def estimate(link: AdminConnection, path: str) -> tuple[float, float]:
    """Return the earliest and the latest end of the move of orders-0 on broker 1 at this rate, in seconds."""
    bare = PartitionPlacement("orders", 0, 1, (1, 2), (1, 2), write_bytes_per_s=0.0)
    state = ClusterState("test", 0, {b: BrokerState(b) for b in BROKERS}, {ORDERS: bare})
    moves = directory_moves(to_directory(path), with_log_dirs(state, read(link).brokers))
    found = directory_moves_time(moves, COPY)
    assert found is not None
    assert found.low_s is not None
    assert found.high_s is not None
    return found.low_s, found.high_s


def moving(link: AdminConnection, path: str, broker: int = 1) -> DirectoryProgress | None:
    shown = progress(link, path, broker)
    return shown if shown.state is DirectoryState.MOVING else None


def test_the_directory_that_a_replica_is_in_ends_its_copy_to_another(link: AdminConnection, config_file: Path) -> None:
    # Not on broker 1: what a quota of copies counted here would let the next copy there begin with a burst.
    now, other = directories(link, 2)
    of(run(config_file, "throttle", "apply", "--log-dirs", "100kB", "--low-rate", "--brokers", "2", "--execute"))
    replica = ReplicaKey(ORDERS, 2)
    alter_log_dirs(link, {replica: other}, 10).require_all()
    wait_until(lambda: moving(link, other, 2), 10, "the copy", lambda: progress(link, other, 2))
    alter_log_dirs(link, {replica: now}, 10).require_all()
    wait_until(lambda: progress(link, now, 2).state is DirectoryState.DONE, 20, "the end of the copy")
    assert progress(link, other, 2).state is DirectoryState.ELSEWHERE


def test_a_directory_that_the_broker_does_not_have_is_refused(link: AdminConnection) -> None:
    replica = ReplicaKey(ORDERS, 1)
    (error,) = alter_log_dirs(link, {replica: "/nowhere"}, 10).errors.values()
    assert "the broker has no log directory of that path" in error.rule


def test_a_new_replica_gets_the_directory_that_was_kept_for_it(link: AdminConnection) -> None:
    # The broker would choose the directory with fewer logs itself, so each is named once.
    name = TopicPartition("orders", 1)
    for path in [directory.path for directory in read(link).brokers[3].directories]:
        replica = ReplicaKey(name, 3)
        assert alter_log_dirs(link, {replica: path}, 10).accepted == {replica: DirectoryChange.KEPT}
        reassign(link, name, [2, 1, 3])
        found = wait_until(lambda: read(link).brokers[3].logs.get(name), 30, "the new replica")
        assert found.path == path
        await_end(link)
        reassign(link, name, [2, 1])
        await_end(link)
        wait_until(lambda: name not in read(link).brokers[3].logs, 60, "the replica is gone")


def test_a_run_killed_while_a_log_is_copied_is_resumed_and_rolled_back(
    link: AdminConnection, config_file: Path, settings: Settings, tmp_path: Path
) -> None:
    now, other = directories(link, 1)
    name = TopicPartition("orders", 1)
    # The broker would choose one of them itself.
    path = read(link).brokers[3].directories[1].path
    rows = [
        {"topic": "orders", "partition": 0, "replicas": [1, 2], "log_dirs": [other, "any"]},
        {"topic": "orders", "partition": 1, "replicas": [2, 3], "log_dirs": ["any", path]},
    ]
    file = tmp_path / "move.json"
    file.write_text(json.dumps({"version": 1, "partitions": rows}))
    # A rate of others, lower than that of the run.
    of(run(config_file, "throttle", "apply", "--log-dirs", "20kB", "--low-rate", "--brokers", "1", "--execute"))
    before = {1: 20_000}
    assert log_dirs_rates(settings) == before
    absent = {**rows[0], "log_dirs": ["/nowhere", "any"]}
    wrong = tmp_path / "wrong.json"
    wrong.write_text(json.dumps({"version": 1, "partitions": [absent]}))
    refused = run(config_file, "reassign", "run", str(wrong), "--execute", "--yes")
    assert "log directory /nowhere of broker 1 does not exist" in str(refused.exception)

    # 16 MB at 60 kB/s: it still moves after four commands on a busy machine.
    command = ("reassign", "run", str(file), "--throttle", "20MB", "--execute", "--yes", "--log-dirs-throttle")
    process = start(config_file, *command, "60kB", "--low-rate")
    try:
        wait_until(lambda: moving(link, other), 120, "the copy", lambda: progress(link, other))
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert log_dirs_rates(settings) == {1: 60_000}
    # Its throttle is not lifted while it copies.
    assert run(config_file, "reassign", "clean", "--execute").exit_code == 1
    assert log_dirs_rates(settings) == {1: 60_000}
    (killed,) = of(run(config_file, "reassign", "runs"))["runs"]
    assert killed["state"] == "unfinished"
    assert of_any(run(config_file, "reassign", "verify", str(file)))["counts"]["moving"] >= 1

    resumed = of(run(config_file, *command, "10MB"))
    assert (resumed["resumes"], resumed["run_id"], resumed["state"]) == (True, killed["run_id"], "done")
    assert (resumed["refused"], resumed["left_behind"]) == ([], {"entries": [], "rates": []})
    assert (progress(link, other).state, read(link).brokers[3].logs[name].path) == (DirectoryState.DONE, path)
    assert log_dirs_rates(settings) == before
    assert of(run(config_file, "reassign", "verify", str(file)))["counts"]["done"] == 2

    back = ("reassign", "rollback", killed["run_id"], "--throttle", "20MB", "--log-dirs-throttle", "20MB")
    assert of(run(config_file, *back, "--execute", "--yes"))["state"] == "done"
    assert progress(link, now).state is DirectoryState.DONE
    wait_until(lambda: name not in read(link).brokers[3].logs, 60, "the replica is gone")
    assert name in read(link).brokers[1].logs
    assert log_dirs_rates(settings) == before


def start(config_file: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headroom.cli.main", *arguments, "--config", str(config_file)]
    root = Path(__file__).resolve().parents[2]
    return subprocess.Popen(
        command, cwd=root, env={**os.environ, **ENVIRON}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )


def of_any(result: Result) -> Any:
    """Return the JSON that a command printed, whatever its exit code."""
    return json.loads(result.stdout)


def log_dirs_rates(settings: Settings) -> dict[int, int]:
    found = read_throttles(settings).rates
    return {b: rates.log_dirs_bytes_per_s for b, rates in found.items() if rates.log_dirs_bytes_per_s is not None}


def test_a_running_move_without_a_throttle_gets_lists_and_rates(
    link: AdminConnection, cluster: EmbeddedCluster, config_file: Path, settings: Settings
) -> None:
    # An entry of somebody else, of a partition that does not move.
    alter_configs(link, [ConfigChange(TOPIC, "orders", {LEADER_LIST: "1:2"})], 10)
    # The destination is frozen, so that the move is still running when it gets its throttle.
    cluster.pause(VICTIM)
    try:
        reassign(link, ORDERS, [1, 2, VICTIM])
        command = ("throttle", "apply", "--lists", "--rate", "100kB", "--low-rate", "--brokers", "1,2", "--execute")
        # The broker that hangs is to cost little.
        done = of(run(config_file, *command, HEADROOM_CLUSTER__REQUEST_TIMEOUT_MS="5000"))
    finally:
        cluster.resume(VICTIM)
    assert done["lists"] == [
        {"topic": "orders", "leader_added": "0:1,0:2", "follower_added": f"0:{VICTIM}", "every_replica": []}
    ]
    # The broker that was frozen may answer, and it reads the metadata log of the time when it stood still.
    wait_until(lambda: throttled(settings), 30, "every broker has the new entries and rates")

    # 16 MB, of which 2 MB pass in a window of 11 to 12 s: it still moves while write rates are measured.
    shown = of(run(config_file, "throttle", "show"))
    assert shown["needs"]["source"] == "live"
    leader = next(need for need in shown["needs"]["brokers"] if need["role"] == "leader")
    assert (leader["broker"], leader["throttle_bytes_per_s"], leader["moving_bytes_per_s"]) == (1, SLOW, 0)
    assert [(p["topic"], p["partition"]) for p in leader["partitions"]] == [ORDERS]
    assert [(left["topic"], left["entries"]) for left in shown["left_behind"]["lists"]] == [("orders", "1:2")]

    of(run(config_file, "throttle", "apply", "--rate", "20MB", "--brokers", "1,2", "--execute"))
    await_end(link)
    left = of(run(config_file, "throttle", "show"))["left_behind"]
    entries = {found["role"]: sorted(found["entries"].split(",")) for found in left["lists"]}
    assert entries == {"leader": ["0:1", "0:2", "1:2"], "follower": [f"0:{VICTIM}"]}
    assert {rate["broker"] for rate in left["rates"]} == {1, 2}


def throttled(settings: Settings) -> bool:
    """Return whether the lists and rates of the running move are what the broker that is asked has."""
    state = read_throttles(settings)
    lists = state.listed_topics().get("orders")
    if lists is None or set((lists.leader_list or "").split(",")) != {"1:2", "0:1", "0:2"}:
        return False
    leader_rates = {state.rates[b].leader_bytes_per_s for b in (1, 2)}
    return (lists.follower_list, leader_rates) == (f"0:{VICTIM}", {SLOW})


def reassign(link: AdminConnection, name: TopicPartition, replicas: list[int]) -> None:
    """Start a reassignment at broker 1, because the client may choose one that is frozen."""
    topics = AlterPartitionReassignmentsRequest.ReassignableTopic
    target = topics.ReassignablePartition(partition_index=name.partition, replicas=replicas)
    request = AlterPartitionReassignmentsRequest(
        timeout_ms=10_000, topics=[topics(name=name.topic, partitions=[target])]
    )
    answer = link.send(request, 1, 10)
    assert (answer.error_code, [p.error_code for t in answer.responses for p in t.partitions]) == (0, [0])


def await_end(link: AdminConnection) -> None:
    request = ListPartitionReassignmentsRequest(timeout_ms=10_000, topics=None)
    wait_until(lambda: not link.send(request, 1, 10).topics, 90, "the reassignment ends")
