"""Price of batches: bytes, the throttle that they need, their duration, and the risk in a leader switch."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from types import MappingProxyType

from headroom.planning.balance.batches.batches import BalanceBatch, ReplicaMove
from headroom.planning.finish.finish_time import COMPLETE_S
from headroom.planning.throttles.recommendation import ACCURATE_BYTES_PER_S, ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role

# Highest rate of each broker and role, bytes per second; missing: no limit.
Ceilings = Mapping[BrokerRole, float]

_POLICY = ThrottlePolicy()
_NEAR_RATIO = 1.001
_MOST_TIMES = 1e6


@dataclass(frozen=True)
class BatchPrice:
    """Price of one batch. A batch of elections copies nothing and needs no throttle.

    Attributes:
        bytes_copied: bytes that new replicas copy.
        replicas_copied: number of replicas that are copied.
        required_bytes_per_s: rate that the throttle must exceed, on the broker and role that need most; 0 without
            copies.
        throttle_bytes_per_s: throttle with the usual margin above that; None without copies.
        required_after_switch_bytes_per_s: rate to exceed after the worst switch of one leader; at least the one before.
        throttle_after_switch_bytes_per_s: throttle with the margin above that; None without copies.
        taken_bytes: bytes that each destination has on its disk in addition until the batch ends, by broker id.
    """

    bytes_copied: float
    replicas_copied: int
    required_bytes_per_s: float
    throttle_bytes_per_s: float | None
    required_after_switch_bytes_per_s: float
    throttle_after_switch_bytes_per_s: float | None
    taken_bytes: Mapping[int, float]


def batch_price(batch: BalanceBatch) -> BatchPrice:
    """Return the price of a batch.

    Raises:
        HeadroomError: the size of a replica is unknown.
    """
    for move in batch.moves:
        if not math.isfinite(move.size_bytes):
            raise HeadroomError(str(move.name), "its size is unknown, so it has no price", "Leave it out.")
    if not batch.moves:
        return BatchPrice(0.0, 0, 0.0, None, 0.0, None, {})
    required = max(_required_bytes_per_s(batch.moves).values())
    switched = max(required, _after_worst_switch(batch.moves))
    taken: dict[int, float] = defaultdict(float)
    for move in batch.moves:
        taken[move.target] += move.size_bytes
    return BatchPrice(
        math.fsum(move.size_bytes for move in batch.moves),
        len(batch.moves),
        required,
        math.ceil(_POLICY.with_margin(required)),
        switched,
        math.ceil(_POLICY.with_margin(switched)),
        dict(taken),
    )


def duration_s(
    moves: Sequence[ReplicaMove], throttle_bytes_per_s: float, ceilings: Ceilings = MappingProxyType({})
) -> float | None:
    """Return the rough time of the copies of a batch in seconds; None if they never end.

    For each broker and role: bytes to copy / (throttle - required rate); the slowest one decides.

    Args:
        moves: the copies; nothing takes no time.
        throttle_bytes_per_s: throttle on all brokers, both roles.
        ceilings: highest rate of a broker and role that its capacity allows, bytes per second; missing: no limit.
    """
    if not moves:
        return 0.0
    required, left = _required_bytes_per_s(moves), _bytes(moves)
    free = {end: min(throttle_bytes_per_s, ceilings.get(end, math.inf)) - required[end] for end in left}
    return None if min(free.values()) <= 0 else max(left[end] / free[end] for end in left) + COMPLETE_S


@dataclass(frozen=True)
class BatchRun:
    """Batches as a run carries them out, one after another.

    Attributes:
        batches: the batches.
        ceilings: highest rates of brokers that the capacity allows beside other replication, for each batch.
        readings_s: time for readings of the cluster before each batch, seconds.
        pause_s: pause between two batches, seconds.
    """

    batches: Sequence[BalanceBatch]
    ceilings: Sequence[Ceilings]
    readings_s: float = 0.0
    pause_s: float = 0.0

    @cached_property
    def prices(self) -> list[BatchPrice]:
        """Price of each batch.

        Raises:
            HeadroomError: the size of a replica is unknown.
        """
        return [batch_price(batch) for batch in self.batches]

    def total_s(self, durations_s: Sequence[float | None]) -> float | None:
        """Return the time of batches of these durations one after another, seconds; None if one never ends."""
        known = [seconds + self.readings_s + self.pause_s for seconds in durations_s if seconds is not None]
        return max(0.0, math.fsum(known) - self.pause_s) if len(known) == len(durations_s) else None

    def rough_s(self, throttle_bytes_per_s: float, actions: int | None = None) -> tuple[int, float | None]:
        """Return the number of batches of the first actions and their rough time, seconds; None if they never end.

        Args:
            throttle_bytes_per_s: throttle on all brokers, both roles.
            actions: number of actions; None: all.
        """
        durations_s = [
            duration_s(own, batch.throttle(throttle_bytes_per_s), ceilings)
            for batch, ceilings in zip(self.batches, self.ceilings, strict=True)
            if (own := batch.moves if actions is None else batch.first_moves(actions)) is not None
        ]
        return len(durations_s), self.total_s(durations_s)

    def throttle_within(self, within_s: float) -> float:
        """Return the least throttle, in bytes per second, with which batches end in time; infinity if there is none."""
        if not any(batch.moves for batch in self.batches):
            return 0.0
        low = max(price.required_bytes_per_s for price in self.prices)
        # As fast as capacity and pauses allow.
        if not self._in_time(max(low, ACCURATE_BYTES_PER_S) * _MOST_TIMES, within_s):
            return math.inf
        high = max(low, 1.0) * 2
        while not self._in_time(high, within_s):
            low, high = high, high * 2
        while high > low * _NEAR_RATIO:
            middle = (low + high) / 2
            low, high = (low, middle) if self._in_time(middle, within_s) else (middle, high)
        return high

    def _in_time(self, throttle_bytes_per_s: float, within_s: float) -> bool:
        _, seconds = self.rough_s(throttle_bytes_per_s)
        return seconds is not None and seconds <= within_s


def _sent_bytes_per_s(move: ReplicaMove) -> float:
    """Return what the leader of a moving partition sends to its followers, the new one included."""
    return move.write_bytes_per_s * len(move.replicas)


def _required_bytes_per_s(moves: Sequence[ReplicaMove]) -> dict[BrokerRole, float]:
    """Return the rate that each throttle must exceed."""
    rates: dict[BrokerRole, float] = defaultdict(float)
    for move in moves:
        rates[BrokerRole(move.leader, Role.LEADER)] += _sent_bytes_per_s(move)
        rates[BrokerRole(move.target, Role.FOLLOWER)] += move.write_bytes_per_s
    return dict(rates)


def _bytes(moves: Sequence[ReplicaMove]) -> dict[BrokerRole, float]:
    """Return the bytes that each broker and role copies."""
    copied_bytes: dict[BrokerRole, float] = defaultdict(float)
    for move in moves:
        copied_bytes[BrokerRole(move.leader, Role.LEADER)] += move.size_bytes
        copied_bytes[BrokerRole(move.target, Role.FOLLOWER)] += move.size_bytes
    return dict(copied_bytes)


def _after_worst_switch(moves: Sequence[ReplicaMove]) -> float:
    """Return the highest rate that a throttle must exceed after the leader of any one partition has switched."""
    required = _required_bytes_per_s(moves)
    return max(
        (
            required.get(BrokerRole(broker, Role.LEADER), 0.0) + _sent_bytes_per_s(move)
            for move in moves
            for broker in move.replicas
            if broker != move.leader
        ),
        default=0.0,
    )
