"""Which throttle puts a move right: the smallest that is enough, a margin, a deadline, a capacity."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

from planning.finish.finish_time import Earlier, throttle_for
from planning.throttles.load import ThrottleLoad

# Kafka keeps rates below this inaccurately: its window is of whole seconds, and a fetch brings a megabyte.
ACCURATE_BYTES_PER_S = 1_000_000


@dataclass(frozen=True)
class ThrottlePolicy:
    """What the operator asks of a recommendation.

    Attributes:
        margin_ratio: the throttle is the smallest that is enough times this.
        finish_within_s: wished length of the rest of the move; None: no wish.
        capacity_bytes_per_s: most that a broker can carry; None: not known.
    """

    margin_ratio: float = 1.2
    finish_within_s: float | None = None
    capacity_bytes_per_s: float | None = None

    @property
    def most_bytes_per_s(self) -> float:
        """Return the most that a broker can carry in whole bytes; infinite: not known."""
        return math.inf if self.capacity_bytes_per_s is None else math.floor(self.capacity_bytes_per_s)

    def enough(self, smallest_bytes_per_s: float) -> float:
        """Return the rate that exceeds another by the margin, whatever a broker can carry."""
        # Rates are whole bytes, and one that only equals what is required does not catch up.
        above = max(smallest_bytes_per_s * self.margin_ratio, math.floor(smallest_bytes_per_s) + 1)
        return max(above, ACCURATE_BYTES_PER_S)

    def above(self, smallest_bytes_per_s: float) -> int | None:
        """Return the throttle that exceeds a rate, by the margin if a broker carries that; None: it carries no more."""
        if self.most_bytes_per_s <= smallest_bytes_per_s:
            return None
        return math.ceil(min(self.enough(smallest_bytes_per_s), self.most_bytes_per_s))


@dataclass(frozen=True)
class ThrottleRecommendation:
    """The throttle that puts a move right.

    Attributes:
        throttle_bytes_per_s: one rate that is enough on every broker; None: none would do, or nothing is known.
        smallest_bytes_per_s: the rate that must be exceeded; None: unknown.
        misses_deadline: no throttle that a broker can carry finishes as wished.
        below_margin: what a broker can carry leaves less than the margin.
        unknown: (broker, role) pairs whose need is not known, which forbids a recommendation.
    """

    throttle_bytes_per_s: int | None
    smallest_bytes_per_s: float | None
    misses_deadline: bool = False
    below_margin: bool = False
    unknown: tuple[tuple[int, str], ...] = ()


def recommend(
    throttle_loads: Sequence[ThrottleLoad], wish: ThrottlePolicy, earlier: Earlier = ()
) -> ThrottleRecommendation | None:
    """Return the throttle that lets every limited replica catch up, or None if no replica is limited.

    A broker that has no rate holds nobody back, and gets none by a throttle that is only raised. One whose need is
    unknown forbids a number: too low a throttle would pass for enough.

    Args:
        throttle_loads: of one cluster in one tick.
        wish: margin, deadline and capacity.
        earlier: ticks before, youngest first: age in seconds and demands; a deadline is kept the better for them.
    """
    rated = [d for d in throttle_loads if d.throttle_bytes_per_s is not None or not d.throttle_known]
    limited = [d for d in rated if d.limited_replicas]
    if not limited:
        return None
    unknown = tuple((d.broker, d.role.value) for d in limited if d.required_bytes_per_s is None)
    if unknown:
        return ThrottleRecommendation(None, None, unknown=unknown)
    smallest = max(_required(d) for d in limited)
    capacity, enough = wish.most_bytes_per_s, wish.enough(smallest)
    if capacity <= smallest:
        return ThrottleRecommendation(None, smallest)
    in_time = _for_deadline(limited, wish, earlier)
    # A wish that no throttle grants must not ask for an endless one.
    wanted = max(enough, in_time) if math.isfinite(in_time) else enough
    return ThrottleRecommendation(
        math.ceil(min(wanted, capacity)),
        smallest,
        misses_deadline=math.isinf(in_time) or in_time > capacity,
        below_margin=enough > capacity,
    )


def _for_deadline(limited: Sequence[ThrottleLoad], wish: ThrottlePolicy, earlier: Earlier) -> float:
    """Return what the deadline asks in bytes per second; 0 without one, or where the rest is not known."""
    if wish.finish_within_s is None or any(d.remaining_bytes is None for d in limited):
        return 0.0
    return throttle_for(limited, wish.finish_within_s, earlier)


def _required(demand: ThrottleLoad) -> float:
    assert demand.required_bytes_per_s is not None, "advise() passes known sides only"
    return demand.required_bytes_per_s
