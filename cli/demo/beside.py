"""Commands of Headroom beside the demo, and the page as one of them."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from types import TracebackType

from headroom.cli.common.child_process import headroom_command
from headroom.schemas.environment import STARTED_BY

_STOP_S = 5.0


class CommandBeside:
    """A running command of ``headroom``, which ends when this process does.

    Args:
        arguments: its arguments, as a user gives them.
        on_line: gets each line that it prints, from another thread.
        log: file of its standard error; None: these are lines too.
    """

    def __init__(self, arguments: Sequence[str], on_line: Callable[[str], None], log: Path | None = None) -> None:
        errors = None if log is None else log.open("a", encoding="utf-8")
        try:
            self._process = subprocess.Popen(
                headroom_command(*arguments, "--with-parent"),
                stdin=subprocess.DEVNULL,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT if errors is None else errors,
                text=True,
                env=os.environ | {STARTED_BY: str(os.getpid())},
                # In its own session, so that Ctrl-C reaches it once, as our SIGTERM.
                start_new_session=True,
            )
        finally:
            if errors is not None:
                errors.close()
        self._on_line = on_line
        self._reader = threading.Thread(target=self._read, name="lines-beside", daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self._process.stdout is not None
        for line in self._process.stdout:
            self._on_line(line.rstrip())

    @property
    def code(self) -> int | None:
        """Exit code, once all lines were passed on; None while it runs."""
        return None if self._reader.is_alive() else self._process.poll()

    def __enter__(self) -> CommandBeside:
        """Return the running command."""
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """End the command."""
        self._process.terminate()
        try:
            self._process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()


@contextmanager
def page_beside(config: Path, log: Path, on_line: Callable[[str], None]) -> Iterator[None]:
    """Serve the page for the length of the block.

    Without it the demo goes on: it is only to look at.

    Args:
        config: settings file.
        log: file of its errors.
        on_line: gets the line with its address, once it answers.
    """
    with CommandBeside(["dashboard", "--config", str(config), "--listen", "127.0.0.1:0"], on_line, log):
        yield
