"""Clock that a cluster's ticks have their times from: a tick that is late, and a clock that was set back."""

from __future__ import annotations


class SetBackDetector:
    """Tells a tick that is late from a clock that was set back: two ticks in a row are older than one before.

    A single older tick is late, or comes from a second collector.
    """

    def __init__(self) -> None:
        # The first of the ticks in a row that are older than the newest one; None if the last tick was not older.
        self._older_ms: int | None = None

    def on_newer(self) -> None:
        """Record a tick that is not older than the newest one."""
        self._older_ms = None

    def on_older(self, tick_ms: int) -> int | None:
        """Return the first tick of a clock that was set back; None if this older tick does not show that.

        Args:
            tick_ms: time of a tick that is older than the newest one, epoch milliseconds.
        """
        older_ms, self._older_ms = self._older_ms, None
        if older_ms is not None and tick_ms > older_ms:
            return older_ms
        self._older_ms = tick_ms
        return None
