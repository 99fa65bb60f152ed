"""Throttle at which a proposal is priced and carried out."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import Enum

from headroom.planning.balance.batches.batches import BalanceBatch
from headroom.planning.balance.pricing.price import batch_price, throttle_within
from headroom.planning.reassignments.cluster_state import ClusterState


class ThrottleSource(str, Enum):
    """Where a throttle comes from.

    Attributes:
        GIVEN: it was given for the proposal.
        DEADLINE: the least that meets the deadline, with the usual margin above the required rate.
        IN_FORCE: it is in force on all brokers that take part.
        CAPACITY: the replication capacity of a broker.
        RECOMMENDED: the least that survives the worst switch of one leader, with the usual margin.
    """

    GIVEN = "given"
    DEADLINE = "deadline"
    IN_FORCE = "in_force"
    CAPACITY = "capacity"
    RECOMMENDED = "recommended"


@dataclass(frozen=True)
class BalanceThrottle:
    """Throttle of a proposal.

    Attributes:
        bytes_per_s: rate on all brokers, both roles; None if nothing is copied.
        source: where it comes from.
        misses_deadline: whether no throttle, or none within the capacity, meets the deadline.
    """

    bytes_per_s: int | None
    source: ThrottleSource
    misses_deadline: bool = False


@dataclass(frozen=True)
class ThrottleRequest:
    """What decides on a throttle; None where it is not given or unknown.

    Attributes:
        given_bytes_per_s: throttle that was given.
        within_s: time in which all batches should end, seconds.
        capacity_bytes_per_s: replication traffic that a broker can carry.
    """

    given_bytes_per_s: int | None = None
    within_s: float | None = None
    capacity_bytes_per_s: float | None = None

    @property
    def most_bytes_per_s(self) -> float | None:
        """Return the rate that every batch has to fit; None if there is no limit."""
        known = [rate for rate in (self.given_bytes_per_s, self.capacity_bytes_per_s) if rate is not None]
        return min(known, default=None)


def choose_throttle(batches: Sequence[BalanceBatch], request: ThrottleRequest, state: ClusterState) -> BalanceThrottle:
    """Return the throttle of batches: given, for a deadline, in force, by the capacity, or recommended, in this order.

    Args:
        batches: batches, one after another.
        request: what decides.
        state: the cluster, with the throttles in force.

    Raises:
        HeadroomError: the size of a replica is unknown.
    """
    copying = [batch for batch in batches if batch.moves]
    capacity = math.inf if request.capacity_bytes_per_s is None else math.floor(request.capacity_bytes_per_s)
    if request.given_bytes_per_s is not None:
        rate, source = float(request.given_bytes_per_s), ThrottleSource.GIVEN
    elif request.within_s is not None:
        rate, source = throttle_within(batches, request.within_s), ThrottleSource.DEADLINE
    elif (in_force := _in_force(copying, state)) is not None:
        rate, source = float(in_force), ThrottleSource.IN_FORCE
    elif math.isfinite(capacity):
        rate, source = capacity, ThrottleSource.CAPACITY
    else:
        rate, source = 0.0, ThrottleSource.RECOMMENDED
    if not copying:
        return BalanceThrottle(None, source)
    prices = [batch_price(batch) for batch in copying]
    needed = max(price.throttle_bytes_per_s or 0.0 for price in prices)
    survives = max(price.throttle_after_switch_bytes_per_s or 0.0 for price in prices)
    if source is ThrottleSource.RECOMMENDED:
        rate = survives
    if source is not ThrottleSource.DEADLINE:
        return BalanceThrottle(math.ceil(rate), source)
    misses = rate > capacity
    wanted = min(max(needed, rate), capacity)
    return BalanceThrottle(math.ceil(wanted if math.isfinite(wanted) else survives), source, misses)


def _in_force(batches: Sequence[BalanceBatch], state: ClusterState) -> int | None:
    """Return the lowest throttle in force on the brokers that take part; None if one of them has none."""
    rates = list(_rates(batches, state))
    known = [rate for rate in rates if rate is not None]
    return min(known, default=None) if len(known) == len(rates) else None


def _rates(batches: Sequence[BalanceBatch], state: ClusterState) -> Iterator[int | None]:
    for batch in batches:
        for move in batch.moves:
            for broker in move.replicas:
                yield state.brokers[broker].leader_bytes_per_s
            yield state.brokers[move.target].follower_bytes_per_s
