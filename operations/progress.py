"""How a use case reports what it does while it runs."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractContextManager
from typing import Protocol

# Gets one sentence.
OnText = Callable[[str], None]


class ProgressReceiver(Protocol):
    """Receiver of the progress of a use case; commands print it with ``cli.common.progress.ProgressView``."""

    def step(self, text: str) -> AbstractContextManager[None]:
        """Begin a step, which ends with the block."""
        ...

    def note(self, text: str) -> None:
        """Report where the running step is; a newer note replaces it."""
        ...

    def print_line(self, text: str) -> None:
        """Report what has been done."""
        ...
