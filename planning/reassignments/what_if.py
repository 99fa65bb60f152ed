"""What-ifs during a planned move: any single leader switch, the loss of any one broker, and the return of a dead one.

Each is a small change of sums that exist, not a new sum over all partitions.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from headroom.planning.reassignments.replica_keys import Bools, Floats, Ints
from headroom.planning.reassignments.traffic import PlannedTraffic, RoleSums, sums_by_key
from headroom.schemas.keys import BrokerRole, TopicPartition

# Cases that are listed one by one.
MOST_CASES = 20


@dataclass(frozen=True)
class SwitchCase:
    """A leader switch that makes the throttle short on one broker.

    Attributes:
        partition: partition.
        leader: broker that leads it before.
        next_leader: in-sync replica that leads it then.
        broker_role: broker and role whose throttle is too low then.
        required_bytes_per_s: its required traffic then, as far as known.
    """

    partition: TopicPartition
    leader: int
    next_leader: int
    broker_role: BrokerRole
    required_bytes_per_s: float


@dataclass(frozen=True)
class LossCase:
    """The loss of one broker: the next in-sync replicas take over its leads, and its own copies stop.

    Attributes:
        broker: broker that is lost.
        stopped_copies: new replicas on it, which stop copying; the move cannot finish without them.
        leaderless: partitions that are left without a leader, because no other replica is in sync.
        broker_role: broker and role that requires most then; None if none takes over traffic.
        required_bytes_per_s: its required traffic then, as far as known.
    """

    broker: int
    stopped_copies: int
    leaderless: int
    broker_role: BrokerRole | None
    required_bytes_per_s: float


@dataclass(frozen=True)
class ReturnCase:
    """The return of one broker that is down: its replicas follow again, and catch up behind the throttle.

    Attributes:
        broker: broker that comes back.
        broker_role: leader that requires most then.
        required_bytes_per_s: its required traffic then, as far as known.
    """

    broker: int
    broker_role: BrokerRole
    required_bytes_per_s: float


@dataclass(frozen=True)
class WhatIf:
    """Effect of single events on a throttle.

    Attributes:
        switches: number of leader switches that were evaluated.
        unknown_switches: number of those whose traffic is partly unknown, and that may be worse than known.
        short_switches: number of switches that make the throttle short.
        worst_switches: the worst of them, worst first; at most ``MOST_CASES``.
        losses: the loss of each broker that takes part, in ascending order.
        returns: the return of each broker that is down and has listed replicas, in ascending order.
        required_bytes_per_s: rate that a throttle has to exceed to survive any of these, as far as traffic is known.
    """

    switches: int
    unknown_switches: int
    short_switches: int
    worst_switches: tuple[SwitchCase, ...]
    losses: tuple[LossCase, ...]
    returns: tuple[ReturnCase, ...]
    required_bytes_per_s: float


@dataclass(frozen=True)
class _Switches:
    """Switches in flat arrays: partition, replica that leads then, broker and role (as a position), traffic there."""

    partition: Ints
    replica: Ints
    at: Ints
    required: Floats
    unknown: Ints


def what_if(traffic: PlannedTraffic, throttle_bytes_per_s: float | None) -> WhatIf:
    """Return the effect of any single leader switch, of the loss of any one broker, and of the return of a dead one.

    All are evaluated with the present leaders and with the preferred ones, so a switch that Kafka makes by itself is
    evaluated alone too.

    Args:
        traffic: traffic of the move.
        throttle_bytes_per_s: throttle on every broker; None if there is none, so that nothing is short.
    """
    bases = [(traffic.leader, traffic.before)]
    if not np.array_equal(traffic.leader, traffic.preferred):
        bases.append((traffic.preferred, traffic.after))
    evaluated = [(leader, _switches(traffic, leader, sums)) for leader, sums in bases]
    throttle = np.inf if throttle_bytes_per_s is None else throttle_bytes_per_s
    short = [case for leader, switches in evaluated for case in _worst(traffic, leader, switches, throttle)]
    losses, returns = _losses(traffic, bases), _returns(traffic, bases)
    highest = [
        *(float(switches.required.max(initial=0.0)) for _, switches in evaluated),
        *(case.required_bytes_per_s for case in losses),
        *(case.required_bytes_per_s for case in returns),
    ]
    return WhatIf(
        switches=sum(len(switches.at) for _, switches in evaluated),
        unknown_switches=sum(int((switches.unknown > 0).sum()) for _, switches in evaluated),
        short_switches=sum(int((switches.required >= throttle).sum()) for _, switches in evaluated),
        worst_switches=tuple(sorted(short, key=lambda case: -case.required_bytes_per_s)[:MOST_CASES]),
        losses=losses,
        returns=returns,
        required_bytes_per_s=max(highest, default=0.0),
    )


def _switches(traffic: PlannedTraffic, leader: Ints, sums: RoleSums) -> _Switches:
    """Return every switch to another in-sync replica, with the traffic of the roles that gain some by it.

    The new leader sends to all other replicas; the old leader follows, and receives, if the follower list has it.
    """
    count = len(traffic.brokers)
    led = leader[traffic.partition] >= 0
    candidate = traffic.alive & traffic.in_sync & led
    candidate[leader[leader >= 0]] = False
    behind = traffic.followers(leader) - traffic.in_sync_followers(leader)

    new = np.flatnonzero(candidate & traffic.leader_listed)
    partition = traffic.partition[new]
    followers = traffic.followers(leader)[partition]
    at = traffic.broker[new]
    sent = _Switches(
        partition,
        new,
        at,
        sums.required[at] + traffic.known_write[partition] * followers,
        sums.unknown[at] + traffic.unknown_write[partition] * followers,
    )
    # Without an out-of-sync replica there is nothing that a throttle holds back.
    sent = _where(sent, (sums.behind[at] + behind[partition]) > 0)

    new = np.flatnonzero(candidate)
    partition = traffic.partition[new]
    old = leader[partition]
    follows = traffic.follower_listed[old]
    new, partition, old = new[follows], partition[follows], old[follows]
    at = count + traffic.broker[old]
    received = _Switches(
        partition,
        new,
        at,
        sums.required[at] + traffic.known_write[partition],
        sums.unknown[at] + traffic.unknown_write[partition],
    )
    received = _where(received, sums.behind[at] > 0)
    return _Switches(
        *(np.concatenate([getattr(sent, name), getattr(received, name)]) for name in _Switches.__annotations__)
    )


def _where(switches: _Switches, chosen: Bools) -> _Switches:
    return _Switches(*(getattr(switches, name)[chosen] for name in _Switches.__annotations__))


def _worst(traffic: PlannedTraffic, leader: Ints, switches: _Switches, throttle: float) -> Iterator[SwitchCase]:
    """Yield the switches that make a throttle short, the worst first; at most ``MOST_CASES``."""
    order = np.argsort(-switches.required, kind="stable")[:MOST_CASES]
    for number in order[switches.required[order] >= throttle]:
        partition, replica = switches.partition[number], switches.replica[number]
        yield SwitchCase(
            traffic.names[partition],
            traffic.brokers[traffic.broker[leader[partition]]],
            traffic.brokers[traffic.broker[replica]],
            traffic.broker_role(int(switches.at[number])),
            float(switches.required[number]),
        )


def _losses(traffic: PlannedTraffic, bases: list[tuple[Ints, RoleSums]]) -> tuple[LossCase, ...]:
    """Return the loss of each broker, with the worse of both leaderships."""
    cases: dict[int, LossCase] = {}
    for leader, sums in bases:
        for case in _losses_with(traffic, leader, sums):
            other = cases.get(case.broker, case)
            worse = max(case, other, key=lambda c: c.required_bytes_per_s)
            cases[case.broker] = replace(worse, leaderless=max(case.leaderless, other.leaderless))
    return tuple(cases[broker] for broker in sorted(cases))


def _losses_with(traffic: PlannedTraffic, leader: Ints, sums: RoleSums) -> Iterator[LossCase]:
    required, behind = _after_losses(traffic, leader, sums)
    count = len(traffic.brokers)
    required = np.where((behind > 0) & (required > sums.required[:count]), required, 0.0)
    worst = required.argmax(axis=1) if count else np.zeros(0, np.int64)
    stopped = np.bincount(traffic.broker[traffic.copies], minlength=count)
    last = leader[(leader >= 0) & (next_leaders(traffic, leader) < 0)]
    leaderless = np.bincount(traffic.broker[last], minlength=count)
    takes_part = np.bincount(traffic.broker[traffic.alive], minlength=count)
    for lost in np.flatnonzero(takes_part):
        most = float(required[lost, worst[lost]])
        role = traffic.broker_role(int(worst[lost])) if most else None
        yield LossCase(traffic.brokers[lost], int(stopped[lost]), int(leaderless[lost]), role, most)


def _returns(traffic: PlannedTraffic, bases: list[tuple[Ints, RoleSums]]) -> tuple[ReturnCase, ...]:
    """Return the return of each dead broker, with the worse of both leaderships."""
    cases: dict[int, ReturnCase] = {}
    count = len(traffic.brokers)
    for leader, sums in bases:
        replica = np.flatnonzero(~traffic.alive)
        source = leader[traffic.partition[replica]]
        listed = (source >= 0) & traffic.leader_listed[source]
        replica, source = replica[listed], source[listed]
        keys = traffic.broker[replica] * count + traffic.broker[source]
        more = sums_by_key(keys, traffic.known_write[traffic.partition[replica]], count * count)
        for key in np.unique(keys).tolist():
            broker, sender = traffic.brokers[key // count], key % count
            case = ReturnCase(broker, traffic.broker_role(sender), float(sums.required[sender] + more[key]))
            cases[broker] = max(case, cases.get(broker, case), key=lambda c: c.required_bytes_per_s)
    return tuple(cases[broker] for broker in sorted(cases))


def next_leaders(traffic: PlannedTraffic, leader: Ints) -> Ints:
    """Return the replica that leads each partition once its leader is lost; -1 if no other is in sync.

    Source: Kafka 4.3.1, ``PartitionChangeBuilder.electAnyLeader``: the first replica, target replicas first, that is
    in sync and alive.
    """
    others = traffic.alive & traffic.in_sync
    others[leader[leader >= 0]] = False
    candidates = np.flatnonzero(others)
    partitions, first = np.unique(traffic.partition[candidates], return_index=True)
    successors = np.full(len(leader), -1, np.int64)
    successors[partitions] = candidates[first]
    return successors


def _after_losses(traffic: PlannedTraffic, leader: Ints, sums: RoleSums) -> tuple[Floats, Ints]:
    """Return what each leader requires after the loss of each broker, and its out-of-sync followers then.

    Returns:
        Two matrices by lost broker (rows) and leader (columns). Destinations only ever lose traffic.
    """
    count = len(traffic.brokers)
    # Followers on the lost broker stop fetching from the leaders of others.
    follower = np.flatnonzero(traffic.following(leader))
    source = leader[traffic.partition[follower]]
    listed = (source >= 0) & traffic.leader_listed[source]
    follower, source = follower[listed], source[listed]
    less = traffic.broker[follower] * count + traffic.broker[source]
    written = traffic.known_write[traffic.partition[follower]]
    # Its leads go to the next in-sync replica, which sends to all replicas but itself and the lost one.
    following = next_leaders(traffic, leader)
    led = np.flatnonzero((leader >= 0) & (following >= 0))
    led = led[traffic.leader_listed[following[led]]]
    more = traffic.broker[leader[led]] * count + traffic.broker[following[led]]
    gained = traffic.known_write[led] * (traffic.followers(leader)[led] - 1)
    behind = (traffic.live - traffic.live_in_sync)[led]

    def matrix(keys: Ints, weights: NDArray[Any]) -> Floats:
        return sums_by_key(keys, weights, count * count).reshape(count, count)

    required = sums.required[:count] - matrix(less, written) + matrix(more, gained)
    out_of_sync = sums.behind[:count] - matrix(less, ~traffic.in_sync[follower]) + matrix(more, behind)
    np.fill_diagonal(required, 0.0)
    return required, np.rint(out_of_sync).astype(np.int64)
