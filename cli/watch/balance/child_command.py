"""A command of Headroom that runs beside the watch, at the lowest priority, for its JSON."""

from __future__ import annotations

import json
import os
import subprocess
import tempfile
from collections.abc import Mapping
from contextlib import ExitStack, suppress
from dataclasses import dataclass
from typing import IO, Any, Protocol

from headroom.cli.common.child_process import headroom_command
from headroom.cli.watch.priority import lower_session

_LOWEST_PRIORITY = 19


class RunningCommand(Protocol):
    """A command of Headroom in a process of its own."""

    def result(self) -> CommandResult | None:
        """Return what it printed once it has ended; None while it runs."""
        ...

    def stop(self) -> None:
        """End it."""
        ...


@dataclass(frozen=True)
class CommandResult:
    """What a command printed.

    Attributes:
        output: its JSON; None if it failed.
        error: the last line of its messages.
    """

    output: Mapping[str, Any] | None
    error: str


class ChildCommand:
    """A command of Headroom as a child process of the lowest priority, whose output goes to files.

    Args:
        arguments: arguments of ``headroom``.
    """

    def __init__(self, arguments: tuple[str, ...]) -> None:
        # Files, because a pipe that is not read would stop the command.
        self._files = ExitStack()
        self._output = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._messages = self._files.enter_context(tempfile.TemporaryFile())  # noqa: SIM115
        self._process = subprocess.Popen(
            headroom_command(*arguments),
            stdin=subprocess.DEVNULL,
            stdout=self._output,
            stderr=self._messages,
            start_new_session=True,
        )
        # It may have ended already.
        with suppress(OSError):
            os.setpriority(os.PRIO_PROCESS, self._process.pid, _LOWEST_PRIORITY)
        lower_session(self._process.pid, _LOWEST_PRIORITY)

    def result(self) -> CommandResult | None:
        """Return what it printed once it has ended; None while it runs."""
        code = self._process.poll()
        if code is None:
            return None
        with self._files:
            text, messages = (_content(file) for file in (self._output, self._messages))
        lines = messages.strip().splitlines()
        error = lines[-1] if lines else f"it ended with code {code}"
        try:
            return CommandResult(json.loads(text) if code == 0 else None, error)
        except ValueError:
            return CommandResult(None, "its output is not valid JSON")

    def stop(self) -> None:
        """End the process; it has changed nothing but the tables, whose commits are whole."""
        self._process.kill()
        self._process.wait()
        self._files.close()


def _content(file: IO[bytes]) -> str:
    file.seek(0)
    return file.read().decode(errors="replace")
