"""Inputs of rules from ``gold/broker_load``, from estimates of lost capacity, and from proposals of load balance."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk

# Resources whose bands raise an alert. Counts alone do no harm: brokers may have more replicas at the same load.
LOADS = ("network_in", "network_out", "requests", "disk")


@dataclass(frozen=True)
class BrokerLoadState:
    """Load of one broker in one resource: one row of ``gold/broker_load``, whose table describes the columns."""

    tick_ms: int
    broker: int
    resource: str
    alive: bool = True
    load: float | None = None
    unknown_reason: str | None = None
    capacity: float | None = None
    load_limit: float | None = None
    mean: float | None = None
    lower: float | None = None
    upper: float | None = None
    in_band: bool | None = None
    band_score: float | None = None
    limit_score: float | None = None
    flush_p999_s: float | None = None
    slow_rounds: int | None = None

    @property
    def is_above_band(self) -> bool:
        """Return whether the load is known and above its band."""
        return self.in_band is False and self.load is not None and self.upper is not None and self.load > self.upper

    @property
    def is_above_limit(self) -> bool:
        """Return whether the load is known and above its limit."""
        return self.load is not None and self.load_limit is not None and self.load > self.load_limit

    @property
    def is_hot(self) -> bool:
        """Return whether the load is above its band and its limit."""
        return self.is_above_band and self.is_above_limit

    def is_near_limit(self, exit_ratio: float) -> bool:
        """Return whether a load that was above its limit is not well below it yet."""
        return self.load is not None and self.load_limit is not None and self.load > self.load_limit / exit_ratio

    def is_near_edge(self, exit_ratio: float) -> bool:
        """Return whether a load that was out of its band is outside, or not well inside yet.

        Args:
            exit_ratio: the distance of the load from the mean must be the distance of the edge divided by this.
        """
        load, mean, lower, upper = self.load, self.mean, self.lower, self.upper
        if self.in_band is None or load is None or mean is None or lower is None or upper is None:
            return False
        if self.in_band and not lower <= load <= upper:
            # So small that it counts as in band.
            return False
        return not mean - (mean - lower) / exit_ratio <= load <= mean + (upper - mean) / exit_ratio


@dataclass(frozen=True)
class MinuteLoads:
    """Loads of all brokers of a cluster in one minute.

    Attributes:
        tick_ms: tick of the minute, epoch milliseconds.
        states: one per broker and resource.
    """

    tick_ms: int
    states: Sequence[BrokerLoadState] = ()

    # Computed once a minute, and not in every tick.
    @cached_property
    def by_broker(self) -> Mapping[int, Sequence[BrokerLoadState]]:
        """States by broker, in the order of brokers."""
        states_by_broker: dict[int, list[BrokerLoadState]] = defaultdict(list)
        for state in self.states:
            states_by_broker[state.broker].append(state)
        return dict(sorted(states_by_broker.items()))

    @cached_property
    def uneven(self) -> Sequence[int]:
        """Brokers with a load out of its band, or above its band and limit. One proposal brings them back."""
        return sorted({s.broker for s in self.states if s.is_hot or (s.resource in LOADS and s.in_band is False)})

    @cached_property
    def is_broker_down(self) -> bool:
        """Whether a broker is down, so that others carry its load."""
        return any(not state.alive for state in self.states)

    @cached_property
    def slow_rounds(self) -> Mapping[int, int]:
        """Slow rounds by broker, of the brokers whose flush times are known; 0 for the others."""
        return {broker: max(s.slow_rounds or 0 for s in states) for broker, states in self.by_broker.items()}


@dataclass(frozen=True)
class BalanceAdvice:
    """First actions of a proposal that bring brokers into their bands.

    Attributes:
        proposal_id: id of the proposal, as in ``gold/balance_proposal``.
        read_ms: when the cluster was read, epoch milliseconds.
        brokers: ids of the brokers.
        reached: whether the actions bring all of them there.
        actions: number of the actions.
        elections: number of these that copy nothing.
        copied_bytes: bytes that they copy.
        duration_s: time of their batches, seconds; None if one never ends.
        gain_ratio: share of the load outside of bands that they remove, 0 to 1.
        promised: load of each broker and resource after them, in the unit of the resource; unknown ones are missing.
    """

    proposal_id: str
    read_ms: int
    brokers: frozenset[int]
    reached: bool
    actions: int
    elections: int
    copied_bytes: float
    duration_s: float | None
    gain_ratio: float = 0.0
    promised: Mapping[tuple[int, str], float] = field(default_factory=dict)


@dataclass(frozen=True)
class BalanceInputs:
    """What rules on the load of brokers evaluate.

    Attributes:
        brokers: loads of the last minute; None if they are unknown or stale.
        risks: brokers that a loss takes over their limit; None if unknown or stale.
        advice: last proposal; None if there is none.
    """

    brokers: MinuteLoads | None = field(default_factory=lambda: MinuteLoads(0))
    risks: Sequence[CapacityRisk] | None = ()
    advice: BalanceAdvice | None = None
