"""Numbers as people read them, always with a unit."""

from __future__ import annotations

from datetime import datetime, timezone


def rate(bytes_per_s: float | None) -> str:
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


def duration(seconds: float | None) -> str:
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


def clock(epoch_ms: int | None) -> str:
    """Return a time of day such as ``12:34:56 UTC``; None: ``the start``."""
    if epoch_ms is None:
        return "the start"
    return _formatted(epoch_ms, "%H:%M:%S UTC")


def moment(epoch_ms: int) -> str:
    """Return a date and time such as ``2026-11-21 12:34:56 UTC``; of one that no calendar has, the milliseconds."""
    return _formatted(epoch_ms, "%Y-%m-%d %H:%M:%S UTC")


def _formatted(epoch_ms: int, form: str) -> str:
    try:
        return datetime.fromtimestamp(epoch_ms / 1000, timezone.utc).strftime(form)
    except (ValueError, OverflowError, OSError):
        # Tables and messages may hold any number, and the rest of what is shown matters no less.
        return f"{epoch_ms} ms after 1970"


def _scaled(amount: float) -> str:
    for limit, unit in ((1e9, "GB"), (1e6, "MB"), (1e3, "kB")):
        if abs(amount) >= limit:
            return f"{amount / limit:.1f} {unit}"
    return f"{amount:.0f} B"
