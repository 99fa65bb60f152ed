"""Conditions under which elections run: a time of day, or a low write rate."""

from __future__ import annotations

from dataclasses import dataclass
from datetime import date, datetime, time, timedelta, tzinfo

from headroom.schemas.quantities import parse_window


@dataclass(frozen=True)
class DailyWindow:
    """A daily time window in a time zone.

    Attributes:
        begins: start, inclusive.
        ends: end, exclusive; before ``begins`` it is on the next day.
        zone: time zone; the window follows daylight saving time.
    """

    begins: time
    ends: time
    zone: tzinfo

    @classmethod
    def of(cls, text: str) -> DailyWindow:
        """Return the window of a text such as ``22:00-02:00 Europe/Berlin``. Raises QuantityError."""
        return cls(*parse_window(text))

    def contains(self, at_s: float) -> bool:
        """Return whether a moment, in epoch seconds, is in the window."""
        now = datetime.fromtimestamp(at_s, self.zone).time()
        if self.begins < self.ends:
            return self.begins <= now < self.ends
        return now >= self.begins or now < self.ends

    def left_s(self, at_s: float) -> float:
        """Return the seconds from a moment, in epoch seconds, until the window ends next."""
        now = datetime.fromtimestamp(at_s, self.zone)
        day = now.date() if now.time() < self.ends else now.date() + timedelta(days=1)
        return datetime.combine(day, self.ends, self.zone).timestamp() - at_s

    def ends_too_early(self, at_s: float, lasts_s: float) -> bool:
        """Return whether what begins at a moment in the window, in epoch seconds, would end after the window.

        What is longer than the window may begin at any time in it.

        Args:
            at_s: a moment in the window, epoch seconds.
            lasts_s: how long it takes, seconds.
        """
        return self.left_s(at_s) < lasts_s <= self.length_s()

    def length_s(self) -> float:
        """Return its length in seconds, on a day without a change of the clock."""
        day = date(2000, 1, 1)
        length = datetime.combine(day, self.ends) - datetime.combine(day, self.begins)
        return (length % timedelta(days=1)).total_seconds()


@dataclass(frozen=True)
class QuietPolicy:
    """Conditions of elections. Either one is enough; without conditions, elections always run.

    Attributes:
        window: time of day; None if there is no such condition.
        below_bytes_per_s: write rate of the cluster below which elections run; None if there is no such condition.
    """

    window: DailyWindow | None = None
    below_bytes_per_s: float | None = None

    def allows(self, at_s: float, write_bytes_per_s: float | None) -> bool:
        """Return whether elections may run; an unknown write rate does not meet the condition.

        Args:
            at_s: now, epoch seconds.
            write_bytes_per_s: write rate of the whole cluster; None if unknown.
        """
        if self.window is None and self.below_bytes_per_s is None:
            return True
        if self.window is not None and self.window.contains(at_s):
            return True
        return self.is_quiet(write_bytes_per_s)

    def is_quiet(self, write_bytes_per_s: float | None) -> bool:
        """Return whether the write rate is low enough, whatever the time."""
        if self.below_bytes_per_s is None or write_bytes_per_s is None:
            return False
        return write_bytes_per_s < self.below_bytes_per_s
