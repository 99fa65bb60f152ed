"""What is said to who has misspelt a name."""

from __future__ import annotations

import difflib
from collections.abc import Iterable


def suggestion(name: str, names: Iterable[str]) -> str:
    """Return a remedy: the name that is most like the wrong one, else all there are."""
    names = list(names)
    near = difflib.get_close_matches(name, names, n=1)
    return f"Did you mean {near[0]}?" if near else f"There are: {', '.join(names)}."
