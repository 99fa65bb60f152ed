"""Parsers of amounts and times as text: ``100MB``, ``1h30m``, dates, and times of day."""

from __future__ import annotations

import re
from datetime import datetime, time, timedelta, timezone
from zoneinfo import ZoneInfo

from pydantic import ByteSize, TypeAdapter, ValidationError

from planning.elections.quiet_hours import DailyWindow

TIME_OF_DAY = re.compile(r"([01]\d|2[0-3]):[0-5]\d")

_BYTES: TypeAdapter[ByteSize] = TypeAdapter(ByteSize)
_TIME: TypeAdapter[timedelta] = TypeAdapter(timedelta)
_MOMENT: TypeAdapter[datetime] = TypeAdapter(datetime)


def parse_bytes_per_s(text: str) -> float:
    """Return the bytes per second of a text such as ``12500000``, ``12.5MB`` or ``12 MiB/s``.

    1 MB is 10^6 bytes, 1 MiB is 2^20.

    Raises:
        ValueError: the text is not such an amount.
    """
    amount = text.strip().removesuffix("/s").strip()
    try:
        return float(amount)
    except ValueError:
        pass
    try:
        return float(_BYTES.validate_python(amount))
    except ValidationError:
        raise ValueError("must be bytes per second, such as 12500000, 12.5MB or 12MiB") from None


def has_unit(text: str) -> bool:
    """Return whether an amount, such as ``12.5MB``, has a unit; ``/s`` alone is not a unit."""
    return text.strip().removesuffix("/s").rstrip()[-1:].isalpha()


def parse_duration_s(text: str) -> float:
    """Return the seconds of a text such as ``1800``, ``30m``, ``1h30m`` or ``2d``.

    Raises:
        ValueError: the text is no such time.
    """
    try:
        return float(text)
    except ValueError:
        pass
    # pydantic reads ISO 8601, where 1d2h30m is P1DT2H30M.
    days, day_unit, clock = text.strip().upper().replace(" ", "").rpartition("D")
    iso = f"P{days}{day_unit}" + (f"T{clock}" if clock else "")
    try:
        return _TIME.validate_python(iso).total_seconds()
    except ValidationError:
        raise ValueError("must be seconds or a time such as 90s, 30m or 1h30m") from None


def parse_percentage(text: str) -> float:
    """Return the percentage of a text such as ``10`` or ``12.5``.

    Raises:
        ValueError: the text is not a number, for example because it has a percent sign.
    """
    try:
        return float(text)
    except ValueError:
        raise ValueError("must be a number of percent without a sign, such as 10 or 12.5") from None


def parse_moment_ms(text: str) -> int:
    """Return the epoch milliseconds of a date and time such as ``2026-11-22T22:00Z``; without a zone it is UTC.

    Raises:
        ValueError: the text is no such time.
    """
    try:
        moment = _MOMENT.validate_python(text.strip())
    except ValidationError:
        raise ValueError("must be a date and time such as 2026-11-22T22:00Z") from None
    zoned = moment if moment.tzinfo is not None else moment.replace(tzinfo=timezone.utc)
    return round(zoned.timestamp() * 1000)


def parse_window(text: str) -> DailyWindow:
    """Return the daily window of a text such as ``01:00-05:00`` or ``22:00-02:00 Europe/Berlin``.

    Raises:
        ValueError: the text is not such a window, or its time zone is not known on this machine.
    """
    hours, _, zone = text.strip().partition(" ")
    begins, _, ends = hours.partition("-")
    if not TIME_OF_DAY.fullmatch(begins) or not TIME_OF_DAY.fullmatch(ends) or begins == ends:
        raise ValueError('must be a time of day such as "01:00-05:00" (UTC) or "22:00-02:00 Europe/Berlin"')
    return DailyWindow(time.fromisoformat(begins), time.fromisoformat(ends), _zone(zone.strip() or "UTC"))


def _zone(name: str) -> timezone | ZoneInfo:
    if name == "UTC":
        return timezone.utc
    try:
        return ZoneInfo(name)
    # A wrong name may be a folder of zones, or a path outside of them.
    except (KeyError, ValueError, OSError):
        raise ValueError(f"names the time zone {name}, which this machine does not know") from None
