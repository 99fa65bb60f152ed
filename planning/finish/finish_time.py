"""Time until out-of-sync replicas catch up under a throttle, and the throttle needed for a deadline."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from headroom.planning.finish.copies import CopyStream, QuotaEndpoint
from headroom.planning.finish.copies_under_way import copies_between
from headroom.planning.finish.flow import Flow
from headroom.planning.finish.quota_state import Guess, at_quantile, guesses, guesses_at_start, steady_bytes_per_s
from headroom.planning.finish.simulation import Conditions, Simulation
from headroom.planning.finish.unused_quota import end_bounds
from headroom.planning.finish.write_rates import at_rate, forecast
from headroom.planning.quotas.load import ThrottleLoad
from headroom.schemas.keys import BrokerRole, Role

# Time from one burst of a throttled copy to the next: until its sample leaves the quota window.
QUOTA_CYCLE_S = 11.6
# Shortest time from a tick until the throttle recommended by its alert is in force.
APPLY_S = 3.0
# Time from the last byte to the end of the reassignment: the ISR grows, and the controller drops removed replicas.
# On local brokers it took 0 to 0.3 s in ten moves, in the median 0.02 s.
COMPLETE_S = 0.1

# Assumptions on what brokers do not report, one per scenario: an odd number, so that there is a median. The first
# scenario is the most common one.
_BATCHES_BYTES = (16e3, 4e3, 32e3, 8e3, 64e3, 16e3, 24e3)
_BURSTS_BYTES_PER_S = (60e6, 120e6, 40e6, 60e6, 90e6, 30e6, 60e6)
_RETRY_RATIOS = (0.5, 0.2, 1.0, 0.5, 0.2, 0.5, 1.0)
_QUANTILES = (3, 0, 5, 2, 6, 1, 4)
# Write rates, in standard deviations from the forecast.
_WRITES = (0.0, 0.7, -0.7, -0.3, 0.3, 1.2, -1.2)
SCENARIOS = len(_QUANTILES)
# Simulated time, and maximum events in total and per scenario. The rest is computed as a steady flow.
_SIMULATED_S, _MOST_EVENTS, _EVENTS_EACH = 600.0, 24_000, 12_000
# With more brokers and roles, fewer quota states are tried, because their differences even out.
_FEW_BROKER_ROLES = 6
# Elapsed part of a sample at the oldest tick, and times of copies between two ticks, each 0 to 1.
_PHASES, _COPY_TIMES = (0.1, 0.3, 0.5, 0.7, 0.9), (0.25, 0.75)
# Extension of the range of several scenarios on both ends: for delays of machines, and for rates known to some percent.
# The last one is the range around a single scenario, as a ratio.
_ERROR_S, _ERROR_RATIO, _SINGLE_RATIO = 1.0, 0.02, 0.1
# Precision of the throttle for a deadline, and its maximum as a multiple of the required rate.
_NEAR_RATIO, _MOST_TIMES = 1.01, 1e6
# Largest step of the search for that throttle, once the first scenario alone was in time too early.
_LARGEST_STEP = 1.1

# Earlier ticks, youngest first: age in seconds, and loads of that tick.
Earlier = Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]
# Rates of a broker and role until the change of the throttle and from then on; None: no limit.
Rates = Callable[[ThrottleLoad], tuple[float | None, float | None]]


@dataclass(frozen=True)
class Finish:
    """Time from the change of a throttle to the end of the move, in seconds.

    Attributes:
        low_s: earliest end, given the data of the ticks.
        middle_s: expected end: the median of the scenarios.
        high_s: latest end.
    """

    low_s: float
    middle_s: float
    high_s: float


def finish(
    throttle_loads: Sequence[ThrottleLoad],
    throttle_bytes_per_s: float,
    earlier: Earlier = (),
    applied_s: float = APPLY_S,
) -> Finish | None:
    """Return the time from the change of the throttle to the end of all copies; None if never, or unknown.

    Args:
        throttle_loads: brokers and roles of one tick that limit replicas, with known required traffic.
        throttle_bytes_per_s: the new rate, in bytes per second. It applies where a rate is in force and not higher.
        earlier: earlier ticks, which show the current state of the quotas.
        applied_s: time from the tick to the change, in seconds.
    """
    if any(d.remaining_bytes is None for d in throttle_loads):
        return None
    return _Scenarios(throttle_loads, earlier).finish(_raised_to(throttle_bytes_per_s), applied_s)


def planned_finish(
    throttle_loads: Sequence[ThrottleLoad],
    rate_of: Callable[[ThrottleLoad], float],
    most: int = SCENARIOS,
    most_events: int = _EVENTS_EACH,
) -> Finish | None:
    """Return the time from the start of a planned move to the end of all its copies; None if never, or unknown.

    Its throttle is in force from the start, on every broker, and its quotas have counted nothing for a window.

    Args:
        throttle_loads: brokers and roles of the move that limit replicas, with known required traffic; without
            ``used_bytes_per_s`` if their quota has counted nothing since the start of the broker.
        rate_of: rate of a broker and role, in bytes per second.
        most: maximum number of scenarios.
        most_events: maximum number of events of each; the rest is computed as a steady flow.
    """
    if any(d.remaining_bytes is None for d in throttle_loads):
        return None
    states = {d.broker_role: guesses_at_start(d) for d in throttle_loads}
    return _Scenarios(throttle_loads, (), states).finish(lambda d: (rate_of(d), rate_of(d)), 0.0, most, most_events)


def throttle_for(
    throttle_loads: Sequence[ThrottleLoad],
    within_s: float,
    earlier: Earlier = (),
    most_bytes_per_s: float = math.inf,
) -> float:
    """Return a throttle in bytes per second that ends the copies in time, close to the lowest such rate.

    Args:
        throttle_loads: brokers and roles of one tick that limit replicas, with known required traffic.
        within_s: deadline in seconds, compared with the expected end. Infinity is returned if no throttle meets it, or
            if remaining bytes are unknown.
        earlier: earlier ticks.
        most_bytes_per_s: highest throttle that may be needed, bytes per second: higher ones are not tried.

    Raises:
        ValueError: ``within_s`` is not positive.
    """
    if within_s <= 0 or math.isnan(within_s):
        raise ValueError(f"within_s must be positive, not {within_s}")
    if any(d.remaining_bytes is None for d in throttle_loads):
        return math.inf
    scenarios = _Scenarios(throttle_loads, earlier)
    return lowest_in_time(
        throttle_loads,
        within_s,
        lambda rate, most: scenarios.finish(_raised_to(rate), APPLY_S, most),
        most_bytes_per_s,
    )


def lowest_in_time(
    throttle_loads: Sequence[ThrottleLoad],
    within_s: float,
    finish_at: Callable[[float, int], Finish | None],
    most_bytes_per_s: float = math.inf,
) -> float:
    """Return a throttle in bytes per second that ends the copies in time, close to the lowest such rate.

    Args:
        throttle_loads: brokers and roles that limit replicas, with known required traffic and remaining bytes.
        within_s: deadline in seconds. Infinity is returned if no throttle meets it.
        finish_at: returns the finish under a throttle, by a maximum number of scenarios.
        most_bytes_per_s: highest throttle that may be needed, bytes per second: higher ones are not tried.
    """

    def in_time(throttle: float, most: int = SCENARIOS) -> bool:
        finish = finish_at(throttle, most)
        return finish is not None and finish.middle_s <= within_s

    low = max((d.required_bytes_per_s or 0.0 for d in throttle_loads), default=0.0)
    means = [(d.required_bytes_per_s or 0.0) + (d.remaining_bytes or 0) / within_s for d in throttle_loads]
    highest = min(max(low, 1.0) * _MOST_TIMES, most_bytes_per_s)
    high = min(max(low * _NEAR_RATIO, max(means, default=0.0), 1.0), highest)
    # The first scenario alone gives a fast estimate; the median of all scenarios decides.
    while not in_time(high, 1):
        if high >= highest:
            return math.inf
        low, high = high, min(2 * high, highest)
    while high > low * _NEAR_RATIO:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if in_time(middle, 1) else (middle, high)
    if in_time(high):
        return high
    # Before the search, which would try every rate for one that does not exist.
    if not in_time(highest):
        return math.inf
    step = _NEAR_RATIO**2
    while high < highest and not in_time(high):
        high, step = min(high * step, highest), min(step**2, _LARGEST_STEP)
    return high


def applied_rate(load: ThrottleLoad, throttle_bytes_per_s: float) -> float | None:
    """Return the rate of a broker and role after a throttle is applied: a higher rate stays, and no rate stays none.

    Args:
        load: load of the broker and role.
        throttle_bytes_per_s: applied throttle.
    """
    own = load.throttle_bytes_per_s
    return None if own is None else max(own, throttle_bytes_per_s)


def copied_s(
    copies: Sequence[CopyStream], applied_s: float, conditions: Conditions, most_events: int
) -> tuple[float | None, int]:
    """Return the seconds until all is copied (None if never), and the number of simulated events.

    Args:
        copies: copy streams; the simulation changes them and their quotas.
        applied_s: seconds from now until the rates change.
        conditions: assumptions of the simulation.
        most_events: maximum number of events; after that, the rest is computed as a flow.
    """
    simulation = Simulation(copies, applied_s, conditions, most_events)
    left: list[tuple[int, float]] = []
    for part in (0.5, 1.0):
        until_s = applied_s + part * _SIMULATED_S
        if simulation.run(until_s) is not None:
            return simulation.ended_s, simulation.events
        until_s = until_s if simulation.events < most_events else simulation.at_s
        left.append((len(simulation.open), simulation.left_bytes(until_s)))
    if simulation.events < most_events and left[1] >= left[0]:
        return None, simulation.events
    return Flow(simulation.open, until_s, conditions.seed).run(), simulation.events


class _Scenarios:
    """Possible courses of a move, under different assumptions.

    Args:
        throttle_loads: brokers and roles that limit replicas, with known remaining bytes.
        earlier: earlier ticks.
        states: possible states of each quota; estimated from the ticks if None.
    """

    def __init__(
        self,
        throttle_loads: Sequence[ThrottleLoad],
        earlier: Earlier,
        states: Mapping[BrokerRole, list[Guess]] | None = None,
    ) -> None:
        rates = forecast(throttle_loads, earlier)
        self._loads = [[at_rate(d, rates.ratio + rates.spread * z) for d in throttle_loads] for z in _WRITES]
        known = [d.batch_bytes for d in throttle_loads if d.batch_bytes is not None]
        self._batches_bytes = [fmean(known)] * SCENARIOS if known else _BATCHES_BYTES
        few = len(throttle_loads) <= _FEW_BROKER_ROLES
        phases, copy_times = (_PHASES, _COPY_TIMES) if few else (_PHASES[2:3], _COPY_TIMES[:1])
        self._states: Mapping[BrokerRole, list[Guess]] = states or {
            d.broker_role: guesses(d, _earlier_loads(d, earlier), phases, copy_times) for d in throttle_loads
        }

    def finish(
        self, rates: Rates, applied_s: float, most: int = SCENARIOS, most_events: int = _EVENTS_EACH
    ) -> Finish | None:
        """Return the time to the end of all copies; None if they never end in one of the scenarios.

        Args:
            rates: rates of each broker and role.
            applied_s: seconds from now until the later ones are applied.
            most: maximum number of scenarios.
            most_events: maximum number of simulated events of each.
        """
        if not any(d.remaining_bytes for d in self._loads[0]):
            return Finish(0.0, 0.0, 0.0)
        ends_s: list[float] = []
        latest_s: list[float] = []
        events = 0
        # Long simulations have many copies, whose random effects even out, so one scenario is enough.
        while not ends_s or (len(ends_s) < most and (len(ends_s) + 2) * events <= _MOST_EVENTS):
            for _ in range(2 if ends_s else 1):
                number = len(ends_s)
                copies = self._copies(number, rates)
                bounds = end_bounds(copies, applied_s)
                conditions = Conditions(
                    self._batches_bytes[number], _BURSTS_BYTES_PER_S[number], _RETRY_RATIOS[number], seed=number
                )
                seconds, events = copied_s(copies, applied_s, conditions, most_events)
                if seconds is None:
                    return None
                ended_s = bounds.within(max(0.0, seconds - applied_s), self._phase(number))
                ends_s.append(ended_s + COMPLETE_S)
                latest_s.append(bounds.latest_s(ended_s) + COMPLETE_S)
        return _range(ends_s, latest_s)

    @staticmethod
    def _phase(number: int) -> float:
        """Return the assumed part of a quota window that has passed, 0 to 1."""
        return (_QUANTILES[number] + 0.5) / SCENARIOS

    def _copies(self, number: int, rates: Rates) -> list[CopyStream]:
        """Return the copy streams of one scenario, with every quota in the state assumed there."""
        quantile = self._phase(number)
        ends = {}
        throttle_loads = self._loads[number]
        for d in throttle_loads:
            # The quota states of leaders and of destinations are independent, so they use different quantiles.
            window = at_quantile(self._states[d.broker_role], quantile if d.role is Role.LEADER else 3 * quantile % 1)
            in_sync = steady_bytes_per_s(d.role, d.in_sync_bytes_per_s or 0.0)
            ends[d.broker_role] = QuotaEndpoint(window, in_sync, *rates(d))
        return copies_between(throttle_loads, ends)


def _raised_to(throttle_bytes_per_s: float) -> Rates:
    return lambda load: (load.throttle_bytes_per_s, applied_rate(load, throttle_bytes_per_s))


def _range(seconds: Sequence[float], latest_s: Sequence[float]) -> Finish:
    """Return the range of the scenarios, extended by the error of every simulation.

    Args:
        seconds: end of the copies in each scenario.
        latest_s: latest end of each, if the phase of its quota windows is another one.
    """
    ratio = _ERROR_RATIO if len(seconds) > 1 else _SINGLE_RATIO
    low_s, high_s = min(seconds) * (1 - ratio) - _ERROR_S, max(latest_s) * (1 + ratio) + _ERROR_S
    return Finish(max(0.0, low_s), median(seconds), high_s)


def _earlier_loads(load: ThrottleLoad, earlier: Earlier) -> list[tuple[float, ThrottleLoad]]:
    """Return the loads of the same broker and role in earlier ticks, with their age in seconds."""
    own = load.broker_role
    return [(age_s, throttle_loads[own]) for age_s, throttle_loads in earlier if own in throttle_loads]
