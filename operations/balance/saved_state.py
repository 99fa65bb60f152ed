"""Saved states with the loads of their partitions: what ``headroom plan --save-state`` writes, and rates by hour."""

from __future__ import annotations

import math
from pathlib import Path
from typing import Any

import numpy as np
from pydantic import TypeAdapter, ValidationError

from headroom.operations.files import read_json
from headroom.operations.plans.state_file import state_json, state_of_json, write_state_json
from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.observation.loads import ObservedLoads, no_history, observed_loads
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.errors import HeadroomError

_KEY = "loads"
_REMEDY = "Write it again with headroom balance --save-state."
_COUNT = TypeAdapter(int)
_NUMBERS = TypeAdapter(list[int])
_RATES = TypeAdapter(list[float | None])
_BY_BROKER = TypeAdapter(dict[int, float])
_ROWS = TypeAdapter(list[list[float | None]])
_SLOW = TypeAdapter(dict[str, list[int]])


def write_loads(file: Path, state: ClusterState, loads: ObservedLoads) -> None:
    """Write a state with its loads; ``headroom plan --state`` reads the file too.

    Raises:
        HeadroomError: the file cannot be written, or another kind of file exists there.
    """
    write_state_json(file, {**state_json(state), _KEY: _loads_json(loads)})


def read_loads(file: Path) -> tuple[ClusterState, ObservedLoads]:
    """Return the state in a file, and its loads.

    A state of ``headroom plan --save-state`` has write rates of one reading, or of the busy hour, and no others.

    Raises:
        HeadroomError: the file cannot be read, or is no state.
    """
    document = read_json(file, _REMEDY)
    state = state_of_json(document, str(file))
    if _KEY not in document:
        history = no_history(0, "the saved state has none")
        return state, observed_loads(state, history, {})
    return state, _loads_of_json(document[_KEY], state, str(file))


def _loads_json(loads: ObservedLoads) -> dict[str, Any]:
    """Return loads as a JSON object: rates in bytes and requests per second, null if unknown."""
    return {
        "wanted_hours": loads.wanted_hours,
        "hours_ms": list(loads.hours_ms),
        "write_bytes_per_s": _hours_json(loads.write),
        "read_bytes_per_s": _values(loads.read),
        "requests_per_s": _values(loads.requests),
        "source": loads.source,
        "read_bytes_per_s_by_hour": _hours_json(loads.read_by_hour),
        "requests_per_s_by_hour": _hours_json(loads.requests_by_hour),
        "follower_reads_bytes_per_s": {str(broker): rate for broker, rate in sorted(loads.follower_reads.items())},
        "unmeasured_brokers": sorted(loads.unmeasured),
        "slow_brokers": {
            "take_nothing": sorted(loads.slow.take_nothing),
            "give_replicas": sorted(loads.slow.give_replicas),
        },
    }


def _loads_of_json(fields: Any, state: ClusterState, subject: str) -> ObservedLoads:
    if not isinstance(fields, dict):
        raise HeadroomError(subject, f"{_KEY} is not an object", _REMEDY)
    try:
        loads = ObservedLoads(
            _COUNT.validate_python(fields.get("wanted_hours"), strict=True),
            tuple(_NUMBERS.validate_python(fields.get("hours_ms"), strict=True)),
            _array(_ROWS.validate_python(fields.get("write_bytes_per_s"), strict=True)),
            _array(_RATES.validate_python(fields.get("read_bytes_per_s"), strict=True)),
            _array(_RATES.validate_python(fields.get("requests_per_s"), strict=True)),
            str(fields.get("source", "unknown")),
            _hours_of_json(fields.get("read_bytes_per_s_by_hour")),
            _hours_of_json(fields.get("requests_per_s_by_hour")),
            _BY_BROKER.validate_python(fields.get("follower_reads_bytes_per_s", {})),
            frozenset(_NUMBERS.validate_python(fields.get("unmeasured_brokers", []), strict=True)),
            _slow_of_json(fields.get("slow_brokers", {})),
        )
    except (ValidationError, ValueError):
        raise HeadroomError(subject, f"{_KEY} has rates that are not numbers by partition", _REMEDY) from None
    count = len(state.partitions)
    hours = max(1, len(loads.hours_ms))
    by_hour = [rates.shape for rates in (loads.write, loads.read_by_hour, loads.requests_by_hour) if rates is not None]
    if set(by_hour) != {(hours, count)} or loads.read.shape != (count,) or loads.requests.shape != (count,):
        rule = f"{_KEY} has rates of shape {loads.write.shape} for {hours} hours and {count} partitions"
        raise HeadroomError(subject, rule, _REMEDY)
    return loads


def _slow_of_json(fields: Any) -> SlowAdvice:
    """Return what slow brokers are to be spared; a state of an earlier version names none."""
    brokers = _SLOW.validate_python(fields, strict=True)
    return SlowAdvice(frozenset(brokers.get("take_nothing", ())), frozenset(brokers.get("give_replicas", ())))


def _hours_json(rates: FloatArray | None) -> list[list[float | None]] | None:
    return None if rates is None else [_values(row) for row in rates]


def _hours_of_json(rows: Any) -> FloatArray | None:
    return None if rows is None else _array(_ROWS.validate_python(rows, strict=True))


def _values(rates: FloatArray) -> list[float | None]:
    return [None if math.isnan(rate) else rate for rate in rates.tolist()]


def _array(values: Any) -> FloatArray:
    # None becomes NaN.
    return np.array(values, dtype=np.float64)
