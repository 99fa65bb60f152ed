"""Throttles of running moves whose rate is set but limits nothing, or not all, with the reason."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any

from headroom.cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.metadata.throttled_partitions import listed_brokers
from headroom.cluster.throttles.broker_rates import rate_of
from headroom.operations.throttles.needs.throttle_need import MoveNeed, ThrottleNeeds
from headroom.planning.throttles.effect import (
    EXCEEDED_TEXT,
    NoEffect,
    ObservedThrottle,
    far_above_text,
    none_limits,
    rates_text,
)
from headroom.schemas.alerts import BELOW_REQUIRED
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from headroom.schemas.text.amounts import join_names, rate_text

_LIST_KEYS = {Role.LEADER: LEADER_LIST, Role.FOLLOWER: FOLLOWER_LIST}
_BELOW_REQUIRED = frozenset(verdict.value for verdict in BELOW_REQUIRED)


@dataclass(frozen=True)
class ThrottleWithoutEffect:
    """A throttle whose rate is set but limits nothing, or not all, of what a move copies.

    Attributes:
        broker: broker id.
        role: role whose rate it is.
        reason: why.
        throttle_bytes_per_s: rate in force.
        throttle_source: entity that sets it: broker or default.
        observed_bytes_per_s: traffic that the broker copies in this role, or that counts against the quota if that is
            more; None if not measured.
        copies: out-of-sync replicas that it sends or receives.
        unlisted_copies: those of them that no list of the role names.
        partitions: partitions of these, by name.
        default_bytes_per_s: rate of the cluster default that the own rate overrides; None for other reasons.
    """

    broker: int
    role: Role
    reason: NoEffect
    throttle_bytes_per_s: int
    throttle_source: str | None
    observed_bytes_per_s: float | None
    copies: int
    unlisted_copies: int = 0
    partitions: tuple[TopicPartition, ...] = ()
    default_bytes_per_s: int | None = None

    @property
    def text(self) -> str:
        """The rate in force, the observed one, and the reason, in one line."""
        subject = f"Broker {self.broker} as {'leader' if self.role is Role.LEADER else 'destination'}"
        rates = rates_text(
            self.throttle_bytes_per_s, self.observed_bytes_per_s, is_default=self.throttle_source == "default"
        )
        return f"{subject}: {rates}: {self._why()}."

    def _why(self) -> str:
        does = "sends" if self.role is Role.LEADER else "receives"
        names, key = join_names([str(name) for name in self.partitions]), _LIST_KEYS[self.role]
        match self.reason:
            case NoEffect.NOT_LISTED:
                return f"it limits nothing, because no {key} names what it {does} ({names})"
            case NoEffect.PARTLY_LISTED:
                of = f"{self.unlisted_copies} of the {self.copies} replicas that it {does}"
                return f"it does not limit {of}, because no {key} names them ({names})"
            case NoEffect.OVERRIDDEN:
                default = rate_text(self.default_bytes_per_s)
                return f"the cluster default of {default} limits nothing here, because the broker has its own rate"
            case NoEffect.FAR_ABOVE:
                return far_above_text(self.throttle_bytes_per_s, self.observed_bytes_per_s or 1.0)
            case NoEffect.EXCEEDED:
                return EXCEEDED_TEXT

    def as_json(self) -> dict[str, Any]:
        """Return it as a JSON object."""
        return {
            **vars(self),
            "role": self.role.value,
            "reason": self.reason.value,
            "partitions": [name._asdict() for name in self.partitions],
            "text": self.text,
        }


@dataclass
class _Copies:
    """Out-of-sync replicas of moving partitions at one end: those in the lists, and those in none."""

    listed: list[TopicPartition] = field(default_factory=list)
    unlisted: list[TopicPartition] = field(default_factory=list)
    peers: set[int] = field(default_factory=set)
    is_known: bool = True


def throttles_without_effect(view: ThrottleState, needs: ThrottleNeeds) -> tuple[ThrottleWithoutEffect, ...]:
    """Return the throttles of running moves that limit nothing, or not all, by broker, the leader first.

    Lists and rates are those of the view; what is observed comes from the needs. A rate that is only too high for what
    is copied is named if no throttle limits the move. Where lists or rates are unknown, nothing is said.

    Args:
        view: throttles and moves.
        needs: needs of the running moves, with what was observed.
    """
    observed = {(need.broker, need.role): need for need in needs.needs}
    listed: dict[BrokerRole, _Listed] = {}
    without: list[ThrottleWithoutEffect] = []
    for broker_role, copies in sorted(_copies(view).items(), key=lambda item: _order(item[0])):
        rate, source = rate_of(view.of(broker_role.broker), broker_role.role.value)
        if rate is None or not copies.is_known:
            continue
        throttle = _Listed(
            broker_role, rate, source, copies, observed.get((broker_role.broker, broker_role.role.value))
        )
        if copies.unlisted:
            reason = NoEffect.PARTLY_LISTED if copies.listed else NoEffect.NOT_LISTED
            without.append(throttle.without_effect(reason, copies.unlisted))
        if copies.listed:
            listed[broker_role] = throttle
    without += _overridden(view, listed.values())
    without += _by_rate(listed.values())
    return tuple(sorted(without, key=lambda one: _order(BrokerRole(one.broker, one.role))))


@dataclass(frozen=True)
class _Listed:
    """A rate in force at one end of copies, with what was observed there."""

    broker_role: BrokerRole
    rate: int
    source: str | None
    copies: _Copies
    need: MoveNeed | None

    @property
    def observed_throttle(self) -> ObservedThrottle:
        is_below = self.need is not None and self.need.verdict in _BELOW_REQUIRED
        return ObservedThrottle(self.rate, self.observed_bytes_per_s, len(self.copies.peers), is_below)

    @property
    def observed_bytes_per_s(self) -> float | None:
        return None if self.need is None else self.need.observed_bytes_per_s

    def without_effect(
        self, reason: NoEffect, partitions: Iterable[TopicPartition], default: int | None = None
    ) -> ThrottleWithoutEffect:
        return ThrottleWithoutEffect(
            self.broker_role.broker,
            self.broker_role.role,
            reason,
            self.rate,
            self.source,
            self.observed_bytes_per_s,
            len(self.copies.listed) + len(self.copies.unlisted),
            len(self.copies.unlisted),
            tuple(sorted(set(partitions))),
            default,
        )


def _order(broker_role: BrokerRole) -> tuple[int, bool]:
    return broker_role.broker, broker_role.role is not Role.LEADER


def _overridden(view: ThrottleState, throttles: Iterable[_Listed]) -> list[ThrottleWithoutEffect]:
    without = []
    for throttle in throttles:
        default, _ = rate_of(view.default, throttle.broker_role.role.value)
        if default is not None and throttle.source == "broker" and default < throttle.rate:
            without.append(throttle.without_effect(NoEffect.OVERRIDDEN, throttle.copies.listed, default))
    return without


def _by_rate(throttles: Iterable[_Listed]) -> list[ThrottleWithoutEffect]:
    """Return the throttles whose rate is exceeded, and those far above what is observed if none limits the move."""
    every = list(throttles)
    of_all = none_limits(throttle.observed_throttle for throttle in every)
    without = []
    for throttle in every:
        reason = throttle.observed_throttle.no_effect
        if reason is NoEffect.EXCEEDED or (reason is NoEffect.FAR_ABOVE and of_all):
            without.append(throttle.without_effect(reason, throttle.copies.listed))
    return without


def _copies(view: ThrottleState) -> Mapping[BrokerRole, _Copies]:
    """Return the copies of moving partitions at both of their ends."""
    copies: dict[BrokerRole, _Copies] = defaultdict(_Copies)
    for partition in view.moving():
        lists = listed_brokers(partition, view.snapshot.topic_configs.get(partition.topic))
        for follower in partition.replicas:
            if follower == partition.leader or follower in partition.isr or not view.alive(follower):
                continue
            ends = [(follower, Role.FOLLOWER, lists.follower, partition.leader)]
            ends += [(partition.leader, Role.LEADER, lists.leader, follower)] if partition.leader is not None else []
            for broker, role, brokers, peer in ends:
                end = copies[BrokerRole(broker, role)]
                end.is_known &= brokers is not None
                (end.listed if brokers is not None and broker in brokers else end.unlisted).append(partition.name)
                end.peers |= set() if peer is None else {peer}
    return copies
