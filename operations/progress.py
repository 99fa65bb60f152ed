"""How a use case reports what it does while it runs."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import AbstractContextManager
from typing import Protocol, TypeVar

_NOTE_EVERY = 20_000
_T = TypeVar("_T")
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


def with_notes(items: Iterable[_T], progress: ProgressReceiver, text: Callable[[_T], str]) -> Iterator[_T]:
    """Yield items, and report now and then how far it is.

    Args:
        items: the items, very many.
        progress: gets the notes.
        text: returns the note at an item.
    """
    for number, item in enumerate(items):
        if number % _NOTE_EVERY == 0:
            progress.note(text(item))
        yield item
