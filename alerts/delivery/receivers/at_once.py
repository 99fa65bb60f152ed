"""Parallel calls on daemon threads."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeVar

from headroom.schemas.threads import run_in_daemon_thread

T = TypeVar("T")


def in_parallel(calls: Mapping[str, Callable[[], T]]) -> dict[str, T]:
    """Return the result of each call after all have finished; the calls must not raise."""
    # The name of a call may be a URL with a secret, and thread names are in stack dumps.
    futures = {name: run_in_daemon_thread("delivery", call) for name, call in calls.items()}
    return {name: future.result() for name, future in futures.items()}
