"""The measured watch, which is killed and restarted as by a supervisor."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Literal

import psutil

from benchmarks.fixtures.bench_cluster import await_child
from benchmarks.fixtures.processes import jvms_of, kill_tree, kill_watch
from benchmarks.results import CHECKOUT
from headroom.cli.common.child_process import headroom_command
from headroom.cli.common.watch_output import Line
from headroom.cli.common.watch_process import VerdictProcess
from headroom.schemas.errors import HeadroomError

ProcessName = Literal["watch", "collector"]
_NAME = "headroom watch"
_CHILD_S = 90.0
# Like a supervisor's delay: processes get this long after a start before the next check.
_RETRY_S = 2.0


class LiveWatch:
    """A watch, and its collector if that is a separate process.

    Args:
        config: configuration file.
        store: folder of its tables.
        folder: folder of its log and its clocks.
        own_clocks: whether watch and collector are separate processes with clocks that can be set.

    Attributes:
        config: configuration file.
        ended: unexpected ends of processes, a line each.
        environment: variables for commands on the same store.
    """

    def __init__(self, config: Path, store: Path, folder: Path, own_clocks: bool = False) -> None:
        self.ended: list[str] = []
        self.environment = {"HEADROOM_STORE__PATH": str(store)}
        self.config = config
        self._folder = folder
        self._own_clocks = own_clocks
        self._watches: list[VerdictProcess] = []
        self._collector: subprocess.Popen[bytes] | None = None
        self._is_down = True
        self._next_check_s = 0.0

    @property
    def watch(self) -> VerdictProcess:
        """Return the watch that was started last."""
        return self._watches[-1]

    def start(self) -> None:
        """Start watch and collector, unless they run."""
        if self._is_down:
            self._is_down = False
            self._start_watch()
        if self._own_clocks and self._collector is None:
            self._start_collector()

    def kill(self) -> int:
        """Kill the watch with all its child processes, and return the number of processes."""
        self._is_down = True
        return kill_watch(self.watch)

    def close(self) -> None:
        """Kill all processes. The tables are not used again."""
        if self._watches:
            self.kill()
        if self._collector is not None:
            kill_tree(psutil.Process(self._collector.pid))
            self._collector.wait()

    def supervise(self) -> None:
        """Restart processes that ended unexpectedly, and record that."""
        if self._is_down or time.monotonic() < self._next_check_s:
            return
        try:
            self.watch.require_running()
        except HeadroomError as error:
            self._note_end(str(error))
            self.watch.stop()
            self._start_watch()
        if self._collector is not None and (code := self._collector.poll()) is not None:
            self._note_end(f"the collector ended with code {code}")
            self._start_collector()

    def lines(self) -> Iterator[Line]:
        """Return the alert events in the output of all watches so far."""
        for watch in self._watches:
            yield from watch.events()

    def process(self) -> psutil.Process:
        """Return the process of the watch.

        Raises:
            HeadroomError: it does not run.
        """
        self.watch.require_running()
        return self.watch.processes()[0]

    def collector(self) -> psutil.Process:
        """Return the collector."""
        if self._collector is None:
            return await_child(self.watch, "collect", _CHILD_S)
        return psutil.Process(self._collector.pid)

    def history(self) -> psutil.Process:
        """Return the history process."""
        return await_child(self.watch, "record", _CHILD_S)

    def evaluating(self) -> list[psutil.Process]:
        """Return the processes that evaluate ticks: the watch and its JVM."""
        own = self.process()
        return [own, *jvms_of(own)]

    def set_clock(self, process: ProcessName, off_s: float) -> None:
        """Set the offset of a wall clock, seconds."""
        file = self._clock(process)
        draft = file.with_suffix(".new")
        draft.write_text(str(off_s), encoding="utf-8")
        draft.replace(file)

    def command(self, process: ProcessName, *arguments: str) -> list[str]:
        """Return the command line of ``headroom``, with a clock that can be set if this watch has one."""
        if not self._own_clocks:
            return headroom_command(*arguments)
        return [sys.executable, "-m", "benchmarks.faults.set_clock", str(self._clock(process)), *arguments]

    def _clock(self, process: ProcessName) -> Path:
        return self._folder / f"{process}.clock"

    def _start_watch(self) -> None:
        separate = ["--without-collector"] if self._own_clocks else []
        arguments = ["watch", "--config", str(self.config), "--format", "json", "--with-parent", *separate]
        environment = {**self.environment, **self._module_path()}
        command, log = self.command("watch", *arguments), self._folder / "watch.log"
        self._watches.append(VerdictProcess(_NAME, command, log, environment))
        self._next_check_s = time.monotonic() + _RETRY_S

    def _start_collector(self) -> None:
        command = self.command("collector", "collect", "--config", str(self.config), "--with-parent")
        with (self._folder / "collector.log").open("ab") as log:
            self._collector = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                env=os.environ | self._module_path(),
                start_new_session=True,
            )

    def _module_path(self) -> dict[str, str]:
        # The module that sets clocks is not part of the installed package.
        return {"PYTHONPATH": str(CHECKOUT)} if self._own_clocks else {}

    def _note_end(self, text: str) -> None:
        self.ended.append(text)
        self._next_check_s = time.monotonic() + _RETRY_S
