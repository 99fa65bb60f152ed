"""How long out-of-sync replicas take to catch up under a throttle, and the throttle that is enough for a deadline."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean, median

from planning.finish.copies import CopyStream, QuotaEndpoint
from planning.finish.copies_under_way import copies_between
from planning.finish.flow import Flow
from planning.finish.quota_state import Guess, at_quantile, guesses, steady_bytes_per_s
from planning.finish.simulation import Conditions, Simulation
from planning.finish.write_rates import at_rate, forecast
from planning.throttles.load import BrokerRole, ThrottleLoad
from schemas.alerts import Role

# From one burst of a throttled copy to the next: until its sample leaves the window.
QUOTA_CYCLE_S = 11.6
# From a tick to the throttle that its alert recommends being in force, at the earliest.
APPLY_S = 3.0
# From the last byte to the end of the reassignment: the ISR grows, the controller drops the replicas that leave.
COMPLETE_S = 0.5

# What brokers do not report is assumed in so many ways, an odd number so that one is in the middle; the first is the
# usual one.
_BATCHES_BYTES = (16e3, 4e3, 32e3, 8e3, 64e3, 16e3, 24e3)
_BURSTS_BYTES_PER_S = (60e6, 120e6, 40e6, 60e6, 90e6, 30e6, 60e6)
_RETRY_RATIOS = (0.5, 0.2, 1.0, 0.5, 0.2, 0.5, 1.0)
_QUANTILES = (3, 0, 5, 2, 6, 1, 4)
# Write rates, in standard deviations from what is expected.
_WRITES = (0.0, 0.7, -0.7, -0.3, 0.3, 1.2, -1.2)
_SCENARIOS = len(_QUANTILES)
# Simulated for so long, and with so many events in all and in one scenario; the rest flows.
_SIMULATED_S, _MOST_EVENTS, _EVENTS_EACH = 600.0, 24_000, 12_000
# More brokers and roles than that are looked at less closely: they even each other out.
_FEW_SIDES = 6
# How much of a sample was over at the oldest tick, and when copies came between two ticks.
_PHASES, _PLACES = (0.1, 0.3, 0.5, 0.7, 0.9), (0.25, 0.75)
# What the range of several scenarios is wider on both ends: the delays of a machine, and rates that are known to some
# percent. And as a ratio the range around one that stands alone.
_ERROR_S, _ERROR_RATIO, _ALONE_RATIO = 1.0, 0.02, 0.1
# How near the throttle for a deadline is sought, and how many times what is required it may be.
_NEAR_RATIO, _MOST_TIMES = 1.01, 1e6

# Earlier ticks, youngest first: age in seconds, and the demands of that tick.
Earlier = Sequence[tuple[float, Mapping[BrokerRole, ThrottleLoad]]]


@dataclass(frozen=True)
class Finish:
    """When a move is done, in seconds from the change of its throttle.

    Attributes:
        low_s: at the earliest, as far as ticks show.
        middle_s: as expected, as likely too late as too early.
        high_s: at the latest.
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
    """Return when all is copied once a throttle is applied; None: never, or not known.

    Args:
        throttle_loads: brokers and roles of one tick that hold replicas back, their required traffic known.
        throttle_bytes_per_s: the rate in force from then on, where a rate is in force and it is not higher.
        earlier: ticks before, from which follows what the quotas have counted.
        applied_s: seconds from the tick until then.
    """
    if any(d.remaining_bytes is None for d in throttle_loads):
        return None
    return _Scenarios(throttle_loads, earlier).finish(throttle_bytes_per_s, applied_s)


def finish_s(
    throttle_loads: Sequence[ThrottleLoad], throttle_bytes_per_s: float, earlier: Earlier = ()
) -> float | None:
    """Return the middle of ``finish`` in seconds; None: never, or not known."""
    found = finish(throttle_loads, throttle_bytes_per_s, earlier)
    return None if found is None else found.middle_s


def throttle_for(throttle_loads: Sequence[ThrottleLoad], within_s: float, earlier: Earlier = ()) -> float:
    """Return a throttle in bytes per second that ends the copy in time, by the middle of ``finish``, nearly the least.

    Args:
        throttle_loads: brokers and roles of one tick that hold replicas back, their required traffic known.
        within_s: seconds; infinity is returned where nothing ends so soon, or it is not known what is to be copied.
        earlier: ticks before.

    Raises:
        ValueError: ``within_s`` is not positive.
    """
    if within_s <= 0 or math.isnan(within_s):
        raise ValueError(f"within_s must be positive, not {within_s}")
    if any(d.remaining_bytes is None for d in throttle_loads):
        return math.inf
    scenarios = _Scenarios(throttle_loads, earlier)

    def in_time(throttle: float, most: int = _SCENARIOS) -> bool:
        found = scenarios.finish(throttle, APPLY_S, most)
        return found is not None and found.middle_s <= within_s

    low = max((d.required_bytes_per_s or 0.0 for d in throttle_loads), default=0.0)
    means = [(d.required_bytes_per_s or 0.0) + (d.remaining_bytes or 0) / within_s for d in throttle_loads]
    high = max(low * _NEAR_RATIO, max(means, default=0.0), 1.0)
    most_bytes_per_s = max(low, 1.0) * _MOST_TIMES
    # The usual scenario alone shows where to look, the middle of all of them decides.
    while not in_time(high, 1):
        low, high = high, 2 * high
        if high > most_bytes_per_s:
            return math.inf
    while high > low * _NEAR_RATIO:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if in_time(middle, 1) else (middle, high)
    while not in_time(high):
        high *= _NEAR_RATIO**2
        if high > most_bytes_per_s:
            return math.inf
    return high


def applied_rate(demand: ThrottleLoad, throttle_bytes_per_s: float) -> float | None:
    """Return the rate of a broker and role once a throttle is applied: one that is higher stays, and none stays none.

    Args:
        demand: broker and role.
        throttle_bytes_per_s: the throttle.
    """
    own = demand.throttle_bytes_per_s
    return None if own is None else max(own, throttle_bytes_per_s)


def copied_s(
    copies: Sequence[CopyStream], applied_s: float, conditions: Conditions, most_events: int
) -> tuple[float | None, int]:
    """Return seconds from now until all is copied, None: never; and how many events that took to simulate.

    Args:
        copies: what is to be copied; they and their quotas are used up.
        applied_s: seconds from now until the rates change.
        conditions: what is assumed.
        most_events: a simulation that takes more goes on as a flow.
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
    """The ways in which a move may go on.

    Args:
        throttle_loads: brokers and roles that hold replicas back; what these still have to copy is known.
        earlier: ticks before.
    """

    def __init__(self, throttle_loads: Sequence[ThrottleLoad], earlier: Earlier) -> None:
        rates = forecast(throttle_loads, earlier)
        self._demands = [[at_rate(d, rates.ratio + rates.spread * z) for d in throttle_loads] for z in _WRITES]
        known = [d.batch_bytes for d in throttle_loads if d.batch_bytes is not None]
        self._batches_bytes = [fmean(known)] * _SCENARIOS if known else _BATCHES_BYTES
        few = len(throttle_loads) <= _FEW_SIDES
        phases, places = (_PHASES, _PLACES) if few else (_PHASES[2:3], _PLACES[:1])
        self._states: dict[BrokerRole, list[Guess]] = {
            (d.broker, d.role): guesses(d, _of_side(d, earlier), phases, places) for d in throttle_loads
        }

    def finish(self, throttle_bytes_per_s: float, applied_s: float, most: int = _SCENARIOS) -> Finish | None:
        """Return when all is copied; None: never, in one of the scenarios.

        Args:
            throttle_bytes_per_s: the throttle.
            applied_s: seconds from now until it is applied.
            most: scenarios.
        """
        if not any(d.remaining_bytes for d in self._demands[0]):
            return Finish(0.0, 0.0, 0.0)
        found: list[float | None] = []
        events = 0
        # Simulations that take long are of many copies, whose chances even each other out: one is enough.
        while not found or (len(found) < most and (len(found) + 2) * events <= _MOST_EVENTS):
            for _ in range(2 if found else 1):
                seconds, events = self._ended_s(len(found), throttle_bytes_per_s, applied_s)
                if seconds is None:
                    return None
                found.append(max(0.0, seconds - applied_s) + COMPLETE_S)
        return _range([seconds for seconds in found if seconds is not None])

    def _ended_s(self, number: int, throttle_bytes_per_s: float, applied_s: float) -> tuple[float | None, int]:
        conditions = Conditions(self._batches_bytes[number], _BURSTS_BYTES_PER_S[number], _RETRY_RATIOS[number], number)
        return copied_s(self._copies(number, throttle_bytes_per_s), applied_s, conditions, _EVENTS_EACH)

    def _copies(self, number: int, throttle_bytes_per_s: float) -> list[CopyStream]:
        """Return what is to be copied, every quota in the state that it has in one scenario."""
        quantile = (_QUANTILES[number] + 0.5) / _SCENARIOS
        ends = {}
        throttle_loads = self._demands[number]
        for d in throttle_loads:
            side = d.broker, d.role
            # The states of leaders and of destinations have nothing to do with each other.
            window = at_quantile(self._states[side], quantile if d.role is Role.LEADER else 3 * quantile % 1)
            in_sync = steady_bytes_per_s(d.role, d.in_sync_bytes_per_s or 0.0)
            rates = d.throttle_bytes_per_s, applied_rate(d, throttle_bytes_per_s)
            ends[side] = QuotaEndpoint(window, in_sync, *rates)
        return copies_between(throttle_loads, ends)


def _range(seconds: Sequence[float]) -> Finish:
    """Return what some scenarios come to, and besides what a simulation never has right."""
    ratio = _ERROR_RATIO if len(seconds) > 1 else _ALONE_RATIO
    low_s, high_s = min(seconds) * (1 - ratio) - _ERROR_S, max(seconds) * (1 + ratio) + _ERROR_S
    return Finish(max(0.0, low_s), median(seconds), high_s)


def _of_side(demand: ThrottleLoad, earlier: Earlier) -> list[tuple[float, ThrottleLoad]]:
    """Return the same broker and role in the ticks before."""
    side = (demand.broker, demand.role)
    return [(age_s, throttle_loads[side]) for age_s, throttle_loads in earlier if side in throttle_loads]
