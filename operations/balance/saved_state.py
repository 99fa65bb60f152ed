"""Saved states with the loads of their partitions: what ``headroom plan --save-state`` writes, and rates by hour."""

from __future__ import annotations

import base64
from collections.abc import Callable
from pathlib import Path
from typing import Annotated, Any

import numpy as np
from pydantic import Field, TypeAdapter, ValidationError

from headroom.operations.balance.saved_actions import SavedActions, actions_json, actions_of_json
from headroom.operations.files import read_json
from headroom.operations.plans.state_file import state_json, state_of_json, write_state_json
from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.observation.loads import ObservedLoads, no_history, observed_loads
from headroom.planning.balance.slow_brokers.slow_brokers import SlowAdvice
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.errors import HeadroomError

_KEY, _PROPOSED = "loads", "proposed"
# Version 1 has rates as numbers, null if unknown.
LOADS_VERSION = 2
_REMEDY = "Write it again with headroom balance --save-state."
_COUNT = TypeAdapter(int)
_NUMBERS = TypeAdapter(list[int])
_RATES = TypeAdapter(list[float | None])
_TEXT = TypeAdapter(str)
_BY_BROKER = TypeAdapter(dict[int, Annotated[float, Field(ge=0, allow_inf_nan=False)]])
_ROWS = TypeAdapter(list[Any])
_BINARY = np.dtype("<f8")
_SLOW = TypeAdapter(dict[str, list[int]])


def write_loads(file: Path, state: ClusterState, loads: ObservedLoads, proposed: SavedActions | None = None) -> None:
    """Write a state with its loads; ``headroom plan --state`` reads the file too.

    Args:
        file: the file.
        state: the state.
        loads: its loads.
        proposed: actions that were proposed for it; None if none were, or if they are not to be saved.

    Raises:
        HeadroomError: the file cannot be written, or another kind of file exists there.
    """
    found = {} if proposed is None else {_PROPOSED: actions_json(proposed)}
    write_state_json(file, {**state_json(state), _KEY: _loads_json(loads), **found})


def read_loads(file: Path) -> tuple[ClusterState, ObservedLoads, SavedActions | None]:
    """Return the state in a file, its loads, and the actions that were proposed for it, if they are there.

    A state of ``headroom plan --save-state`` has write rates of one reading, or of the busy hour, and no others.

    Raises:
        HeadroomError: the file cannot be read, or is no state.
    """
    document = read_json(file, _REMEDY)
    state = state_of_json(document, str(file))
    if _KEY not in document:
        history = no_history(0, "the saved state has none")
        return state, observed_loads(state, history, {}), None
    return state, _loads_of_json(document[_KEY], state, str(file)), actions_of_json(document.get(_PROPOSED))


def _loads_json(loads: ObservedLoads) -> dict[str, Any]:
    """Return loads as a JSON object: rates in bytes and requests per second, as ``_row_text`` writes them."""
    return {
        "version": LOADS_VERSION,
        "wanted_hours": loads.wanted_hours,
        "hours_ms": list(loads.hours_ms),
        "write_bytes_per_s": _hours_json(loads.write),
        "read_bytes_per_s": _row_text(loads.read),
        "requests_per_s": _row_text(loads.requests),
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
        version = _COUNT.validate_python(fields.get("version", 1), strict=True)
        if version > LOADS_VERSION:
            rule = f"{_KEY} is of version {version}, and this Headroom reads versions up to {LOADS_VERSION}"
            raise HeadroomError(subject, rule, "Use the version of Headroom that wrote it, or a later one.")
        row = _row_of_numbers if version == 1 else _row_of_text
        loads = ObservedLoads(
            _COUNT.validate_python(fields.get("wanted_hours"), strict=True),
            tuple(_NUMBERS.validate_python(fields.get("hours_ms"), strict=True)),
            _hours_of_json(fields.get("write_bytes_per_s"), row),
            row(fields.get("read_bytes_per_s")),
            row(fields.get("requests_per_s")),
            str(fields.get("source", "unknown")),
            _hours_if_known(fields.get("read_bytes_per_s_by_hour"), row),
            _hours_if_known(fields.get("requests_per_s_by_hour"), row),
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


def _hours_json(rates: FloatArray | None) -> list[str] | None:
    return None if rates is None else [_row_text(row) for row in rates]


def _hours_if_known(rows: Any, row: Callable[[Any], FloatArray]) -> FloatArray | None:
    return None if rows is None else _hours_of_json(rows, row)


def _hours_of_json(rows: Any, row: Callable[[Any], FloatArray]) -> FloatArray:
    return np.array([row(own) for own in _ROWS.validate_python(rows, strict=True)])


def _row_text(rates: FloatArray) -> str:
    """Return rates as base64 of numbers of 8 bytes, little-endian; NaN if unknown."""
    # Digits of millions of numbers take several times as long to read.
    return base64.b64encode(rates.astype(_BINARY).tobytes()).decode("ascii")


def _row_of_text(text: Any) -> FloatArray:
    content = base64.b64decode(_TEXT.validate_python(text, strict=True), validate=True)
    rates = np.frombuffer(content, dtype=_BINARY).astype(np.float64)
    if np.isinf(rates).any():
        raise ValueError("a rate is infinite")
    return rates


def _row_of_numbers(values: Any) -> FloatArray:
    # None becomes NaN.
    return np.array(_RATES.validate_python(values, strict=True), dtype=np.float64)
