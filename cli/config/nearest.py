"""Suggestions for misspelt names."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a remedy for an unknown name: the most similar known name, or all of them if none is similar."""
    names = list(names)
    similar = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {similar[0]}?" if similar else f"There are: {', '.join(names)}."
