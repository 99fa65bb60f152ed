"""Runs long steps of set-up side by side, and prints how far each is; standard library only, see setup.py."""

import subprocess
import sys
import threading
import time
from contextlib import ExitStack
from pathlib import Path

import child
from preflight import SetupError

# A terminal shows one line that changes; a log gets a new line now and then.
_TERMINAL_EVERY_S = 0.5
_LOG_EVERY_S = 10.0
# Ivy and pip end at once.
_STOP_S = 10.0
_WIDTH = 118


class Step(threading.Thread):
    """One step, which runs commands and knows how far it is.

    Attributes:
        error: why it failed; None if it has not.
    """

    def __init__(self, name: str) -> None:
        super().__init__(name=name, daemon=True)
        self.error: BaseException | None = None
        self._processes: list[subprocess.Popen[bytes]] = []
        self._stopped = False

    def work(self) -> None:
        """Do the step; subclasses define what."""
        raise NotImplementedError

    def progress(self) -> str:
        """Return how far the step is, in some words."""
        raise NotImplementedError

    def run(self) -> None:
        """Do the step, and keep its error."""
        try:
            self.work()
        except BaseException as error:
            self.error = error

    def command(self, words: "list[str]", folder: Path, log: Path) -> int:
        """Run a command whose output goes to a file, and return its exit code; -1 after ``stop``."""
        return self.commands({log: words}, folder)[log]

    def commands(self, words: "dict[Path, list[str]]", folder: Path) -> "dict[Path, int]":
        """Run commands side by side, and return their exit codes; each is named by the file that its output goes to."""
        started = {}
        with ExitStack() as files:
            for log, command in words.items():
                output = files.enter_context(log.open("wb"))
                started[log] = child.start(command, cwd=str(folder), stdout=output, stderr=subprocess.STDOUT)
                self._processes.append(started[log])
                if self._stopped:
                    started[log].terminate()
            codes = {log: process.wait() for log, process in started.items()}
        return {log: -1 if self._stopped else code for log, code in codes.items()}

    def stop(self) -> None:
        """End the commands that run, and start no other one."""
        self._stopped = True
        for process in self._processes:
            if process.poll() is None:
                child.stop(process, grace_s=_STOP_S)

    @property
    def is_stopped(self) -> bool:
        """Return whether the step was told to stop."""
        return self._stopped


def run_all(steps: "list[Step]") -> None:
    """Run steps side by side, with progress on standard output, until all have ended; the first error stops the others.

    Raises:
        SetupError: a step failed.
        KeyboardInterrupt: interrupted; no command of a step is left running.
    """
    terminal = sys.stdout.isatty()
    began, shown = time.monotonic(), time.monotonic()
    for step in steps:
        step.start()
    try:
        while any(step.is_alive() for step in steps) and all(step.error is None for step in steps):
            time.sleep(0.1)
            if time.monotonic() - shown >= (_TERMINAL_EVERY_S if terminal else _LOG_EVERY_S):
                shown = time.monotonic()
                _show(steps, shown - began, terminal)
    finally:
        for step in steps:
            step.stop()
        for step in steps:
            step.join()
        if terminal:
            print("\r" + " " * _WIDTH + "\r", end="", flush=True)
    errors = [step.error for step in steps if step.error is not None]
    # The step that failed by itself explains more than one that was stopped for it.
    for error in sorted(errors, key=lambda error: not isinstance(error, SetupError)):
        raise error


def _show(steps: "list[Step]", elapsed_s: float, terminal: bool) -> None:
    parts = [f"{step.name}: {step.progress()}" for step in steps if step.is_alive()]
    if not parts:
        return
    text = "set-up: {}:{:02d}  {}".format(int(elapsed_s) // 60, int(elapsed_s) % 60, "; ".join(parts))
    if terminal:
        print("\r" + text[:_WIDTH].ljust(_WIDTH), end="", flush=True)
    else:
        print(text, flush=True)


def megabytes(size_bytes: float) -> str:
    """Return a size in megabytes, as text."""
    return f"{size_bytes / 1e6:.0f} MB"


def rate(size_bytes: float, since: float) -> str:
    """Return bytes and their mean rate since a time of the monotonic clock, as text."""
    elapsed_s = max(0.1, time.monotonic() - since)
    return f"{megabytes(size_bytes)}, {size_bytes / 1e6 / elapsed_s:.1f} MB/s"
