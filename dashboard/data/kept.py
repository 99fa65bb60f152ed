"""What caches of the page share: they keep what was asked for last."""

from __future__ import annotations

from collections.abc import MutableMapping
from typing import TypeVar

K = TypeVar("K")
V = TypeVar("V")


def keep(kept: MutableMapping[K, V], key: K, value: V, most: int) -> None:
    """Keep a value as the last one, and drop the first ones beyond the most.

    Args:
        kept: the values, in the order in which they were kept.
        key: key of the value.
        value: the value.
        most: how many are kept.
    """
    kept.pop(key, None)
    kept[key] = value
    while len(kept) > most:
        del kept[next(iter(kept))]
