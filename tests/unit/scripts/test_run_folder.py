"""A run that was interrupted or killed leaves nothing running, and the next one removes its files."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import child
import pytest
from runs.folder import MARK, RunFolder, end_processes_of

SLEEP = [sys.executable, "-c", "import time; time.sleep(60)"]
SCRIPT = """
import sys
sys.path.insert(0, {scripts!r})
import child, time
print(child.start({command!r}).pid, flush=True)
time.sleep(60)
"""

CLEANS = """
import sys, time
try:
    print(flush=True)
    time.sleep(60)
except KeyboardInterrupt:
    time.sleep(0.5)
    open(sys.argv[1], "w").close()
"""


def process_of(folder: Path, **options: bool) -> subprocess.Popen[str]:
    """Return a process that sleeps and is known as one of the run in a folder.

    It has begun when it prints a line. ``Popen`` returns before: the kernel closes the files of the parent in a new
    program first, and makes its environment readable later.
    """
    says = [sys.executable, "-c", f"print(flush=True); {SLEEP[-1]}"]
    process = subprocess.Popen(
        says, env={**os.environ, MARK: str(folder)}, stdout=subprocess.PIPE, text=True, **options
    )
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    return process


@pytest.fixture(autouse=True)
def own_temporary_files(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "temporary").mkdir()
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path / "temporary"))


def ended(pid: int) -> bool:
    """Return whether a process has ended, waiting for it for some time."""
    for _ in range(300):
        try:
            text = Path(f"/proc/{pid}/stat").read_text()
        except OSError:
            return True
        if text.rsplit(")", 1)[1].split()[0] == "Z":
            return True
        time.sleep(0.1)
    return False


def test_a_command_ends_when_its_script_is_killed() -> None:
    text = SCRIPT.format(scripts=str(Path(child.__file__).parent), command=SLEEP)
    with subprocess.Popen([sys.executable, "-c", text], stdout=subprocess.PIPE, text=True) as script:
        assert script.stdout is not None
        pid = int(script.stdout.readline())
        script.kill()
    assert ended(pid)


@pytest.mark.parametrize(("ignored", "shown"), [(False, "cleaned"), (True, "goes on")])
def test_a_closed_terminal_ends_a_script_as_ctrl_c_does_unless_it_was_started_with_nohup(
    ignored: bool, shown: str
) -> None:
    text = f"import sys, os, signal; sys.path.insert(0, {str(Path(child.__file__).parent)!r}); import child\n"
    text += (
        f"signal.signal(signal.SIGHUP, signal.{'SIG_IGN' if ignored else 'SIG_DFL'}); child.take_signals_for_ctrl_c()\n"
    )
    text += "try:\n    os.kill(os.getpid(), signal.SIGHUP)\n    print('goes on')\n"
    text += "except KeyboardInterrupt:\n    print('cleaned')\n"
    done = subprocess.run([sys.executable, "-c", text], capture_output=True, text=True, check=True)
    assert done.stdout == shown + "\n"


def test_after_ctrl_c_a_command_may_clean_up_before_it_ends(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    process = child.start([sys.executable, "-c", CLEANS, str(tmp_path / "cleaned")], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    process.stdout.close()
    monkeypatch.setattr(process, "wait", lambda: interrupted(process, monkeypatch))
    with pytest.raises(KeyboardInterrupt):
        child.finish(process)
    assert (tmp_path / "cleaned").exists()


def interrupted(process: subprocess.Popen[bytes], patch: pytest.MonkeyPatch) -> int:
    patch.undo()
    raise KeyboardInterrupt


def test_a_command_that_asks_for_something_gets_no_answer_and_does_not_wait_for_one() -> None:
    read, write = os.pipe()
    before = os.dup(0)
    os.dup2(read, 0)
    try:
        asks = child.start([sys.executable, "-c", "import sys; sys.exit(len(sys.stdin.read(1)))"])
        assert asks.wait(60) == 0
    finally:
        os.dup2(before, 0)
        for file in (read, write, before):
            os.close(file)


def test_a_command_that_ignores_ctrl_c_is_killed_with_its_children_after_the_grace(tmp_path: Path) -> None:
    ignores = "import signal, subprocess, sys; signal.signal(2, signal.SIG_IGN); "
    ignores += f"p = subprocess.Popen({SLEEP!r}); print(p.pid, flush=True); p.wait()"
    process = child.start([sys.executable, "-c", ignores], stdout=subprocess.PIPE)
    assert process.stdout is not None
    pid = int(process.stdout.readline())
    child.stop(process, signal.SIGINT, grace_s=0.5)
    assert process.returncode == -signal.SIGKILL
    assert ended(pid)
    process.stdout.close()


def test_the_files_of_a_run_that_was_killed_are_removed_and_its_processes_ended_by_the_next(tmp_path: Path) -> None:
    killed = RunFolder(tmp_path / "records")
    process = process_of(killed.folder, start_new_session=True)
    (killed.temporary / "blockmgr-1").mkdir()
    # As the kernel does when the process ends.
    killed._lock.close()
    following = RunFolder(tmp_path / "records")
    assert process.wait(10) == -signal.SIGKILL
    assert not killed.temporary.exists()
    assert [folder.name for folder in (tmp_path / "records").glob("run-*")] == [following.folder.name]
    following.close(keep=False)


def test_concurrent_runs_do_not_disturb_each_other(tmp_path: Path) -> None:
    first, second = RunFolder(tmp_path / "records"), RunFolder(tmp_path / "records")
    assert first.folder.exists()
    assert first.temporary.exists()
    assert first.folder != second.folder
    second.close(keep=False)
    first.close(keep=False)


def test_what_a_run_leaves_running_is_named_and_ended(tmp_path: Path) -> None:
    process = process_of(tmp_path)
    (line,) = end_processes_of(tmp_path, ending_s=0.3)
    assert "time.sleep(60)" in line
    assert process.wait(10) == -signal.SIGKILL


@pytest.mark.parametrize("keep", [True, False])
def test_files_of_a_red_run_stay_until_the_next_one(keep: bool, tmp_path: Path) -> None:
    run = RunFolder(tmp_path / "records")
    (run.folder / "unit.xml").write_text("<x/>")
    run.close(keep=keep)
    assert (tmp_path / "records" / "unit.xml").exists()
    assert run.temporary.exists() == keep
    RunFolder(tmp_path / "records").close(keep=False)
    assert not run.temporary.exists()


def test_jvms_put_their_files_into_the_folder_of_the_run_as_well(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("JAVA_TOOL_OPTIONS", "-Xlog:disable")
    run = RunFolder(tmp_path / "records")
    found = run.environment(with_java=True)
    assert found["TMPDIR"] == str(run.temporary)
    assert found["JAVA_TOOL_OPTIONS"] == f'-Xlog:disable "-Djava.io.tmpdir={run.temporary}"'
    assert "JAVA_TOOL_OPTIONS" not in run.environment(with_java=False)
    run.close(keep=False)
