"""Forecast of write rates: their expected change and spread after a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from planning.throttles.load import ThrottleLoad
from schemas.keys import BrokerRole

# Limits of the forecast's spread, as a ratio: measurements are not more precise, and greater changes are no noise.
_LEAST_SPREAD, _MOST_SPREAD = 0.003, 0.2
# Part of the variation between ticks that lasts for a whole move.
_LASTING = 0.5


@dataclass(frozen=True)
class Forecast:
    """Future write rates relative to those of a tick.

    Attributes:
        ratio: expected ratio.
        spread: standard deviation, as a ratio.
    """

    ratio: float
    spread: float


def forecast(
    throttle_loads: Sequence[ThrottleLoad], earlier: Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]
) -> Forecast:
    """Return the forecast of write rates from the last ticks, because a single tick may be a peak or a lull.

    Args:
        throttle_loads: brokers and roles of one tick.
        earlier: earlier ticks, youngest first: age in seconds, and loads of that tick.
    """
    known = [found for d in throttle_loads if len(found := _comparable(d, earlier)) > 1]
    total = sum(found[0] for found in known)
    if not total:
        return Forecast(1.0, _LEAST_SPREAD)
    ratio = sum(fmean(found) for found in known) / total
    spread = sum(pstdev(found) for found in known) / total
    return Forecast(ratio, min(max(_LASTING * spread, _LEAST_SPREAD), _MOST_SPREAD))


def _comparable(load: ThrottleLoad, earlier: Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]) -> list[float]:
    """Return the write rates to the out-of-sync replicas of a broker and role, the current one first.

    Only ticks with the same number of replicas count. In-sync traffic is not comparable, because after a leader switch
    another broker sends it.
    """
    found = [load.behind_bytes_per_s]
    for _, throttle_loads in earlier:
        before = throttle_loads.get(load.broker_role)
        if before is None or before.limited_replicas != load.limited_replicas:
            break
        if before.required_bytes_per_s is not None and before.in_sync_bytes_per_s is not None:
            found.append(before.behind_bytes_per_s)
    return found


def at_rate(load: ThrottleLoad, ratio: float) -> ThrottleLoad:
    """Return the load of a broker and role with all write rates multiplied by a ratio.

    Args:
        load: load of the broker and role.
        ratio: factor of the write rates.
    """

    def times(bytes_per_s: float | None) -> float | None:
        return None if bytes_per_s is None else bytes_per_s * ratio

    return replace(
        load,
        in_sync_bytes_per_s=times(load.in_sync_bytes_per_s),
        required_bytes_per_s=times(load.required_bytes_per_s),
        catching_up=tuple(replace(r, write_bytes_per_s=r.write_bytes_per_s * ratio) for r in load.catching_up),
        sources=tuple(
            replace(
                s,
                write_bytes_per_s=times(s.write_bytes_per_s),
                leaving_bytes_per_s=s.leaving_bytes_per_s * ratio,
                leading_bytes_per_s=s.leading_bytes_per_s * ratio,
            )
            for s in load.sources
        ),
    )
