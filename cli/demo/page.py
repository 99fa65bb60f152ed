"""The page beside the demo."""

from __future__ import annotations

import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from headroom.cli.common.child_process import headroom_command
from headroom.schemas.environment import STARTED_BY

_STOP_S = 5.0


@contextmanager
def page_beside(config: Path, log: Path, on_line: Callable[[str], None]) -> Iterator[None]:
    """Serve the page for the length of the block.

    Without it the demo goes on: it is only to look at.

    Args:
        config: settings file.
        log: file of its errors.
        on_line: gets the line with its address, once it answers.
    """
    command = headroom_command("dashboard", "--config", str(config), "--listen", "127.0.0.1:0", "--with-parent")
    with log.open("a", encoding="utf-8") as errors:
        process = subprocess.Popen(
            command,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
            env=os.environ | {STARTED_BY: str(os.getpid())},
            start_new_session=True,
        )

    def read() -> None:
        assert process.stdout is not None
        for line in process.stdout:
            on_line(line.strip())

    threading.Thread(target=read, name="page-lines", daemon=True).start()
    try:
        yield
    finally:
        process.terminate()
        try:
            process.wait(_STOP_S)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()
