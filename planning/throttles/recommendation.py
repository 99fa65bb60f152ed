"""Recommendation of a throttle: the smallest sufficient rate, with a margin, a deadline and a capacity limit."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from headroom.planning.finish.finish_time import Earlier, throttle_for
from headroom.planning.quotas.load import ThrottleLoad
from headroom.schemas.keys import BrokerRole

# Below this rate Kafka's quotas are inaccurate: a sample covers whole seconds, and one fetch brings a megabyte.
ACCURATE_BYTES_PER_S = 1_000_000

# Loads, a deadline in seconds and the highest rate to try, to the lowest throttle that meets the deadline.
InTime = Callable[[Sequence[ThrottleLoad], float, float], float]


@dataclass(frozen=True)
class ThrottlePolicy:
    """Goals and limits of recommended throttles.

    Attributes:
        margin_ratio: factor between the smallest sufficient rate and the recommended throttle.
        finish_within_s: desired time to the end of the move, seconds; None if there is no deadline.
        capacity_bytes_per_s: maximum replication traffic of a broker; None if unknown.
    """

    margin_ratio: float = 1.2
    finish_within_s: float | None = None
    capacity_bytes_per_s: float | None = None

    @property
    def most_bytes_per_s(self) -> float:
        """Return the capacity of a broker in whole bytes per second; infinity if unknown."""
        return math.inf if self.capacity_bytes_per_s is None else math.floor(self.capacity_bytes_per_s)

    def with_margin(self, smallest_bytes_per_s: float) -> float:
        """Return a rate plus the margin, in bytes per second, without regard to the capacity."""
        # Rates are whole bytes, and a throttle that only equals the required rate does not let replicas catch up.
        rate = max(smallest_bytes_per_s * self.margin_ratio, math.floor(smallest_bytes_per_s) + 1)
        return max(rate, ACCURATE_BYTES_PER_S)

    def throttle_above(self, smallest_bytes_per_s: float) -> int | None:
        """Return a throttle that exceeds a rate, by the margin if the capacity allows it; None if the capacity is too
        low.
        """
        if self.most_bytes_per_s <= smallest_bytes_per_s:
            return None
        return math.ceil(min(self.with_margin(smallest_bytes_per_s), self.most_bytes_per_s))

    def enough_bytes_per_s(self, smallest_bytes_per_s: float, exit_ratio: float) -> float:
        """Return the throttle from which on an alert ends, in bytes per second. The recommended throttle always is one.

        Args:
            smallest_bytes_per_s: rate that a throttle has to exceed, ``ThrottleLoad.lasting_required_bytes_per_s``.
            exit_ratio: hysteresis of the alert, at most the margin.
        """
        # If a broker cannot carry the exit ratio, the recommended throttle is enough.
        return min(smallest_bytes_per_s * exit_ratio, self.throttle_above(smallest_bytes_per_s) or math.inf)

    def is_enough(self, load: ThrottleLoad, exit_ratio: float) -> bool | None:
        """Return whether a throttle is enough for the alert on it to end; None if its load is unknown.

        Args:
            load: load on the throttle.
            exit_ratio: hysteresis of the alert, at most the margin.
        """
        smallest = load.lasting_required_bytes_per_s
        if load.throttle_bytes_per_s is None or smallest is None:
            return None
        throttle = load.throttle_bytes_per_s
        return throttle > smallest and throttle >= self.enough_bytes_per_s(smallest, exit_ratio)


@dataclass(frozen=True)
class ThrottleRecommendation:
    """The recommended throttle of a move.

    Attributes:
        throttle_bytes_per_s: one rate that is sufficient on every broker; None if no rate is, or if inputs are unknown.
        smallest_bytes_per_s: the rate to exceed; None if unknown.
        misses_deadline: true if no throttle within the capacity meets the deadline.
        below_margin: true if the capacity leaves less than the margin.
        unknown: brokers and roles with an unknown load, which prevent a recommendation.
    """

    throttle_bytes_per_s: int | None
    smallest_bytes_per_s: float | None
    misses_deadline: bool = False
    below_margin: bool = False
    unknown: tuple[BrokerRole, ...] = ()


def recommend(
    throttle_loads: Sequence[ThrottleLoad],
    policy: ThrottlePolicy,
    earlier: Earlier = (),
    in_time_of: InTime | None = None,
) -> ThrottleRecommendation | None:
    """Return the throttle with which every limited replica catches up; None if no replica is limited.

    It is enough for followers on dead brokers too, once these are back (``lasting_required_bytes_per_s``).

    Brokers without a rate are ignored: they limit no replica, and raising throttles gives them no rate. A broker with
    an unknown load prevents a recommendation, because the recommended throttle could be too low for it.

    Args:
        throttle_loads: loads of one cluster in one tick.
        policy: margin, deadline and capacity.
        earlier: earlier ticks, youngest first: age in seconds and loads. They make a throttle for a deadline more
            precise.
        in_time_of: returns the throttle for a deadline in seconds, infinity if none up to a rate in bytes per second
            meets it; that of a running move if None.
    """
    rated = [d for d in throttle_loads if d.throttle_bytes_per_s is not None or not d.throttle_known]
    needing = [d for d in rated if d.needs_throttle]
    if not needing:
        return None
    unknown = tuple(d.broker_role for d in needing if d.lasting_required_bytes_per_s is None)
    if unknown:
        return ThrottleRecommendation(None, None, unknown=unknown)
    smallest = max(rate for d in needing if (rate := d.lasting_required_bytes_per_s) is not None)
    limited = [d for d in needing if d.limited_replicas]
    capacity, with_margin = policy.most_bytes_per_s, policy.with_margin(smallest)
    if capacity <= smallest:
        return ThrottleRecommendation(None, smallest)
    in_time_of = in_time_of or (lambda loads, within_s, most: throttle_for(loads, within_s, earlier, most))
    in_time = _for_deadline(limited, policy, in_time_of)
    # The capacity misses a deadline by least. Without one, it must not lead to an infinite recommendation.
    wanted = min(max(with_margin, in_time), capacity)
    return ThrottleRecommendation(
        math.ceil(wanted if math.isfinite(wanted) else with_margin),
        smallest,
        misses_deadline=math.isinf(in_time) or in_time > capacity,
        below_margin=with_margin > capacity,
    )


def _for_deadline(limited: Sequence[ThrottleLoad], policy: ThrottlePolicy, in_time_of: InTime) -> float:
    """Return the throttle for the deadline in bytes per second; 0 without a deadline, or if remaining bytes are
    unknown.
    """
    if policy.finish_within_s is None or any(d.remaining_bytes is None for d in limited):
        return 0.0
    return in_time_of(limited, policy.finish_within_s, policy.most_bytes_per_s)
