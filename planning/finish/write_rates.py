"""How far write rates of one tick may be from those of the time to come."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from planning.throttles.load import BrokerRole, ThrottleLoad

# Rates are never better known than that, as a ratio, and a cluster in which they vary more is not at rest.
_LEAST_SPREAD, _MOST_SPREAD = 0.003, 0.2
# That part of what single ticks vary by lasts as long as a move.
_LASTING = 0.5


@dataclass(frozen=True)
class Forecast:
    """Write rates of the time to come against those of a tick.

    Attributes:
        ratio: as expected.
        spread: standard deviation, as a ratio.
    """

    ratio: float
    spread: float


def forecast(
    throttle_loads: Sequence[ThrottleLoad], earlier: Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]
) -> Forecast:
    """Return how write rates are expected to go on, by those of the last ticks: one tick may be a peak or a lull.

    Args:
        throttle_loads: brokers and roles of one tick.
        earlier: ticks before, youngest first: age in seconds, and the demands of that tick.
    """
    known = [found for d in throttle_loads if len(found := _comparable(d, earlier)) > 1]
    total = sum(found[0] for found in known)
    if not total:
        return Forecast(1.0, _LEAST_SPREAD)
    ratio = sum(fmean(found) for found in known) / total
    spread = sum(pstdev(found) for found in known) / total
    return Forecast(ratio, min(max(_LASTING * spread, _LEAST_SPREAD), _MOST_SPREAD))


def _comparable(
    demand: ThrottleLoad, earlier: Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]
) -> list[float]:
    """Return what is written to a side's out-of-sync replicas, now first, in ticks in which they were the same ones.

    In-sync traffic would not compare: after a leader switch the same writes are sent by another broker.
    """
    side = (demand.broker, demand.role)
    found = [demand.behind_bytes_per_s]
    for _, throttle_loads in earlier:
        before = throttle_loads.get(side)
        if before is None or before.limited_replicas != demand.limited_replicas:
            break
        if before.required_bytes_per_s is not None and before.in_sync_bytes_per_s is not None:
            found.append(before.behind_bytes_per_s)
    return found


def at_rate(demand: ThrottleLoad, ratio: float) -> ThrottleLoad:
    """Return what a broker and role has to carry if everything is written that many times as fast.

    Args:
        demand: broker and role.
        ratio: times its write rates.
    """

    def times(bytes_per_s: float | None) -> float | None:
        return None if bytes_per_s is None else bytes_per_s * ratio

    return replace(
        demand,
        in_sync_bytes_per_s=times(demand.in_sync_bytes_per_s),
        required_bytes_per_s=times(demand.required_bytes_per_s),
        catching_up=tuple(replace(r, write_bytes_per_s=r.write_bytes_per_s * ratio) for r in demand.catching_up),
        sources=tuple(
            replace(
                s,
                write_bytes_per_s=times(s.write_bytes_per_s),
                leaving_bytes_per_s=s.leaving_bytes_per_s * ratio,
                leading_bytes_per_s=s.leading_bytes_per_s * ratio,
            )
            for s in demand.sources
        ),
    )
