"""Estimates and runs of reassignments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReassignSettings:
    """Estimates and runs of reassignments.

    Attributes:
        rate_hours: length of the history that estimates take write rates from, in hours.
        rate_percentile: percentile of a partition's hourly mean write rates that estimates use. 100: its busiest hour.
        window: time of day in which batches begin, such as "22:00-06:00" in UTC or "22:00-06:00 Europe/Berlin". A batch
            begins if it is expected to end in the window, or takes longer than the window. One that has begun is not
            interrupted. Empty: any time.
        quiet_below: cluster write rate below which batches begin, in bytes per second (or "50MB"). If ``window`` is set
            too, either condition is enough; None: batches begin at any rate.
        settle_s: maximum time for a change to be in force on the brokers, and for the cluster or the store to fail
            before a run gives up, in seconds.
        pause_s: wait between two batches, in seconds.
        lock_group: consumer group on the cluster by which the runs of all stores see each other; needs ``Read`` on it.
            "off": only runs of the same store see each other.
    """

    rate_hours: int = 24
    rate_percentile: float = 95.0
    window: str = ""
    quiet_below: float | None = None
    settle_s: float = 60.0
    pause_s: float = 10.0
    lock_group: str = "headroom-runs"

    def run_lock_group(self) -> str | None:
        """Return the group of the run lock; None if it is off."""
        group = self.lock_group.strip()
        return None if group in ("", "off") else group
