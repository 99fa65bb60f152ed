"""Waits of tests for a condition: as long as the machine needs, and an error that says what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable

from headroom.cluster.embedded.patience import Patience


def until(
    condition: Callable[[], object],
    seen: Callable[[], object] = lambda: "",
    deadline_s: float = 10.0,
    poll_s: float = 0.005,
) -> None:
    """Return once a condition is true.

    Args:
        condition: asked again and again.
        seen: returns what an error is to show.
        deadline_s: longest wait in seconds; longer while the machine is busy.
        poll_s: time between two questions, seconds.

    Raises:
        AssertionError: the deadline passed.
    """
    patience = Patience(deadline_s)
    while not condition():
        assert not patience.is_over(), f"not within {patience}; {seen()}"
        time.sleep(poll_s)
