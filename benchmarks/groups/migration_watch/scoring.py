"""How right forecasts of switches and alerts on readers are."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class SwitchForecast:
    """A forecast of a switch.

    Attributes:
        at_s: time at which it was made, seconds.
        eta_s: seconds until the switch, as forecast.
    """

    at_s: float
    eta_s: float

    def error_ratio(self, switched_s: float) -> float:
        """Return the error of the time until the switch, divided by that time.

        Args:
            switched_s: time of the switch, seconds.

        Raises:
            ValueError: the switch was not later than the forecast.
        """
        left_s = switched_s - self.at_s
        if left_s <= 0:
            raise ValueError("a forecast is made before the switch")
        return abs(self.eta_s - left_s) / left_s


def forecast_at(forecasts: Iterable[SwitchForecast], at_s: float) -> SwitchForecast | None:
    """Return the forecast whose time is nearest to a time, seconds; None without any."""
    return min(forecasts, key=lambda one: abs(one.at_s - at_s), default=None)


def overtaken_at(readings: Sequence[tuple[float, int, int]], positions: Sequence[tuple[float, int]]) -> float | None:
    """Return when a reader lost its first record to retention: the log start was beyond its offset.

    Args:
        readings: time in seconds, log start and log end of each reading of the log, in order of time.
        positions: time in seconds and committed offset of each commit, in order of time.

    Returns:
        Seconds; None if it lost none.
    """
    committed = iter(positions)
    after = next(committed, None)
    offset: int | None = None
    for at_s, start, _ in readings:
        while after is not None and after[0] <= at_s:
            offset, after = after[1], next(committed, None)
        if offset is not None and start > offset:
            return at_s
    return None


@dataclass(frozen=True)
class ReaderScore:
    """How right the alerts on readers are.

    Attributes:
        precision: share of the named groups that lost records; 1 if none was named.
        recall: share of the groups that lost records that were named before they did; 1 if none lost any.
        notice_s_min: shortest time from naming to the first loss, over the groups that were named in time, seconds;
            None without one.
    """

    precision: float
    recall: float
    notice_s_min: float | None


def reader_score(named_s: Mapping[str, float], lost_s: Mapping[str, float]) -> ReaderScore:
    """Return how right alerts are.

    Args:
        named_s: time at which an alert first named a group, seconds, by group.
        lost_s: time at which a group lost its first record, seconds, by group.
    """
    in_time = {group: lost_s[group] - at_s for group, at_s in named_s.items() if at_s < lost_s.get(group, at_s)}
    return ReaderScore(
        _share(named_s.keys() & lost_s.keys(), named_s), _share(in_time, lost_s), min(in_time.values(), default=None)
    )


def _share(part: Collection[str], whole: Collection[str]) -> float:
    return len(part) / len(whole) if whole else 1.0
