"""Closed form of what a throttle lets through in the long run: simple enough for a column expression in SQL."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

from planning.finish.limits import QuotaWindow
from schemas.alerts import Role

# New bytes of those that count: a fetch ends in the middle of a producer's batch, whose beginning is sent again. Least,
# usual and most; brokers do not report how large batches are.
YIELD_RATIOS = (0.95, 0.985, 1.0)


def burst_bytes(role: Role, responses: Iterable[float]) -> float:
    """Return what one check of a quota lets through, bytes.

    A leader counts each response before it checks the next fetch (``KafkaApis.handleFetchRequest``): one passes, the
    largest at most. Every fetcher thread of a destination checks by itself, and counts what has arrived: all may pass.

    Args:
        role: whose quota.
        responses: bytes of a full response of each of its fetchers (``FetchLimits.burst_bytes``).
    """
    return max(responses, default=0.0) if role is Role.LEADER else sum(responses)


@dataclass(frozen=True)
class CopyRate:
    """New bytes per second that out-of-sync replicas get behind a throttle, what is written meanwhile included.

    Attributes:
        low: at least.
        middle: as expected.
        high: at most.
    """

    low: float
    middle: float
    high: float


def copy_bytes_per_s(
    throttle_bytes_per_s: float, in_sync_bytes_per_s: float, burst_bytes: float | None, window: QuotaWindow
) -> float:
    """Return the bytes per second that count for out-of-sync replicas in the long run, those sent again included.

    Once per window there is room for what in-sync followers leave of it. A quota is checked before a response and cuts
    none, so that room is rounded up to whole responses: at least one, even if there is next to no room.

    Args:
        throttle_bytes_per_s: the rate.
        in_sync_bytes_per_s: traffic of in-sync followers.
        burst_bytes: what one check of the quota lets through; None if unknown: room is not rounded.
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
    """Return what ``copy_bytes_per_s`` brings of new bytes, with its bounds.

    At least one response passes in every window, however long it takes until it is asked for; at most one response more
    than there is room for.

    Args:
        throttle_bytes_per_s: the rate.
        in_sync_bytes_per_s: traffic of in-sync followers.
        burst_bytes: what one check of the quota lets through; None if unknown.
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
class CatchUp:
    """When out-of-sync replicas behind one throttle are in sync, seconds from now.

    Attributes:
        low_s: at the earliest; None: never.
        middle_s: as expected; None: never.
        high_s: at the latest; None: never.
    """

    low_s: float | None
    middle_s: float | None
    high_s: float | None


def catch_up(
    remaining_bytes: float, written_bytes_per_s: float, rate: CopyRate, room_bytes: float, window: QuotaWindow
) -> CatchUp:
    """Return when what remains is copied under a throttle.

    The room that the quota has now is copied at once, and counts for one window. What is not copied then comes in
    bursts a window apart: half of one is how far the end may be from that of a steady flow.

    Args:
        remaining_bytes: bytes still to copy.
        written_bytes_per_s: what is written meanwhile.
        rate: new bytes that are copied, in the long run.
        room_bytes: by how much the quota is below its limit now.
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

    # Less than what there is room for comes in one burst.
    half = 0.5 if at_once < remaining_bytes else 0.0
    return CatchUp(after_s(rate.high, -half), after_s(rate.middle, 0.0), after_s(rate.low, half))
