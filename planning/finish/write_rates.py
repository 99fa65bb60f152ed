"""Forecast of write rates: their expected change and spread after a tick."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from statistics import fmean, pstdev

from headroom.planning.quotas.load import ThrottleLoad
from headroom.schemas.keys import BrokerRole, Role

# Limits of the forecast's spread, as a ratio: measurements are not more precise, and greater changes are no noise.
_LEAST_SPREAD, _MOST_SPREAD = 0.003, 0.2
# Part of the variation between ticks that lasts for a whole move.
_LASTING = 0.5
# Growth of a lag beyond what was written, which the times of readings explain: as a ratio of the writes, and in bytes.
_NOISE_RATIO, _NOISE_BYTES = 0.5, 2e6


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
    # A destination receives the same from whichever broker leads. Its copies count at their leaders too.
    destinations = [d for d in throttle_loads if d.role is Role.FOLLOWER]
    known = [rates for d in destinations or throttle_loads if len(rates := _comparable(d, earlier)) > 1]
    total = sum(rates[0] for rates in known)
    if not total:
        return Forecast(1.0, _LEAST_SPREAD)
    ratio = sum(fmean(rates) for rates in known) / total
    spread = sum(pstdev(rates) for rates in known) / total
    return Forecast(ratio, min(max(_LASTING * spread, _LEAST_SPREAD), _MOST_SPREAD))


def _comparable(load: ThrottleLoad, earlier: Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]) -> list[float]:
    """Return the write rates to the out-of-sync replicas of a broker and role, the current one first.

    Only the same replicas are comparable: one that was in sync, or had another leader, wrote at a rate of its own.
    In-sync traffic is not comparable, because after a leader switch another broker sends it.
    """
    rates, after_s, after = [load.behind_bytes_per_s], 0.0, load
    for age_s, throttle_loads in earlier:
        before = throttle_loads.get(load.broker_role)
        rate = None if before is None else _rate_of_same(load, before, after, age_s - after_s)
        if before is None or rate is None:
            break
        if before.required_bytes_per_s is not None and before.in_sync_bytes_per_s is not None:
            rates.append(rate)
        after_s, after = age_s, before
    return rates


def _rate_of_same(load: ThrottleLoad, before: ThrottleLoad, after: ThrottleLoad, between_s: float) -> float | None:
    """Return the write rate that the current out-of-sync replicas had in an earlier tick; None if not comparable.

    Args:
        load: current load of a broker and role.
        before: its load in the earlier tick.
        after: its load in the tick after that one.
        between_s: time between these two ticks, seconds.
    """
    if load.catching_up and before.catching_up:
        rates = {replica.name: replica.write_bytes_per_s for replica in before.catching_up}
        names = [replica.name for replica in load.catching_up]
        return sum(rates[name] for name in names) if rates.keys() >= set(names) else None
    if before.limited_replicas != load.limited_replicas or _has_other_replicas(before, after, between_s):
        return None
    return before.behind_bytes_per_s


def _has_other_replicas(before: ThrottleLoad, after: ThrottleLoad, between_s: float) -> bool:
    """Return whether a lag has grown by more than was written: some replicas are in sync, and a switch brought others.

    Args:
        before: load of a broker and role in the earlier of two ticks.
        after: its load in the later one.
        between_s: time between them, seconds.
    """
    if before.remaining_bytes is None or after.remaining_bytes is None:
        return False
    written = after.behind_bytes_per_s * between_s
    return after.remaining_bytes - before.remaining_bytes > (1 + _NOISE_RATIO) * written + _NOISE_BYTES


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
