"""The folders of one test run, and what an earlier run that was killed has left; standard library only, Linux.

A run has a folder for pytest's results, and one for all temporary files of its tests, which also those of Spark and of
brokers go to: a killed JVM leaves its own. Its processes are known by a variable of their environment.
"""

import fcntl
import os
import shutil
import signal
import tempfile
import time
from pathlib import Path

# Its value is the run's folder.
MARK = "HEADROOM_TEST_RUN"
_PREFIX = "run-"
# Processes that have been asked to end, such as a JVM whose Python process has ended, may take a moment.
_ENDING_S = 5.0


class RunFolder:
    """The folders of this run, which are its own until ``close``.

    Args:
        records: folder of the runs of this checkout.

    Attributes:
        folder: folder of results.
        temporary: folder of temporary files.

    Raises:
        OSError: a folder cannot be written.
    """

    def __init__(self, records: Path) -> None:
        records.mkdir(parents=True, exist_ok=True)
        # Locked together with the removal of others, so that none takes the folder of a run that begins for a dead one.
        with (records / ".lock").open("a") as all_runs:
            fcntl.flock(all_runs, fcntl.LOCK_EX)
            for other in sorted(records.glob(_PREFIX + "*")):
                _remove_if_ended(other)
            self.temporary = Path(tempfile.mkdtemp(prefix="headroom-tests-"))
            # As the folder of all temporary files, it lets others pass: tests act as another user.
            self.temporary.chmod(0o711)
            self.folder = Path(tempfile.mkdtemp(prefix=_PREFIX, dir=str(records)))
            self._lock = _lock_file(self.folder).open("w")
            self._lock.write(str(self.temporary))
            self._lock.flush()
            fcntl.flock(self._lock, fcntl.LOCK_EX)

    def environment(self, with_java: bool) -> "dict[str, str]":
        """Return the variables by which processes of the run are known and find their folder of temporary files.

        Args:
            with_java: whether those of JVMs are needed, which print a line about it.
        """
        variables = {MARK: str(self.folder), "TMPDIR": str(self.temporary)}
        if with_java:
            given = os.environ.get("JAVA_TOOL_OPTIONS", "")
            variables["JAVA_TOOL_OPTIONS"] = f'{given} "-Djava.io.tmpdir={self.temporary}"'.strip()
        return variables

    def end_processes(self) -> "list[str]":
        """Kill the processes that tests have left running, and return their command lines."""
        return end_processes_of(self.folder)

    def close(self, keep: bool) -> None:
        """End the run.

        Args:
            keep: leave the temporary files until the next run begins.
        """
        for file in self.folder.glob("*.xml"):
            os.replace(str(file), str(self.folder.parent / file.name))
        if not keep:
            _remove(self.folder, self.temporary)
        self._lock.close()


def end_processes_of(folder: Path, ending_s: float = _ENDING_S) -> "list[str]":
    """Kill the processes of a run that do not end within some seconds, and return their command lines."""
    give_up = time.monotonic() + ending_s
    while _processes_of(folder) and time.monotonic() < give_up:
        time.sleep(0.1)
    ended = []
    for pid in _processes_of(folder):
        ended.append(_text(Path("/proc", str(pid), "cmdline")).replace("\0", " ").strip()[:200])
        try:
            os.kill(pid, signal.SIGKILL)
        except ProcessLookupError:
            ended.pop()
    return ended


def _processes_of(folder: Path) -> "list[int]":
    """Return the other processes of a run; those of other users cannot be read, and an ended one has no environment."""
    entry = f"{MARK}={folder}"
    pids = [int(process.name) for process in Path("/proc").glob("[0-9]*")]
    own = os.getpid()
    return [pid for pid in pids if pid != own and entry in _text(Path("/proc", str(pid), "environ")).split("\0")]


def _remove_if_ended(folder: Path) -> None:
    """Remove the folders of a run whose process has ended, and kill what it has left running."""
    try:
        with _lock_file(folder).open("r+") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
            end_processes_of(folder, 0.0)
            _remove(folder, Path(lock.read()))
    except BlockingIOError:
        # It runs.
        return
    except OSError:
        shutil.rmtree(str(folder), ignore_errors=True)


def _remove(folder: Path, temporary: Path) -> None:
    if temporary.name.startswith("headroom-tests-"):
        shutil.rmtree(str(temporary), ignore_errors=True)
    shutil.rmtree(str(folder), ignore_errors=True)


def _lock_file(folder: Path) -> Path:
    return folder / "lock"


def _text(file: Path) -> str:
    try:
        return file.read_bytes().decode(errors="surrogateescape")
    except OSError:
        return ""
