"""Parsing and validation of maintenance windows, key by key."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import MISSING, fields
from typing import Any

from headroom.cli.config.nearest import suggestion
from headroom.schemas.alerts import AlertKind
from headroom.schemas.config import DAYS, MaintenanceWindow
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import QuantityError, parse_duration_s, parse_time_of_day, quote

_WEEK_S = 7 * 86_400


def maintenance_windows(value: Any, origin: str) -> tuple[MaintenanceWindow, ...]:
    """Return the maintenance windows of a list of tables.

    Args:
        value: raw value of the setting.
        origin: key and file or variable of the value, for errors.

    Raises:
        HeadroomError: a key is missing or unknown, or its value is not allowed.
    """
    if not isinstance(value, list) or not all(isinstance(table, dict) for table in value):
        raise HeadroomError(origin, "must be tables", "Begin each with a line [[alerts.maintenance]].")
    return tuple(_window(table, f"window {number} of {origin}") for number, table in enumerate(value, start=1))


def _window(table: Mapping[str, Any], origin: str) -> MaintenanceWindow:
    for name in table:
        if name not in _READERS:
            raise HeadroomError(f"{name} of {origin}", "is not a setting", suggestion(name, _READERS))
    for item in fields(MaintenanceWindow):
        if item.default is MISSING and item.name not in table:
            raise HeadroomError(f"{item.name} of {origin}", "is not set", "A window needs days, at and lasts.")
    values = {}
    for name, value in table.items():
        try:
            values[name] = _READERS[name](value)
        except QuantityError as error:
            raise HeadroomError(f"{name} of {origin}", error.rule, error.remedy) from None
    return MaintenanceWindow(**values)


def _days(value: Any) -> tuple[str, ...]:
    days = _texts(value)
    if not days or not set(days) <= set(DAYS):
        raise QuantityError(f"must be a list of days: {', '.join(DAYS)}")
    return days


def _at(value: Any) -> str:
    if not isinstance(value, str):
        raise QuantityError('must be a time of day in UTC, such as "22:00"')
    parse_time_of_day(value)
    return value


def _lasts_s(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float, str)):
        raise QuantityError(f"{quote(str(value))} is not a time such as 4h")
    seconds = parse_duration_s(value) if isinstance(value, str) else value
    # Before it becomes a float: a whole number of TOML may be too large for one.
    if not 0 < seconds <= _WEEK_S:
        raise QuantityError("must be more than nothing and at most a week")
    return float(seconds)


def _kinds(value: Any) -> tuple[str, ...]:
    kinds, known = _texts(value), [kind.value for kind in AlertKind]
    if not set(kinds) <= set(known):
        raise QuantityError(f"must be a list of kinds of alerts: {', '.join(known)}")
    return kinds


def _texts(value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(text, str) and text for text in value):
        raise QuantityError('must be a list of texts, such as ["a", "b"]')
    return tuple(value)


_READERS: dict[str, Callable[[Any], Any]] = {
    "days": _days,
    "at": _at,
    "lasts": _lasts_s,
    "clusters": _texts,
    "kinds": _kinds,
    "subjects": _texts,
}
