"""Formatting of numbers, durations and times with units."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import datetime, timezone
from typing import Any

_MINUTE_S = 60


def format_rate(bytes_per_s: float | None) -> str:
    """Return a rate such as ``5.6 MB/s`` (1 MB = 10^6 bytes); None: ``unknown``."""
    if bytes_per_s is None:
        return "unknown"
    return f"{_scaled(bytes_per_s)}/s"


def size(size_bytes: float | None) -> str:
    """Return a size such as ``1.2 GB`` (1 GB = 10^9 bytes); None: ``unknown``."""
    return "unknown" if size_bytes is None else _scaled(size_bytes)


def percent(ratio: float) -> str:
    """Return a ratio such as ``12.5 %``."""
    return f"{100 * ratio:.3g} %"


def format_duration(seconds: float | None) -> str:
    """Return a duration such as ``1 h 20 min`` or ``42 s``; None: ``unknown``."""
    if seconds is None:
        return "unknown"
    minutes, rest = divmod(round(seconds), 60)
    if minutes < 1:
        return f"{rest} s"
    hours, minutes = divmod(minutes, 60)
    if hours < 1:
        return f"{minutes} min {rest} s" if minutes < 10 else f"{minutes} min"
    return f"{hours} h {minutes} min"


def span(low_s: float | None, high_s: float | None) -> str:
    """Return a range of durations such as ``50 to 60 s`` or ``50 s to 1 min 10 s``.

    Args:
        low_s: lower end, seconds; None if unknown.
        high_s: upper end, seconds; None if unknown.
    """
    low, high = format_duration(low_s), format_duration(high_s)
    if low_s is None:
        return high if high_s is None else f"at most {high}"
    if high_s is None:
        return f"{low} or more"
    if low == high:
        return low
    # One unit is enough if both ends have the same.
    return f"{round(low_s)} to {high}" if round(high_s) < _MINUTE_S else f"{low} to {high}"


def finish_text(recommendation: Mapping[str, Any]) -> str | None:
    """Return the time to finish under a recommendation, such as ``50 to 60 s``; None if unknown or never.

    Args:
        recommendation: ``finish_s``, and ``finish_low_s`` and ``finish_high_s``, which older versions do not have.
    """
    middle_s, low_s, high_s = (recommendation.get(f"finish_{name}s") for name in ("", "low_", "high_"))
    if middle_s is None:
        return None
    return f"about {format_duration(middle_s)}" if low_s is None or high_s is None else span(low_s, high_s)


def clock(epoch_ms: int | None) -> str:
    """Return a time of day such as ``12:34:56 UTC``; None: ``the start``."""
    if epoch_ms is None:
        return "the start"
    return _formatted(epoch_ms, "%H:%M:%S UTC")


def moment(epoch_ms: int) -> str:
    """Return a date and time such as ``2026-11-21 12:34:56 UTC``; milliseconds if out of the range of dates."""
    return _formatted(epoch_ms, "%Y-%m-%d %H:%M:%S UTC")


def file_moment(epoch_ms: int) -> str:
    """Return a date and time as part of a file name, such as ``20261121-123456``."""
    return _formatted(epoch_ms, "%Y%m%d-%H%M%S").replace(" ", "-")


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


def _formatted(epoch_ms: int, form: str) -> str:
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, timezone.utc).strftime(form)
    except (ValueError, OverflowError, OSError):
        # Tables and messages may contain any number, which must not prevent the rest of the output.
        return f"{epoch_ms} ms after 1970"


def _scaled(amount: float) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(amount) >= limit:
            return f"{amount / limit:.1f} {unit}"
    return f"{amount:.0f} B"
