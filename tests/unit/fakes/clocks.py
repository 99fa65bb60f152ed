"""A fake clock: the test sets the wall clock and advances the elapsed time."""

from __future__ import annotations

from headroom.cluster.collector.clock import Clock

START_MS = 1_800_000_000_000


class FakeTime:
    """The time of a machine.

    Attributes:
        elapsed_s: seconds since the start, which pass evenly.
        set_ms: by how much the wall clock was set since.
        clock: what shows both.
    """

    def __init__(self) -> None:
        self.elapsed_s = 0.0
        self.set_ms = 0
        self.clock = Clock(lambda: self.wall_ms() / 1000, lambda: self.elapsed_s)

    def wall_ms(self) -> int:
        """Return the epoch milliseconds of the wall clock."""
        return START_MS + round(self.elapsed_s * 1000) + self.set_ms
