"""Parallel calls on daemon threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from functools import partial
from typing import TypeVar

T = TypeVar("T")


def in_parallel(calls: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Return the result of each call after all have finished; the calls must not raise."""
    results: dict[str, T] = {}

    def run(name: str, call: Callable[[], T]) -> None:
        results[name] = call()

    threads = [threading.Thread(target=partial(run, *item), daemon=True) for item in calls.items()]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    return {name: results[name] for name in calls}
