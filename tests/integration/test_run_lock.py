"""The run lock on real brokers: one holder, whoever comes, is killed or comes back."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from headroom.cli.main import headroom
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.embedded import EmbeddedCluster
from headroom.cluster.run_lock.group import CoordinatedGroup, LockTiming
from headroom.cluster.run_lock.holder import LockHolder
from headroom.cluster.run_lock.lock import LockState, RunLock
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.threads import run_in_daemon_thread
from tests.integration.support import admin_of, create_topic, fill, wait_until

GROUP = "headroom-runs"
TOPIC = "locked-moves"
ENVIRON = {"HEADROOM_REASSIGN__PAUSE_S": "0", "HEADROOM_ELECTIONS__PAUSE_S": "0", "HEADROOM_COLLECT__MEASURE_S": "1"}
MB = 1_000_000


class Process:
    """A process with the lock, or on its way to it."""

    def __init__(self, settings: Settings, name: str) -> None:
        self.name = name
        self.notes: list[str] = []
        self.members: list[str | None] = []
        timing, holder = LockTiming(), LockHolder(f"{name}@here", 1)
        group = CoordinatedGroup(AdminConnection(settings.cluster), GROUP, timing)
        self.lock = RunLock(group, "embedded", holder, self.notes.append, timing, self.members.append)

    def take(self) -> None:
        self.lock.take()


@pytest.fixture
def new(settings: Settings) -> Iterator[Callable[[str], Process]]:
    made: list[Process] = []

    def make(name: str) -> Process:
        made.append(Process(settings, name))
        return made[-1]

    yield make
    for process in made:
        process.lock.release()
    assert members(settings) == []


def members(settings: Settings) -> list[str]:
    connection = AdminConnection(settings.cluster)
    try:
        return list(CoordinatedGroup(connection, GROUP, LockTiming()).members())
    finally:
        connection.close()


def test_a_released_lock_is_free_and_a_holder_that_joins_again_keeps_it(
    settings: Settings, new: Callable[[str], Process]
) -> None:
    for _ in range(2):
        process = new("anna")
        process.take()
        assert process.lock.state is LockState.HELD
        process.lock.release()

    holder = new("anna")
    holder.take()
    for name in ("bert", "cleo", "dora"):
        with pytest.raises(HeadroomError, match="anna@here, pid 1"):
            new(name).take()
    wait_until(lambda: members(settings) == [holder.members[0]], 20, "the holder alone", lambda: members(settings))
    assert (holder.lock.state, holder.notes, len(set(holder.members))) == (LockState.HELD, [], 1)


def test_of_processes_that_come_at_once_one_has_the_lock(settings: Settings, new: Callable[[str], Process]) -> None:
    for _ in range(3):
        processes = [new(f"user{number}") for number in range(3)]
        taken = [run_in_daemon_thread("take", process.take) for process in processes]
        errors = [future.exception(60) for future in taken]
        assert errors.count(None) == 1, errors
        holder = processes[errors.index(None)]
        assert holder.lock.state is LockState.HELD
        assert all(f"{holder.name}@here" in str(error) for error in errors if error is not None)
        holder.lock.release()


@pytest.fixture
def stores(config_file: Path, tmp_path: Path) -> tuple[Path, Path]:
    """Return settings files of two stores on one cluster."""
    files = []
    for name in ("one", "two"):
        text = config_file.read_text(encoding="utf-8")
        files.append(tmp_path / f"{name}.toml")
        files[-1].write_text(text.replace(str(config_file.parent / "store"), str(tmp_path / name)), encoding="utf-8")
    return files[0], files[1]


def start(config: Path, *arguments: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "headroom.cli.main", "reassign", *arguments, "--config", str(config)]
    root = Path(__file__).resolve().parents[2]
    environ = {**os.environ, **ENVIRON}
    return subprocess.Popen(command, cwd=root, env=environ, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)


def run(config: Path, *arguments: str) -> Result:
    return CliRunner(env=ENVIRON).invoke(headroom, ["reassign", *arguments, "--config", str(config)])


def moving(cluster: EmbeddedCluster) -> bool:
    with admin_of(cluster) as admin:
        return bool(admin.list_partition_reassignments())


def test_runs_of_two_stores_do_not_run_at_once(
    cluster: EmbeddedCluster, settings: Settings, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    create_topic(cluster, TOPIC, {0: [1, 2]})
    fill(cluster, TOPIC, {0: 8 * MB})
    file = tmp_path / "move.json"
    file.write_text(json.dumps({"version": 1, "partitions": [{"topic": TOPIC, "partition": 0, "replicas": [3, 2]}]}))
    one, two = stores
    words = ["run", str(file), "--execute", "--yes", "--throttle"]
    process = start(one, *words, "50KB", "--low-rate")
    try:
        wait_until(lambda: moving(cluster), 120, "the move")
        refused = run(two, *words, "20MB", "--adopt", "--force")
        assert f"pid {process.pid} " in str(refused.exception), refused.output
        assert f"store {tmp_path / 'one'}" in str(refused.exception)
        assert "`kill " in str(refused.exception)
        assert f"pid {process.pid} " in str(run(two, "clean", "--execute").exception)
    finally:
        process.send_signal(signal.SIGKILL)
        process.wait()
    # It waits for the end of the session of the killed one.
    cleaned = run(two, "clean", "--execute")
    assert cleaned.exit_code == 0, cleaned.output + str(cleaned.exception)
    # Killed again: its own store knows that it has ended, and waits for nothing.
    process = start(one, *words, "50KB", "--low-rate")
    wait_until(lambda: len(members(settings)) == 1, 120, "the second run has the lock", lambda: members(settings))
    process.send_signal(signal.SIGKILL)
    process.wait()
    done = run(one, *words, "20MB")
    assert done.exit_code == 0, done.output + str(done.exception)
    assert "Waiting for the run lock" not in done.stderr
    wait_until(lambda: not moving(cluster), 60, "the end of the move")
    assert members(settings) == []
