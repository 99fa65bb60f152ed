"""Throttle at which a proposal is priced and carried out."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

from headroom.planning.balance.batches.batches import BalanceBatch
from headroom.planning.balance.pricing.price import BatchRun
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
        network_bytes_per_s: traffic of any kind that each broker can send and receive.
    """

    given_bytes_per_s: int | None = None
    within_s: float | None = None
    capacity_bytes_per_s: float | None = None
    network_bytes_per_s: float | None = None


def choose_throttle(run: BatchRun, request: ThrottleRequest, state: ClusterState) -> BalanceThrottle:
    """Return the throttle of batches: given, for a deadline, in force, by the capacity, or recommended, in this order.

    One in force may be left over from another move: it counts only if every batch fits it, with the usual margin.

    Raises:
        HeadroomError: the size of a replica is unknown.
    """
    prices = [price for price in run.prices if price.replicas_copied]
    needed = max((price.throttle_bytes_per_s or 0.0 for price in prices), default=0.0)
    survives = max((price.throttle_after_switch_bytes_per_s or 0.0 for price in prices), default=0.0)
    in_force = _in_force(run.batches, state)
    if request.given_bytes_per_s is not None:
        chosen = BalanceThrottle(request.given_bytes_per_s, ThrottleSource.GIVEN)
    elif request.within_s is not None:
        chosen = _for_deadline(run, request, needed, survives)
    elif in_force is not None and in_force >= needed:
        chosen = BalanceThrottle(in_force, ThrottleSource.IN_FORCE)
    elif request.capacity_bytes_per_s is not None:
        chosen = BalanceThrottle(math.floor(request.capacity_bytes_per_s), ThrottleSource.CAPACITY)
    else:
        chosen = BalanceThrottle(math.ceil(survives), ThrottleSource.RECOMMENDED)
    return chosen if prices else BalanceThrottle(None, chosen.source)


def _for_deadline(run: BatchRun, request: ThrottleRequest, needed: float, survives: float) -> BalanceThrottle:
    """Return the throttle for the deadline, with the usual margin; if none meets it, the most that brokers carry.

    With less than what batches need they would never end: a broker beyond its limit may send more than that.
    """
    known = [rate for rate in (request.capacity_bytes_per_s, request.network_bytes_per_s) if rate is not None]
    most = math.floor(min(known)) if known else math.inf
    rate = throttle = run.throttle_within(request.within_s or 0.0)
    if math.isinf(rate) and math.isinf(most):
        throttle = survives
    return BalanceThrottle(
        math.ceil(max(needed, min(throttle, most))), ThrottleSource.DEADLINE, math.isinf(rate) or rate > most
    )


def _in_force(batches: Sequence[BalanceBatch], state: ClusterState) -> int | None:
    """Return the lowest throttle in force on the brokers that take part; None if one of them has none."""
    moves = [move for batch in batches for move in batch.moves]
    rates = [state.brokers[broker].leader_bytes_per_s for move in moves for broker in move.replicas]
    rates += [state.brokers[move.target].follower_bytes_per_s for move in moves]
    known = [rate for rate in rates if rate is not None]
    return min(known, default=None) if len(known) == len(rates) else None
