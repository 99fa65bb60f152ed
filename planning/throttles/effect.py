"""Throttles that limit nothing although their rate is set: why, by the rate in force and the observed one."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from enum import Enum

from headroom.planning.throttles.recommendation import ACCURATE_BYTES_PER_S
from headroom.schemas.text.amounts import rate_text

# A rate in a wrong unit is a thousand times too high. Nothing limits the copies then, and they take some percent of it.
FAR_ABOVE_RATIO = 20
# Kafka itself exceeds a rate by some 7 %, and the observed rate covers a whole quota window.
_EXCEEDED_RATIO = 1.5


class NoEffect(str, Enum):
    """Reason why a throttle whose rate is set limits nothing, or not all.

    Attributes:
        NOT_LISTED: no throttled replica list of the role names the replicas that are copied.
        PARTLY_LISTED: the lists name only some of them.
        OVERRIDDEN: the cluster default is lower than the broker's own rate, which alone is in force.
        FAR_ABOVE: the rate is far above what is observed, as with a wrong unit.
        EXCEEDED: more is observed than the rate lets through.
    """

    NOT_LISTED = "not_listed"
    PARTLY_LISTED = "partly_listed"
    OVERRIDDEN = "overridden"
    FAR_ABOVE = "far_above_observed"
    EXCEEDED = "observed_above_rate"


@dataclass(frozen=True)
class ObservedThrottle:
    """A throttle that could hold listed copies back, with what is observed.

    Attributes:
        rate_bytes_per_s: rate in force.
        observed_bytes_per_s: traffic under it; None if not measured.
        peers: brokers at the other end of the copies. Each gets a whole response now and then, whatever the rate is.
        below_required: whether the rate is known to be too low for what it limits, so that it certainly limits it.
    """

    rate_bytes_per_s: float
    observed_bytes_per_s: float | None
    peers: int = 1
    below_required: bool = False

    @property
    def no_effect(self) -> NoEffect | None:
        """Why the throttle holds nothing back; None if it may.

        Nothing observed says nothing: the copies may not have begun, or wait for something else.
        """
        observed = self.observed_bytes_per_s
        if not observed or self.below_required:
            return None
        if self.rate_bytes_per_s >= FAR_ABOVE_RATIO * observed:
            return NoEffect.FAR_ABOVE
        # Kafka does not keep lower rates, and lets a megabyte through per response and second of the window.
        is_accurate = self.rate_bytes_per_s >= ACCURATE_BYTES_PER_S
        most = _EXCEEDED_RATIO * self.rate_bytes_per_s + ACCURATE_BYTES_PER_S * self.peers
        return NoEffect.EXCEEDED if is_accurate and observed > most else None


def none_limits(throttles: Iterable[ObservedThrottle]) -> bool:
    """Return whether none of the throttles of a move has an effect; a copy is limited at either end.

    One that is far above what is observed does no harm as long as another one limits the move.
    """
    effects = [throttle.no_effect for throttle in throttles]
    return bool(effects) and None not in effects


def rates_text(rate_bytes_per_s: float, observed_bytes_per_s: float | None, is_default: bool = False) -> str:
    """Return the rate in force and the observed one as text."""
    default = " (cluster default)" if is_default else ""
    return f"rate in force {rate_text(rate_bytes_per_s)}{default}, observed {rate_text(observed_bytes_per_s)}"


def far_above_text(rate_bytes_per_s: float, observed_bytes_per_s: float) -> str:
    """Return why a rate far above the observed one limits nothing."""
    times = rate_bytes_per_s / observed_bytes_per_s
    return f"it limits nothing, because it is {times:,.0f} times what is observed; its unit may be wrong"


EXCEEDED_TEXT = (
    "it does not hold, because more is observed than it lets through: it was lowered seconds ago, or something is "
    "copied that its quota does not count"
)
