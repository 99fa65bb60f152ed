"""Throttle rates, for commands: sets and clears them on a connection of its own, until they are in force."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace

from headroom.cluster.admin.alter_configs import ConfigChange, Failure, alter_each
from headroom.cluster.admin.command_connection import DEADLINE_S, OnStep, open_connection, timeout_s
from headroom.cluster.admin.config_keys import ALL_RATE_KEYS, BROKER
from headroom.cluster.connection.admin_connection import AdminConnection
from headroom.cluster.model import BrokerThrottles
from headroom.cluster.throttles.broker_rates import (
    KEY_OF,
    keys_from,
    rate_of,
    read_default_rates,
    read_rates,
)
from headroom.cluster.throttles.rate_change import RateChange
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError

ROLES = ("leader", "follower")
# Kafka's entity name of the cluster-wide broker default.
_CLUSTER_DEFAULT = ""


def apply_rates(
    settings: Settings,
    rates: Mapping[int, int] | Mapping[tuple[int, str], int],
    roles: Collection[str] = ROLES,
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[int, BrokerThrottles]:
    """Set rates on brokers, wait until each broker reads its own back, and return the rates in force.

    Each broker gets one request, all in parallel. A failure of one broker does not affect the others.

    Args:
        settings: the cluster.
        rates: bytes per second by broker id, for all of ``roles``; or by broker id and role, leader or follower.
        roles: leader, follower or both, if the rates are by broker id alone.
        on_step: called with one line of text per step.
        deadline_s: longest wait until the rates are in force, seconds.

    Raises:
        HeadroomError: a rate is not positive: nothing was changed.
        RatesError: a broker refused its rate, gave no answer, or did not read it back in time.
    """
    wanted = _by_broker(rates, roles)
    _check_rates(wanted)
    changes = {b: {KEY_OF[role]: str(rate) for role, rate in by_role.items()} for b, by_role in wanted.items()}

    def in_force(broker: int, now: BrokerThrottles) -> bool:
        return all(rate_of(now, role) == (rate, "broker") for role, rate in wanted[broker].items())

    change = RateChange(changes, in_force, "rates set on {}; waiting until they are in force")
    with open_connection(settings.cluster) as connection:
        return change.make(connection, timeout_s(settings.cluster), deadline_s, on_step).require()


def clear_rates(
    settings: Settings,
    brokers: Collection[int],
    cluster_default: bool = False,
    on_step: OnStep = lambda text: None,
    deadline_s: float = DEADLINE_S,
) -> dict[int, BrokerThrottles]:
    """Clear the brokers' own rates, wait until they are gone, and return the rates in force then.

    Clears the leader, follower and log directory rates, as far as they are set.

    Args:
        settings: the cluster.
        brokers: broker ids.
        cluster_default: also clear the cluster-wide default; otherwise brokers fall back to it.
        on_step: called with one line of text per step.
        deadline_s: longest wait until the rates are gone, seconds.

    Raises:
        RatesError: a broker refused, gave no answer, or still has its rates at the deadline.
    """
    with open_connection(settings.cluster) as connection:
        wait_s = timeout_s(settings.cluster)
        now = read_rates(connection, sorted(brokers), wait_s)
        failures = _clear_default(connection, wait_s) if cluster_default else {}
        cleared_sources = ("broker", "default") if cluster_default and not failures else ("broker",)
        changes = {broker: _clear_values(rates, "broker") for broker, rates in now.items()}

        def gone(_broker: int, rates: BrokerThrottles) -> bool:
            return not keys_from(rates, *cleared_sources)

        change = RateChange(changes, gone, "rates cleared on {}; waiting until they are gone")
        outcome = change.make(connection, wait_s, deadline_s, on_step)
        return replace(outcome, others=failures).require()


def _clear_default(connection: AdminConnection, wait_s: float) -> dict[str, Failure]:
    change = ConfigChange(BROKER, _CLUSTER_DEFAULT, _clear_values(read_default_rates(connection, wait_s), "default"))
    (failure,) = alter_each(connection, [change], wait_s) if change.values else (None,)
    return {} if failure is None else {change.subject: failure}


def _clear_values(rates: BrokerThrottles, source: str) -> dict[str, str | None]:
    # Clearing a key that is not set is no error, so clear all keys if the rates are unknown.
    return dict.fromkeys(keys_from(rates, source) if rates.known else ALL_RATE_KEYS)


def _by_broker(
    rates: Mapping[int, int] | Mapping[tuple[int, str], int], roles: Collection[str]
) -> dict[int, dict[str, int]]:
    """Return the rates by broker and role, for both forms of ``rates``."""
    wanted: dict[int, dict[str, int]] = {}
    for key, rate in rates.items():
        broker_roles = [key] if isinstance(key, tuple) else [(key, role) for role in roles]
        for broker, role in broker_roles:
            wanted.setdefault(broker, {})[role] = rate
    return wanted


def _check_rates(rates: Mapping[int, Mapping[str, int]]) -> None:
    for broker, by_role in rates.items():
        for rate in by_role.values():
            if rate <= 0:
                rule = f"a throttle of {rate} bytes/s is none"
                raise HeadroomError(f"broker {broker}", rule, "Give a rate above zero.")
