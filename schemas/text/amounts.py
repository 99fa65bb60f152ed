"""Amounts as text: rates, sizes, shares, durations and times. The same amount reads the same wherever it is shown."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime, timezone

UNKNOWN = "unknown"
_MINUTE_S, _HOUR_MIN = 60, 60
# From so many minutes on, seconds are left out.
_MINUTES_ALONE = 10
_DAY_MS = 86_400_000


def rate_text(bytes_per_s: float | None) -> str:
    """Return a rate as text, with 1 MB = 10^6 bytes; ``unknown`` for None.

    ``12.50 MB/s``, from 100 MB/s on ``123.4 MB/s``, below 1 MB/s ``500 kB/s``, below 1 kB/s ``12 B/s``.
    """
    if bytes_per_s is None:
        return UNKNOWN
    amount = abs(bytes_per_s)
    if amount < 0.5:
        return "0 MB/s"
    if amount < 1e3:
        return f"{bytes_per_s:.0f} B/s"
    kilo = round(bytes_per_s / 1e3, 2 if amount < 1e4 else 1)
    if abs(kilo) < 1e3:
        return f"{kilo:g} kB/s"
    text = f"{bytes_per_s / 1e6:,.2f}" if amount < 1e8 else f"{bytes_per_s / 1e6:,.1f}".removesuffix(".0")
    return f"{text} MB/s"


def size_text(size_bytes: float | None) -> str:
    """Return a size such as ``1.2 GB`` (1 GB = 10^9 bytes); ``unknown`` for None."""
    if size_bytes is None:
        return UNKNOWN
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        # What rounds to 1000.0 of a unit is 1.0 of the next.
        if abs(size_bytes) >= limit * (1 - 0.5e-4):
            return f"{size_bytes / limit:.1f} {unit}"
    return f"{size_bytes:.0f} B"


def percent_text(ratio: float) -> str:
    """Return a ratio in percent, such as ``12.5 %``, ``75 %`` or, with two digits below 1 %, ``0.12 %``."""
    percent = 100 * ratio
    if abs(percent) < 0.005:
        return "0 %"
    return f"{percent:.2g} %" if abs(percent) < 1 else f"{percent:.1f}".removesuffix(".0") + " %"


def duration_text(seconds: float | None) -> str:
    """Return a duration such as ``42 s``, ``3 min 20 s``, ``12 min`` or ``1 h 20 min``; ``unknown`` for None."""
    if seconds is None:
        return UNKNOWN
    whole = round(seconds)
    if whole < _MINUTE_S:
        return f"{whole} s"
    if whole < _MINUTES_ALONE * _MINUTE_S:
        return _two_units(whole, _MINUTE_S, "min", "s")
    minutes = round(seconds / _MINUTE_S)
    return f"{minutes} min" if minutes < _HOUR_MIN else _two_units(minutes, _HOUR_MIN, "h", "min")


def _two_units(amount: int, per: int, unit: str, rest_unit: str) -> str:
    whole, rest = divmod(amount, per)
    return f"{whole} {unit} {rest} {rest_unit}" if rest else f"{whole} {unit}"


def duration_range_text(low_s: float | None, high_s: float | None) -> str:
    """Return a range of durations such as ``50 to 60 s`` or ``50 s to 1 min 10 s``.

    Args:
        low_s: lower end, seconds; None if unknown.
        high_s: upper end, seconds; None if unknown.
    """
    low, high = duration_text(low_s), duration_text(high_s)
    if low_s is None:
        return high if high_s is None else f"at most {high}"
    if high_s is None:
        return f"{low} or more"
    if low == high:
        return low
    # One unit is enough if both ends have the same.
    return f"{round(low_s)} to {high}" if round(high_s) < _MINUTE_S else f"{low} to {high}"


def clock_text(epoch_ms: int | None, read_ms: int | None = None) -> str:
    """Return a time of day such as ``12:34:56 UTC``, with its date where that is not today; None: ``the start``.

    Args:
        epoch_ms: the time, epoch milliseconds.
        read_ms: a time of the day that is today, epoch milliseconds; None: it is today.
    """
    if epoch_ms is None:
        return "the start"
    is_today = read_ms is None or epoch_ms // _DAY_MS == read_ms // _DAY_MS
    return _format(epoch_ms, "%H:%M:%S UTC") if is_today else moment_text(epoch_ms)


def moment_text(epoch_ms: int) -> str:
    """Return a date and time such as ``2026-11-21 12:34:56 UTC``; milliseconds if out of the range of dates."""
    return _format(epoch_ms, "%Y-%m-%d %H:%M:%S UTC")


def file_moment(epoch_ms: int) -> str:
    """Return a date and time as part of a file name, such as ``20261121-123456``."""
    return _format(epoch_ms, "%Y%m%d-%H%M%S").replace(" ", "-")


def join_names(names: Sequence[str], count: int | None = None, most: int = 3) -> str:
    """Return the first few names and the number of the others, such as ``a, b and 3 more``.

    Args:
        names: names, possibly truncated.
        count: total number; None if ``names`` is complete.
        most: number of names to list.
    """
    if not names and count:
        return f"{count} partition(s)"
    rest = (len(names) if count is None else count) - len(names[:most])
    return ", ".join(names[:most]) + (f" and {rest} more" if rest > 0 else "")


def _format(epoch_ms: int, form: str) -> str:
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, timezone.utc).strftime(form)
    except (ValueError, OverflowError, OSError):
        # Tables and messages may contain any number, which must not prevent the rest of the output.
        return f"{epoch_ms} ms after 1970"
