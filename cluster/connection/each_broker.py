"""Asks several brokers at the same time, so that those that hang cost one timeout together."""

from __future__ import annotations

from collections.abc import Callable, Collection
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

T = TypeVar("T")
# Threads only wait for answers.
_MAX_PARALLEL = 64


def ask_each(brokers: Collection[int], ask: Callable[[int], T]) -> dict[int, T]:
    """Return the answer of each broker, in their order.

    Args:
        brokers: broker ids.
        ask: asks one broker, on a thread of its own; an error of it is raised.
    """
    with ThreadPoolExecutor(max(1, min(_MAX_PARALLEL, len(brokers)))) as pool:
        return dict(zip(brokers, pool.map(ask, brokers), strict=True))
