"""Waits of tests for a condition: as long as the machine needs, and an error that says what was seen last."""

from __future__ import annotations

import time
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec

from headroom.cluster.embedded.patience import Patience

P = ParamSpec("P")


def in_the_end(test: Callable[P, None], deadline_s: float = 30.0, poll_s: float = 0.5) -> Callable[P, None]:
    """Let a test that only looks at a server look again until it passes, or fail as it did last when time is up."""

    @wraps(test)
    def repeated(*args: P.args, **kwargs: P.kwargs) -> None:
        patience = Patience(deadline_s)
        while True:
            try:
                return test(*args, **kwargs)
            except AssertionError:
                if patience.is_over():
                    raise
            time.sleep(poll_s)

    return repeated


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
