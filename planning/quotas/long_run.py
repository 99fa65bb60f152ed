"""Long-run throughput of a throttle in closed form, simple enough for a column expression in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from headroom.planning.quotas.limits import QuotaWindow
from headroom.schemas.keys import Role

# Share of new bytes in the counted ones, because a fetch ends in the middle of a producer batch, whose beginning is
# sent again. Minimum, usual value and maximum, because brokers do not report batch sizes.
YIELD_RATIOS = (0.95, 0.985, 1.0)


def burst_bytes(role: Role, responses: Iterable[float]) -> float:
    """Return the bytes that one check of a quota lets through.

    A leader counts each response before it checks the next fetch (``KafkaApis.handleFetchRequest``), so one response
    passes, at most the largest. Every fetcher thread of a destination checks independently and counts bytes on arrival,
    so all may pass.

    Args:
        role: role of the quota.
        responses: size of a full response of each fetcher, in bytes (``FetchLimits.burst_bytes``).
    """
    return max(responses, default=0.0) if role is Role.LEADER else sum(responses)


@dataclass(frozen=True)
class CopyRate:
    """New bytes per second that out-of-sync replicas get behind a throttle, including data written meanwhile.

    Attributes:
        low: minimum.
        middle: expected value.
        high: maximum.
    """

    low: float
    middle: float
    high: float


def copy_bytes_per_s(
    throttle_bytes_per_s: float, in_sync_bytes_per_s: float, burst_bytes: float | None, window: QuotaWindow
) -> float:
    """Return the counted bytes per second of out-of-sync replicas in the long run, including bytes sent again.

    Each window has room for the part of the quota that in-sync followers leave. The quota is checked before a response
    and cuts none. The room is therefore rounded up to whole responses: at least one, even if there is almost no room.

    Args:
        throttle_bytes_per_s: throttle.
        in_sync_bytes_per_s: traffic of in-sync followers.
        burst_bytes: bytes that one check of the quota lets through; None if unknown, then the room is not rounded.
        window: samples of the quota.
    """
    left = throttle_bytes_per_s - in_sync_bytes_per_s
    if left < 0:
        return 0.0
    if not burst_bytes:
        return left
    responses = math.floor(left * window.mean_s / burst_bytes) + 1
    return responses * burst_bytes / window.mean_s


def copy_rate(
    throttle_bytes_per_s: float, in_sync_bytes_per_s: float, burst_bytes: float | None, window: QuotaWindow
) -> CopyRate:
    """Return the new bytes per second of ``copy_bytes_per_s``, with bounds.

    At least one response passes in every window, however late it is requested. At most one response passes beyond the
    room.

    Args:
        throttle_bytes_per_s: throttle.
        in_sync_bytes_per_s: traffic of in-sync followers.
        burst_bytes: bytes that one check of the quota lets through; None if unknown.
        window: samples of the quota.
    """
    least, usual, most = YIELD_RATIOS
    left = throttle_bytes_per_s - in_sync_bytes_per_s
    if left < 0:
        return CopyRate(0.0, 0.0, 0.0)
    burst = burst_bytes or 0.0
    return CopyRate(
        least * max(left, burst / (window.length_s + window.sample_s)),
        usual * copy_bytes_per_s(throttle_bytes_per_s, in_sync_bytes_per_s, burst_bytes, window),
        most * (left + burst / window.length_s),
    )


@dataclass(frozen=True)
class CopyTime:
    """Time until copies behind one throttle are complete, in seconds.

    Attributes:
        low_s: earliest; None if never.
        middle_s: expected; None if never.
        high_s: latest; None if never.
    """

    low_s: float | None
    middle_s: float | None
    high_s: float | None


def catch_up(
    remaining_bytes: float, written_bytes_per_s: float, rate: CopyRate, room_bytes: float, window: QuotaWindow
) -> CopyTime:
    """Return the time until the remaining bytes are copied under a throttle.

    The current room of the quota is copied at once and counts for one window. The rest arrives in bursts, one window
    apart, so the end may differ from a steady flow by half a window.

    Args:
        remaining_bytes: bytes still to copy.
        written_bytes_per_s: write rate meanwhile.
        rate: long-run rate of new bytes.
        room_bytes: bytes by which the quota is below its limit now.
        window: samples of the quota.
    """
    at_once = min(max(0.0, room_bytes), remaining_bytes)

    def after_s(copied_bytes_per_s: float, windows: float) -> float | None:
        if remaining_bytes <= 0:
            return 0.0
        gained = copied_bytes_per_s - written_bytes_per_s
        if gained <= 0:
            return None
        full = min(1.0, at_once / (copied_bytes_per_s * window.mean_s))
        return max(0.0, (remaining_bytes - at_once) / gained + (full / 2 + windows) * window.mean_s)

    # Copies smaller than the current room finish in one burst.
    half = 0.5 if at_once < remaining_bytes else 0.0
    return CopyTime(after_s(rate.high, -half), after_s(rate.middle, 0.0), after_s(rate.low, half))
