"""Values of settings: texts as quantities, by the kind of the setting, and values of TOML as they are."""

from __future__ import annotations

import types
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any, Union, get_args, get_origin, get_type_hints

from headroom.cli.config.maintenance_windows import maintenance_windows
from headroom.cli.config.sources import Key, RawValue, all_sections
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import (
    QuantityError,
    parse_bytes,
    parse_bytes_per_s,
    parse_duration_s,
    parse_flag,
    parse_number,
    parse_percentage,
    parse_whole,
    quote,
)

# Kinds of numbers that neither their type nor their name gives. Names in _s without a rate are durations.
RATES: frozenset[Key] = frozenset(
    {
        ("cluster", "replication_capacity"),
        ("elections", "batch_write_bytes_per_s"),
        ("elections", "capacity_bytes_per_s"),
        ("elections", "quiet_below"),
        ("reassign", "quiet_below"),
        ("balance", "detect_below"),
        ("balance", "network_in_capacity"),
        ("balance", "network_out_capacity"),
    }
)
BYTES: frozenset[Key] = frozenset({("balance", "move_overhead")})
DURATIONS: frozenset[Key] = frozenset({("alerts", "finish_within"), ("balance", "history"), ("migration", "prepare")})
PERCENTAGES: frozenset[Key] = frozenset(
    {("alerts", "leader_imbalance_percentage"), ("reassign", "rate_percentile"), ("balance", "percentile")}
)


def parsed_value(key: Key, raw: RawValue) -> Any:
    """Return the value of a setting, with texts read as quantities, and with Spark's dotted names rejoined.

    Raises:
        HeadroomError: the value is no quantity of the setting's kind.
    """
    kind = type_of(key)
    try:
        if kind in (bool, int, float):
            return _number(key, kind, raw.value)
        if key == ("spark", "conf") and isinstance(raw.value, dict):
            return _flat(raw.value)
    except QuantityError as error:
        raise HeadroomError(raw.origin, error.rule, error.remedy) from None
    except RecursionError:
        raise HeadroomError(raw.origin, "is nested too deeply", "Settings of Spark are names and texts.") from None
    return maintenance_windows(raw.value, raw.origin) if key == ("alerts", "maintenance") else raw.value


def reader_of(key: Key) -> Callable[[str], float]:
    """Return the reader of a number's or switch's text."""
    kind = type_of(key)
    if kind is not float:
        return parse_flag if kind is bool else parse_whole
    if key in RATES:
        return parse_bytes_per_s
    if key in DURATIONS or key[1].endswith("_s"):
        return parse_duration_s
    if key in PERCENTAGES:
        return parse_percentage
    return parse_bytes if key in BYTES else parse_number


@cache
def type_of(key: Key) -> type:
    """Return the type of a setting, without None."""
    hint = get_type_hints(all_sections()[key[0]])[key[1]]
    if get_origin(hint) in (Union, types.UnionType):
        hint = next(kind for kind in get_args(hint) if kind is not types.NoneType)
    return get_origin(hint) or hint


def _number(key: Key, kind: type, value: Any) -> Any:
    """Return a number or switch; TOML's own values have to be of its type, because 1 is not true, and 4.0 no count."""
    if isinstance(value, str):
        return reader_of(key)(value)
    given = type(value)
    if given is kind or (kind is float and given is int):
        return value
    name = {bool: "true or false", int: "a whole number", float: "a number"}[kind]
    value_text = quote(str(value).lower()) if isinstance(value, (bool, int, float)) else "a table, list or date"
    raise QuantityError(f"{value_text} is not {name}", f"Write {name}.")


def _flat(table: Mapping[str, Any], prefix: str = "") -> dict[str, str]:
    flat: dict[str, str] = {}
    for name, value in table.items():
        if isinstance(value, dict):
            flat.update(_flat(value, f"{prefix}{name}."))
        elif isinstance(value, (str, bool, int, float)):
            flat[f"{prefix}{name}"] = str(value).lower() if isinstance(value, bool) else str(value)
        else:
            raise QuantityError(f"{quote(prefix + name)} is a list or date", "Write a text, a number, true or false.")
    return flat
