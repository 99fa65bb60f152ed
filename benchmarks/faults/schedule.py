"""Runs to measure: chosen by name, or drawn in rounds."""

from __future__ import annotations

import random
from collections.abc import Collection, Iterator, Sequence
from typing import TypeVar

from benchmarks.fixtures.bench_cluster import failure

T = TypeVar("T")


def chosen_names(text: str, known: Collection[str], what: str) -> list[tuple[str, int | None]]:
    """Return the names in a text, each with the number behind its colon; all known names if the text is empty.

    Args:
        text: comma-separated names, such as ``large,near:2``.
        known: names that exist.
        what: what the names are of, for the error.

    Raises:
        HeadroomError: there is no such name, or no such number.
    """
    chosen: list[tuple[str, int | None]] = []
    for name in [part.strip() for part in text.split(",") if part.strip()] or known:
        key, _, number = name.partition(":")
        if key not in known or (number and not number.isdigit()):
            one = f"{next(iter(known))}:2"
            raise failure(f"there is no {what} {name!r}; there are {', '.join(known)}, and {one} for one run")
        chosen.append((key, int(number) if number else None))
    return chosen


def in_rounds(items: Sequence[T], draw: random.Random) -> Iterator[T]:
    """Yield items in a drawn order, each once before any is repeated, without end.

    Args:
        items: the items.
        draw: random source, which is used at the beginning of each round.
    """
    while True:
        yield from draw.sample(items, len(items))
