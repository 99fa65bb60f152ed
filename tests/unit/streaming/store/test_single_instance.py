"""Only one process at a time runs a job of a store."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import pytest

from headroom.cli.common.child_process import headroom_command
from headroom.schemas.config import StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.store.single_instance import ended_process, exclusive_jobs, running_process

# It is the member "member" of a Kafka group.
_HOLDER = """
import sys
from headroom.streaming.store.single_instance import exclusive_jobs
from headroom.schemas.config import StoreSettings
with exclusive_jobs(StoreSettings(path=sys.argv[1]), sys.argv[2:]) as locks:
    locks.note_member("member")
    print("held", flush=True)
    input()
"""


@contextmanager
def holder(store: StoreSettings, *jobs: str) -> Iterator[subprocess.Popen[str]]:
    """Yield another process that has locked jobs of a store until it ends."""
    command = [sys.executable, "-c", _HOLDER, store.path, *jobs]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        try:
            yield process
        finally:
            process.kill()


@pytest.fixture
def store(tmp_path: Path) -> StoreSettings:
    return StoreSettings(path=str(tmp_path / "store"))


def test_the_error_of_a_second_process_names_the_first(store: StoreSettings) -> None:
    with holder(store, "alerts") as first:
        with pytest.raises(HeadroomError) as caught, exclusive_jobs(store, ["alerts"]):
            pytest.fail("held twice")
        assert store.path in caught.value.subject
        assert f"pid {first.pid} on host {os.uname().nodename} since 2" in caught.value.rule
        assert f"`kill {first.pid}` there ends it" in caught.value.rule
        assert "store.path" in caught.value.remedy


def test_other_jobs_and_other_stores_are_free(store: StoreSettings, tmp_path: Path) -> None:
    with (
        holder(store, "alerts"),
        exclusive_jobs(store, ["gold", "record"]),
        exclusive_jobs(StoreSettings(path=str(tmp_path / "other")), ["alerts"]),
    ):
        pass


def test_another_folder_of_checkpoints_makes_no_second_store(store: StoreSettings, tmp_path: Path) -> None:
    moved = StoreSettings(path=store.path, checkpoint_path=str(tmp_path / "other"))
    with holder(store, "alerts") as first:
        with pytest.raises(HeadroomError, match=f"pid {first.pid} "), exclusive_jobs(moved, ["alerts"]):
            pytest.fail("held twice")
        assert running_process(moved, "alerts") == running_process(store, "alerts") is not None


def test_checkpoints_that_are_removed_while_a_job_runs_do_not_unlock_it(store: StoreSettings) -> None:
    with holder(store, "alerts") as first:
        shutil.rmtree(store.checkpoints())
        with pytest.raises(HeadroomError, match=f"pid {first.pid} "), exclusive_jobs(store, ["alerts"]):
            pytest.fail("held twice")


def test_locks_that_are_removed_with_the_store_are_taken_again(
    store: StoreSettings, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("headroom.streaming.store.single_instance._CHECK_S", 0.0)
    monkeypatch.setattr("headroom.streaming.store.single_instance._REPAIR_S", 0.0)
    with exclusive_jobs(store, ["alerts", "gold"]) as locks:
        locks.check()
        before = running_process(store, "gold")
        shutil.rmtree(store.path)
        locks.check()
        assert running_process(store, "gold") == before
        for job in ("alerts", "gold"):
            with pytest.raises(HeadroomError, match=f"pid {os.getpid()} "), exclusive_jobs(store, [job]):
                pytest.fail("held twice")
        shutil.rmtree(store.path)
        with holder(store, "gold") as second, pytest.raises(HeadroomError, match=f"pid {second.pid} "):
            locks.check()
    with exclusive_jobs(store, ["alerts", "gold"]):
        pass


def test_a_lock_of_another_user_is_a_lock(store: StoreSettings, monkeypatch: pytest.MonkeyPatch) -> None:
    own = Path.open

    def refused(path: Path, mode: str = "r", **how: Any) -> IO[Any]:
        if path.suffix == ".lock" and mode != "r":
            raise PermissionError(13, "Permission denied")
        return own(path, mode, **how)

    with holder(store, "alerts"), monkeypatch.context() as patched:
        patched.setattr(Path, "open", refused)
        with pytest.raises(HeadroomError, match="worked on by"), exclusive_jobs(store, ["alerts"]):
            pytest.fail("held twice")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "open", refused)
        with exclusive_jobs(store, ["alerts"]):
            with pytest.raises(HeadroomError) as caught, exclusive_jobs(store, ["alerts"]):
                pytest.fail("held twice")
            # The process that had the lock before has ended: whoever has its number now must not be killed.
            assert "kill" not in caught.value.rule
            assert str(running_process(store, "alerts")) == "an unknown process"


def test_if_one_of_several_jobs_is_locked_the_others_are_released(store: StoreSettings) -> None:
    with holder(store, "record"):
        with pytest.raises(HeadroomError), exclusive_jobs(store, ["gold", "record"]):
            pytest.fail("held twice")
        with exclusive_jobs(store, ["gold"]):
            pass


def test_a_killed_process_leaves_no_lock(store: StoreSettings) -> None:
    with holder(store, "alerts") as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
        with exclusive_jobs(store, ["alerts"]):
            pass


def test_a_process_that_is_about_to_end_is_waited_for(store: StoreSettings) -> None:
    with holder(store, "record") as first:
        threading.Timer(1.0, first.kill).start()
        with exclusive_jobs(store, ["record"], wait_s=30.0):
            assert first.wait() == -signal.SIGKILL


def test_a_process_that_is_stopped_ends_its_wait(store: StoreSettings) -> None:
    stop = threading.Event()
    with holder(store, "record"):
        threading.Timer(0.2, stop.set).start()
        began_s = time.monotonic()
        with pytest.raises(HeadroomError), exclusive_jobs(store, ["record"], wait_s=30.0, stop=stop):
            pytest.fail("held twice")
        assert time.monotonic() - began_s < 15.0


@pytest.mark.parametrize(
    "signed",
    ["", "{", "[]", "[" * 100_000, '{"pid": 1}', '{"host": "\\u001b[2J", "pid": 1, "since_ms": 1e99}'],
    ids=range(6),
)
def test_a_lock_without_a_readable_owner_is_a_lock(store: StoreSettings, signed: str) -> None:
    with holder(store, "alerts"):
        Path(store.checkpoints(), "alerts.lock").write_text(signed, encoding="utf-8")
        with (
            pytest.raises(HeadroomError, match="worked on by another process") as caught,
            exclusive_jobs(store, ["alerts"]),
        ):
            pytest.fail("held twice")
        assert str(caught.value).isprintable()


def test_each_owner_writes_its_identity(store: StoreSettings) -> None:
    for _ in range(2):
        with exclusive_jobs(store, ["alerts"]):
            who = json.loads(Path(store.checkpoints(), "alerts.lock").read_text(encoding="utf-8"))
            assert who["pid"] == os.getpid()


def test_a_folder_in_the_place_of_a_lock_is_reported_and_becomes_a_lock(
    store: StoreSettings, caplog: pytest.LogCaptureFixture
) -> None:
    lock = Path(store.checkpoints(), "alerts.lock")
    lock.mkdir(parents=True)
    with exclusive_jobs(store, ["alerts"]):
        assert json.loads(lock.read_text(encoding="utf-8"))["pid"] == os.getpid()
    assert [record.getMessage() for record in caplog.records] == [f"the lock {lock} was a folder, and is created again"]


def test_a_store_without_locks_is_worked_on_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    for path in ("s3a://bucket/store", str(file)):
        with exclusive_jobs(StoreSettings(path=path), ["alerts"]):
            pass


@pytest.mark.parametrize("command", [["watch"], ["run", "watch"]])
def test_a_second_command_ends_at_once(command: list[str], tmp_path: Path) -> None:
    store = StoreSettings(path=str(tmp_path / "store"))
    config = tmp_path / "headroom.toml"
    config.write_text(f'[cluster]\nbootstrap_servers = "127.0.0.1:1"\n[store]\npath = "{store.path}"\n', "utf-8")
    with holder(store, "alerts") as first:
        arguments = headroom_command(*command, "--config", str(config))
        second = subprocess.run(arguments, capture_output=True, text=True, timeout=60, check=False)
    assert second.returncode == 1
    assert second.stderr.startswith(f"headroom: store {store.path}: is worked on by another process, pid {first.pid} ")


def test_the_process_that_runs_a_job_is_found_without_taking_its_lock(store: StoreSettings) -> None:
    assert running_process(store, "alerts") is None
    with holder(store, "alerts") as first:
        found = running_process(store, "alerts")
        assert found is not None
        assert (found.pid, found.host) == (first.pid, os.uname().nodename)
        assert running_process(store, "gold") is None
        Path(store.checkpoints(), "alerts.lock").write_text("", encoding="utf-8")
        assert str(running_process(store, "alerts")) == "an unknown process"
    # The identity of a process that has ended is still there.
    with exclusive_jobs(store, ["alerts"]):
        pass
    assert running_process(store, "alerts") is None
    assert running_process(StoreSettings(path="s3://bucket/store"), "alerts") is None


def _sign(store: StoreSettings, **changed: Any) -> None:
    """Change the identity in both locks of a job."""
    for lock in Path(store.path).rglob("alerts.lock"):
        identity = json.loads(lock.read_text(encoding="utf-8"))
        lock.write_text(json.dumps(identity | changed), encoding="utf-8")


def test_a_job_whose_process_was_killed_is_known_to_have_ended_at_once(store: StoreSettings) -> None:
    assert ended_process(store, "alerts") is None
    with holder(store, "alerts") as first:
        assert ended_process(store, "alerts") is None
        first.send_signal(signal.SIGKILL)
        # Its parent has not asked for its exit code, so it is still listed as a zombie.
        os.waitid(os.P_PID, first.pid, os.WEXITED | os.WNOWAIT)
        zombie = ended_process(store, "alerts")
        first.wait()
        gone = ended_process(store, "alerts")
    assert zombie == gone
    assert gone is not None
    assert (gone.pid, gone.host) == (first.pid, os.uname().nodename)
    assert ended_process(store, "gold") is None
    assert ended_process(StoreSettings(path="s3://bucket/store"), "alerts") is None


def test_a_later_process_with_the_same_id_is_not_the_one_that_ran_a_job(store: StoreSettings) -> None:
    with exclusive_jobs(store, ["alerts"]):
        pass
    # On a file system without locks this process might run the job still.
    assert ended_process(store, "alerts") is None
    _sign(store, since_ms=1_000_000_000_000)
    assert ended_process(store, "alerts") is not None


def test_whether_a_process_of_another_machine_has_ended_is_not_known(store: StoreSettings) -> None:
    with holder(store, "alerts"):
        pass
    _sign(store, host="elsewhere")
    assert ended_process(store, "alerts") is None


def test_an_older_lock_in_a_former_folder_of_checkpoints_does_not_count(store: StoreSettings, tmp_path: Path) -> None:
    with holder(store, "alerts"):
        pass
    moved = StoreSettings(path=store.path, checkpoint_path=str(tmp_path / "other"))
    with exclusive_jobs(moved, ["alerts"]):
        pass
    assert ended_process(store, "alerts") is None


def test_the_member_of_a_kafka_group_that_a_killed_process_was_is_known(store: StoreSettings) -> None:
    with holder(store, "runs") as first:
        first.send_signal(signal.SIGKILL)
        first.wait()
    with exclusive_jobs(store, ["runs"]) as locks:
        assert locks.left_member == "member"
        locks.note_member("other")
        locks.note_member(None)
    # Left in order.
    with exclusive_jobs(store, ["runs"]) as locks:
        assert locks.left_member is None
    # Written after the locks are released, as by a thread.
    locks.note_member("late")


def test_the_member_of_a_process_that_may_run_still_is_not_known(store: StoreSettings) -> None:
    """On a file system without locks, or of several machines, the lock alone does not show that it has ended."""
    with exclusive_jobs(store, ["runs"]) as locks:
        locks.note_member("mine")
    with exclusive_jobs(store, ["runs"]) as locks:
        assert locks.left_member is None
    for folder in (store.checkpoints(), f"{store.path}/_locks"):
        owner = {"host": "elsewhere", "pid": 1, "command": "headroom", "since_ms": 1, "member": "theirs"}
        Path(folder, "runs.lock").write_text(json.dumps(owner), encoding="utf-8")
    with exclusive_jobs(store, ["runs"]) as locks:
        assert locks.left_member is None


def test_a_lock_whose_identity_cannot_be_written_any_more_is_released(store: StoreSettings) -> None:
    class Full:
        """A file with text that the disk does not take."""

        def close(self) -> None:
            raise OSError(28, "No space left on device")

    full: Any = Full()
    with exclusive_jobs(store, ["alerts"]) as locks:
        locks._held = {Path("full"): full, **locks._held}
    with exclusive_jobs(store, ["alerts"]):
        pass
