"""Saved states of a cluster: everything that a plan rests on, as JSON."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

from headroom.operations.files import is_object_with, read_json, write_own
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, PartitionPlacement
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import is_id

_T = TypeVar("_T")
STATE_VERSION = 1
_REMEDY = "Write it again with headroom plan --save-state."
_BROKERS = TypeAdapter(list[BrokerState])
_PARTITIONS = TypeAdapter(list[PartitionPlacement])
_TRUTH: TypeAdapter[bool | None] = TypeAdapter(bool | None)
_LISTS = TypeAdapter(dict[str, TopicLists])
_TOPIC_IDS = TypeAdapter(dict[str, str])
_READ_MS = TypeAdapter(int)


def write_state(file: Path, state: ClusterState) -> None:
    """Write a state to a file.

    Raises:
        HeadroomError: the file cannot be written, or another kind of file exists there.
    """
    write_state_json(file, state_json(state))


def write_state_json(file: Path, state: Mapping[str, Any]) -> None:
    """Write the JSON object of a state, which may have further keys; see ``write_state``."""
    write_own(file, json.dumps(state, separators=(",", ":")) + "\n", _is_state, "a saved state")


def _is_state(content: bytes) -> bool:
    return is_object_with(content, ("version", "cluster", "brokers"))


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
        "waits_for_kept": state.waits_for_kept,
        "brokers": _BROKERS.dump_python(list(state.brokers.values()), mode="json"),
        # Of hundreds of thousands, most have nothing to say of a running move or of log directories.
        "partitions": _PARTITIONS.dump_python(list(state.partitions.values()), mode="json", exclude_defaults=True),
        "topic_ids": dict(state.topic_ids),
        "lists": _LISTS.dump_python(dict(state.lists), mode="json"),
    }


def state_of_json(document: Any, subject: str) -> ClusterState:
    """Return the state in a JSON object.

    Args:
        document: the object.
        subject: name of its file, for errors.

    Raises:
        HeadroomError: it is no state.
    """
    if not isinstance(document, dict) or document.get("version") != STATE_VERSION or not is_id(document["version"]):
        raise HeadroomError(subject, f"is not a saved state of version {STATE_VERSION}", _REMEDY)
    try:
        # One table at a time, because its name is part of the error.
        table = "brokers"
        brokers = _strict(_BROKERS, document.get(table))
        table = "partitions"
        partitions = _strict(_PARTITIONS, document.get(table))
        table = "lists"
        lists = _strict(_LISTS, document.get(table, {}))
        table = "topic_ids"
        topic_ids = _strict(_TOPIC_IDS, document.get(table, {}))
        table = "auto_leader_rebalance"
        balances = _strict(_TRUTH, document.get(table))
        table = "waits_for_kept"
        waits = _strict(_TRUTH, document.get(table))
        table = "read_ms"
        read_ms = _strict(_READ_MS, document.get(table, 0))
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join([table, *(str(part) for part in first["loc"])])
        raise HeadroomError(subject, f"{where}: {first['msg']}", _REMEDY) from None
    names = [partition.name for partition in partitions]
    state = ClusterState(
        cluster=str(document.get("cluster", "")),
        read_ms=read_ms,
        brokers={broker.broker: broker for broker in brokers},
        partitions=dict(zip(names, partitions, strict=True)),
        topic_ids=topic_ids,
        lists=lists,
        auto_leader_rebalance=balances,
        rates_from=str(document.get("rates_from", "unknown")),
        waits_for_kept=waits,
    )
    for problem in (
        *_doubles("broker", [b.broker for b in brokers], state.brokers),
        *_doubles("partition", names, state.partitions),
        *_inconsistencies(state),
    ):
        raise HeadroomError(subject, problem, _REMEDY)
    return state


def _strict(adapter: TypeAdapter[_T], value: Any) -> _T:
    """Return a value of JSON; a text or true is not a number, and 1.0 is no id. Raises ValidationError."""
    # Only JSON itself has a strict mode that makes dataclasses of objects.
    return adapter.validate_json(json.dumps(value), strict=True)


def _doubles(what: str, names: Sequence[Any], different: Sized) -> Iterator[str]:
    if len(different) < len(names):
        twice = min(name for name, times in Counter(names).items() if times > 1)
        yield f"names {what} {twice} more than once"


def _inconsistencies(state: ClusterState) -> Iterator[str]:
    negative = min(state.brokers, default=0)
    if negative < 0:
        yield f"broker {negative} has a negative id"
    known = frozenset(state.brokers)
    for name, p in state.partitions.items():
        if not (known.issuperset(p.replicas) and known.issuperset(p.isr)):
            strangers = {*p.replicas, *p.isr} - known
            yield f"{name} has a replica on broker {min(strangers)}, which is not among its brokers"
        if not p.replicas:
            yield f"{name} has no replica"
        if len(set(p.replicas)) < len(p.replicas):
            yield f"{name} names a replica more than once"
        if p.partition < 0 or min(p.size_bytes or 0, p.untiered_bytes or 0, p.write_bytes_per_s or 0) < 0:
            yield f"{name} has a negative number"
        if p.leader is not None and p.leader not in p.replicas:
            yield f"{name} is led by broker {p.leader}, which has no replica of it"
