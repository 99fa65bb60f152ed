"""Progress output of long commands: a live line on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

from rich.console import Console
from rich.live import Live
from rich.spinner import Spinner
from rich.text import Text

from headroom.schemas.text import printable

# Minimum interval between the notes of a step where the output is not a terminal.
_NOTE_EVERY_S = 10.0


class ProgressView:
    """Shows the steps of a command, with the time since its start.

    Args:
        console: console to print to.
    """

    def __init__(self, console: Console) -> None:
        self._console = console
        self._live = console.is_terminal
        self._start_s = time.monotonic()
        self._note = ""
        self._noted_s = 0.0

    @contextmanager
    def step(self, text: str) -> Iterator[None]:
        """Show a step until the block ends; on a terminal its line remains afterwards."""
        self._note, self._noted_s = "", time.monotonic()
        if not self._live:
            self.print_line(text)
            yield
            return
        # A line that changes would fill a log; on a terminal it shows that the command is alive.
        spinner = Spinner("dots")
        line = Live(
            get_renderable=lambda: self._line(spinner, text),
            console=self._console,
            refresh_per_second=8,
            transient=True,
        )
        began = self._elapsed_text()
        with line:
            yield
        self._print(began, text)

    def note(self, text: str) -> None:
        """Show the progress of the running step."""
        self._note = text
        if not self._live and time.monotonic() - self._noted_s >= _NOTE_EVERY_S:
            self._noted_s = time.monotonic()
            self.print_line(text)

    def print_line(self, text: str) -> None:
        """Print a line."""
        self._print(self._elapsed_text(), text)

    def _line(self, spinner: Spinner, text: str) -> Spinner:
        note = f"  {self._note}" if self._note else ""
        spinner.update(text=Text(printable(f"{self._elapsed_text()}  {text}{note}"), overflow="ellipsis", no_wrap=True))
        return spinner

    def _print(self, at: str, text: str) -> None:
        self._console.print(Text(printable(f"{at}  {text}")), soft_wrap=True)

    def _elapsed_text(self) -> str:
        minutes, seconds = divmod(int(time.monotonic() - self._start_s), 60)
        return f"{minutes}:{seconds:02d}"
