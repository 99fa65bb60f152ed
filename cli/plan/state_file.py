"""Saved states of a cluster: everything that a plan rests on, as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter, ValidationError

from cli.common.files import read_json
from planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from planning.throttles.replica_lists import TopicLists
from schemas.errors import HeadroomError

STATE_VERSION = 1
_REMEDY = "Write it again with headroom plan --save-state."
_BROKERS = TypeAdapter(list[BrokerState])
_PARTITIONS = TypeAdapter(list[PartitionPlacement])
_BALANCES: TypeAdapter[bool | None] = TypeAdapter(bool | None)
_LISTS = TypeAdapter(dict[str, TopicLists])


def write_state(file: Path, state: ClusterState) -> None:
    """Write a state to a file.

    Raises:
        HeadroomError: the file cannot be written.
    """
    try:
        file.write_text(json.dumps(state_json(state), separators=(",", ":")) + "\n", encoding="utf-8")
    except OSError as error:
        raise HeadroomError(str(file), f"cannot be written ({error.strerror})", "Name another file.") from None


def read_state(file: Path) -> ClusterState:
    """Return the state in a file.

    Raises:
        HeadroomError: the file cannot be read, or is no state.
    """
    return state_of_json(read_json(file, _REMEDY), str(file))


def state_json(state: ClusterState) -> dict[str, Any]:
    """Return a state as a JSON object; null is unknown, times are epoch milliseconds."""
    return {
        "version": STATE_VERSION,
        "cluster": state.cluster,
        "read_ms": state.read_ms,
        "rates_from": state.rates_from,
        "auto_leader_rebalance": state.auto_leader_rebalance,
        "brokers": _BROKERS.dump_python(list(state.brokers.values()), mode="json"),
        "partitions": _PARTITIONS.dump_python(list(state.partitions.values()), mode="json"),
        "topic_ids": dict(state.topic_ids),
        "lists": _LISTS.dump_python(dict(state.lists), mode="json"),
    }


def state_of_json(found: Any, subject: str) -> ClusterState:
    """Return the state in a JSON object.

    Args:
        found: the object.
        subject: name of its file, for errors.

    Raises:
        HeadroomError: it is no state.
    """
    if not isinstance(found, dict) or found.get("version") != STATE_VERSION:
        raise HeadroomError(subject, f"is no saved state of version {STATE_VERSION}", _REMEDY)
    try:
        # One table at a time, because its name is part of the error.
        table = "brokers"
        brokers = _BROKERS.validate_python(found.get(table))
        table = "partitions"
        partitions = _PARTITIONS.validate_python(found.get(table))
        table = "lists"
        lists = _LISTS.validate_python(found.get(table, {}))
        table = "topic_ids"
        topic_ids = TypeAdapter(dict[str, str]).validate_python(found.get(table, {}))
        table = "auto_leader_rebalance"
        balances = _BALANCES.validate_python(found.get(table))
        table = "read_ms"
        read_ms = TypeAdapter(int).validate_python(found.get(table, 0))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join([table, *(str(part) for part in first["loc"])])
        raise HeadroomError(subject, f"{where}: {first['msg']}", _REMEDY) from None
    state = ClusterState(
        cluster=str(found.get("cluster", "")),
        read_ms=read_ms,
        brokers={broker.broker: broker for broker in brokers},
        partitions={partition.name: partition for partition in partitions},
        topic_ids=topic_ids,
        lists=lists,
        auto_leader_rebalance=balances,
        rates_from=str(found.get("rates_from", "unknown")),
    )
    for problem in _inconsistencies(state):
        raise HeadroomError(subject, problem, _REMEDY)
    return state


def _inconsistencies(state: ClusterState) -> Iterator[str]:
    for name, p in state.partitions.items():
        strangers = {*p.replicas, *p.isr} - state.brokers.keys()
        if strangers:
            yield f"{name} has a replica on broker {min(strangers)}, which is not among its brokers"
        if not p.replicas:
            yield f"{name} has no replica"
        if p.leader is not None and p.leader not in p.replicas:
            yield f"{name} is led by broker {p.leader}, which has no replica of it"
