"""Estimates and runs of reassignments."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class ReassignSettings:
    """Estimates and runs of reassignments.

    Attributes:
        rate_hours: length of the history that estimates take write rates from, in hours.
        rate_percentile: percentile of a partition's hourly mean write rates that estimates use. 100: its busiest hour.
    """

    rate_hours: int = 24
    rate_percentile: float = 95.0
