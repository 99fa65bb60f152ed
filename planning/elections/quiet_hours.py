"""When it is quiet enough to change leaders: at a time of day, or while little is written."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import datetime, time, tzinfo


@dataclass(frozen=True)
class DailyWindow:
    """A time that comes back every day, by the clock of its zone.

    Attributes:
        begins: first moment of it.
        ends: first moment after it; earlier than ``begins``: on the next day.
        zone: whose clock; a change to or from summer time moves the window with it.
    """

    begins: time
    ends: time
    zone: tzinfo

    def holds(self, at_s: float) -> bool:
        """Return whether a moment, in epoch seconds, lies in it."""
        now = datetime.fromtimestamp(at_s, self.zone).time()
        if self.begins < self.ends:
            return self.begins <= now < self.ends
        return now >= self.begins or now < self.ends


@dataclass(frozen=True)
class QuietPolicy:
    """What has to hold for an election; of two conditions either is enough, without any it is always quiet.

    Attributes:
        window: time of day; None: no condition.
        below_bytes_per_s: producers write less than this to the whole cluster; None: no condition.
    """

    window: DailyWindow | None = None
    below_bytes_per_s: float | None = None

    def holds(self, at_s: float, write_bytes_per_s: float | None) -> bool:
        """Return whether it is quiet; a write rate that is not known is not.

        Args:
            at_s: now, epoch seconds.
            write_bytes_per_s: what producers write to the whole cluster; None: unknown.
        """
        if self.window is None and self.below_bytes_per_s is None:
            return True
        if self.window is not None and self.window.holds(at_s):
            return True
        return self.is_quiet(write_bytes_per_s)

    def is_quiet(self, write_bytes_per_s: float | None) -> bool:
        """Return whether little enough is written, whatever the time."""
        if self.below_bytes_per_s is None or write_bytes_per_s is None:
            return False
        return write_bytes_per_s < self.below_bytes_per_s
