"""Rates and throttled replica lists that no running move uses, and the command that left them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from headroom.cluster.admin.config_keys import FOLLOWER_LIST, LEADER_LIST
from headroom.cluster.live.throttle_state import ThrottleState
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.throttles.broker_rates import KEY_OF, rate_of
from headroom.cluster.throttles.rates import ROLES
from headroom.planning.reassignments.run.journal import ThrottledList, rate_subject
from headroom.planning.reassignments.run.owners import ThrottleOwner
from headroom.planning.throttles.replica_lists import ReplicaListError, format_replica_list, parse_replica_list
from headroom.schemas.keys import BrokerRole, LogDirsRate, Role


@dataclass(frozen=True)
class LeftRate:
    """A rate that no running move uses.

    Attributes:
        broker: broker id; None for the cluster-wide default.
        role: leader, follower or log_dirs.
        key: configuration key.
        bytes_per_s: rate.
        run_id: id of the run, or of the execution of another command, that set it; None if unknown.
        command: this command; None if unknown.
        process: process that carries on this run now, as text; None if none does, or if that is unknown.
    """

    broker: int | None
    role: str
    key: str
    bytes_per_s: int
    run_id: str | None = None
    command: str | None = None
    process: str | None = None


@dataclass(frozen=True)
class LeftList:
    """Entries of a throttled replica list whose partitions do not move.

    Attributes:
        topic: topic.
        role: leader or follower.
        key: configuration key.
        entries: the entries as text, or ``*``.
        run_id: id of the run, or of the execution of another command, that set them; None if unknown.
        command: this command; None if unknown.
        process: process that carries on this run now, as text; None if none does, or if that is unknown.
    """

    topic: str
    role: str
    key: str
    entries: str
    run_id: str | None = None
    command: str | None = None
    process: str | None = None


@dataclass(frozen=True)
class LeftBehind:
    """All rates and lists that no running move uses."""

    rates: tuple[LeftRate, ...]
    lists: tuple[LeftList, ...]

    def as_json(self) -> dict[str, Any]:
        """Return them as a JSON object."""
        return {
            "rates": [dict(vars(rate)) for rate in self.rates],
            "lists": [dict(vars(entries)) for entries in self.lists],
        }


def left_behind(view: ThrottleState, reading: LogDirsReading, owners: Mapping[str, ThrottleOwner]) -> LeftBehind:
    """Return the rates and list entries that no running move uses.

    A leader or follower rate is used by a broker that takes part in a move, and a list entry by the move of its
    partition. The rate for log directories is used by a move between them; if the broker did not report its logs,
    nothing is said about it. The cluster-wide default is left behind only together with lists, as in the alert
    ``throttle_left_behind``, because no move sets it.

    Args:
        view: throttles and moves.
        reading: log directories of the brokers with a rate for moves between them.
        owners: owner of each rate and list, by its subject in the journal.
    """
    lists = tuple(_lists(view, owners))
    in_use = set(view.participants())
    rates = [rate for broker in sorted(view.rates.keys() - in_use) for rate in _own_rates(view, broker, owners)]
    rates += _log_dirs_rates(view, reading, owners)
    if lists and not view.moving():
        rates += _default_rates(view)
    return LeftBehind(tuple(rates), lists)


def _own_rates(view: ThrottleState, broker: int, owners: Mapping[str, ThrottleOwner]) -> Iterator[LeftRate]:
    for role in ROLES:
        rate, source = rate_of(view.of(broker), role)
        if rate is not None and source == "broker":
            owner = _owner(owners, rate_subject(BrokerRole(broker, Role(role))))
            yield LeftRate(broker, role, KEY_OF[role], rate, *owner)


def _default_rates(view: ThrottleState) -> Iterator[LeftRate]:
    for role in ROLES:
        rate, _ = rate_of(view.default, role)
        if rate is not None:
            yield LeftRate(None, role, KEY_OF[role], rate)


def _log_dirs_rates(
    view: ThrottleState, reading: LogDirsReading, owners: Mapping[str, ThrottleOwner]
) -> Iterator[LeftRate]:
    for broker, logs in sorted(reading.brokers.items()):
        rate, source = rate_of(view.of(broker), "log_dirs")
        if rate is not None and source == "broker" and not logs.futures:
            owner = _owner(owners, rate_subject(LogDirsRate(broker)))
            yield LeftRate(broker, "log_dirs", KEY_OF["log_dirs"], rate, *owner)


def _lists(view: ThrottleState, owners: Mapping[str, ThrottleOwner]) -> Iterator[LeftList]:
    moving: dict[str, set[int]] = {}
    for partition in view.moving():
        moving.setdefault(partition.topic, set()).add(partition.partition)
    for topic, config in view.listed_topics().items():
        for role, key, text in (
            ("leader", LEADER_LIST, config.leader_list),
            ("follower", FOLLOWER_LIST, config.follower_list),
        ):
            entries = _resting(text, moving.get(topic, set()))
            if entries is not None:
                owner = _owner(owners, str(ThrottledList(topic, Role(role))))
                yield LeftList(topic, role, key, entries, *owner)


def _owner(owners: Mapping[str, ThrottleOwner], subject: str) -> tuple[str | None, str | None, str | None]:
    owner = owners.get(subject)
    return (None, None, None) if owner is None else (owner.run_id, owner.command, owner.process)


def _resting(text: str | None, moving: set[int]) -> str | None:
    """Return the entries of a list whose partitions do not move; None if there are none, or if it cannot be read.

    A list of ``*`` is in use as long as any partition of its topic moves.
    """
    try:
        replica_list = parse_replica_list(text)
    except ReplicaListError:
        return None
    if replica_list is None or (replica_list.every and moving):
        return None
    if replica_list.every:
        return text
    return format_replica_list(entry for entry in replica_list.entries if entry[0] not in moving) or None
