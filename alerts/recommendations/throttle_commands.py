"""Which brokers a recommended throttle raises, and the commands that do it for the running move."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

from headroom.alerts.inputs.throttle_status import MovingPartition, ThrottleStatus
from headroom.alerts.recommendations import commands
from headroom.schemas.keys import BrokerRole, Role

# Most Kafka commands, one per broker or topic; Headroom's own command handles any number.
MOST_KAFKA_LINES = 20


def raise_commands(
    statuses: Sequence[ThrottleStatus], throttle: int, bootstrap_servers: str, config: str | None
) -> list[str]:
    """Return the commands that raise the rates below a throttle: Headroom's, and Kafka's broker by broker.

    Args:
        statuses: every broker and role of a tick.
        throttle: throttle, bytes/s.
        bootstrap_servers: bootstrap servers in Kafka's commands.
        config: configuration file in Headroom's commands; None if there is none.
    """
    lower = _lower_rates(statuses, throttle)
    brokers = sorted({broker for broker, _ in lower})
    # Headroom's command reads a rate before it raises it, so it may name brokers whose rates are unknown now.
    named = sorted({*brokers, *unread_brokers(statuses)})
    if not named:
        return []
    result = [commands.headroom_apply(throttle, named, config)]
    if len(brokers) <= MOST_KAFKA_LINES:
        for broker in brokers:
            roles = [role for role in Role if (broker, role) in lower]
            result.append(commands.kafka_configs(throttle, broker, bootstrap_servers, roles))
    moves = _moves(statuses)
    if moves and brokers and _sets_every_rate(statuses, throttle, brokers):
        result.append(commands.kafka_reassign(throttle, moves[:1], bootstrap_servers))
    return result


def cancel_command(statuses: Sequence[ThrottleStatus], bootstrap_servers: str, config: str | None) -> str:
    """Return the command that cancels the running move.

    Args:
        statuses: every broker and role of a tick.
        bootstrap_servers: bootstrap servers in Kafka's commands.
        config: configuration file in Headroom's commands; None if there is none.
    """
    if any(status.moving_partitions > len(status.moves) for status in statuses):
        return commands.cancel_all(config, bootstrap_servers)
    return commands.cancel(_moves(statuses), bootstrap_servers)


def moving_brokers(statuses: Sequence[ThrottleStatus]) -> set[int]:
    """Return the brokers that lead or follow a partition in a reassignment."""
    return {status.broker for status in statuses if status.moving_partitions}


def unread_brokers(statuses: Sequence[ThrottleStatus]) -> list[int]:
    """Return the brokers that are up and whose rates limit copies, or may do so, but could not be read."""
    return sorted({s.broker for s in statuses if s.alive and s.load.needs_throttle and s.is_rate_unread})


def _lower_rates(statuses: Sequence[ThrottleStatus], throttle_bytes_per_s: float) -> set[BrokerRole]:
    """Return the brokers and roles of a move whose rate in force is lower than a throttle and can be raised.

    This includes brokers outside the move if an old list limits an out-of-sync replica, or will once a broker is back.
    Dead brokers are left
    out, because they cannot apply a rate. Brokers without a rate are left out, because a rate would slow them down.

    Args:
        statuses: every broker and role of a tick.
        throttle_bytes_per_s: throttle.
    """
    part = moving_brokers(statuses) | {status.broker for status in statuses if status.load.needs_throttle}
    return {
        status.load.broker_role
        for status in statuses
        if status.broker in part and status.alive and _rate(status) < throttle_bytes_per_s
    }


def _sets_every_rate(statuses: Sequence[ThrottleStatus], throttle_bytes_per_s: float, lower: Collection[int]) -> bool:
    """Return whether one rate on both roles of every broker of the move is enough, as Kafka's tool sets it.

    Args:
        statuses: every broker and role of a tick.
        throttle_bytes_per_s: rate to set; it must not lower a higher rate.
        lower: brokers whose rates must be raised; the tool sets only those in a running reassignment.
    """
    part = moving_brokers(statuses)
    of_part = [status for status in statuses if status.broker in part]
    rates = [_rate(status) for status in of_part]
    lowers_none = all(status.alive for status in of_part) and max(rates, default=0.0) <= throttle_bytes_per_s
    return lowers_none and part.issuperset(lower)


def _rate(status: ThrottleStatus) -> float:
    """Return the rate in force, bytes/s; infinity without one. A rate of 0 is a limit too."""
    rate = status.load.throttle_bytes_per_s
    return math.inf if rate is None else rate


def _moves(statuses: Sequence[ThrottleStatus]) -> list[MovingPartition]:
    moves = {(p.topic, p.partition): p for status in statuses for p in status.moves}
    return [moves[key] for key in sorted(moves)]
