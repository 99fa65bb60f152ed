"""Shortest time of throttled copies that the unused part of their quotas allows, whatever its samples are.

A simulation starts from guessed samples. If they are older than the real ones, they leave the window early, and more
passes in the next seconds than the quota can have left. This bound uses no samples, only their mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from planning.finish.copies import CopiedPartition, CopyStream, QuotaEndpoint, ReplicaCopy


def least_s(copies: Iterable[CopyStream], applied_s: float) -> float:
    """Return the shortest time from the change of the rates to the end of all copies, in seconds.

    A quota lets through its rate, and once the part of it that the last window has left: the length of the window times
    the difference between rate and mean. Rates that hardly exceed the traffic give no bound, because there the single
    responses that no quota cuts decide.

    Args:
        copies: copy streams at the time of the tick.
        applied_s: time from then to the change, seconds.
    """
    # By identity, because quotas are mutable.
    streams: dict[int, list[CopyStream]] = defaultdict(list)
    ends: dict[int, QuotaEndpoint] = {}
    for copy in copies:
        for end in copy.ends:
            ends[id(end)] = end
            streams[id(end)].append(copy)
    return max((_least_s(end, streams[key], applied_s) for key, end in ends.items()), default=0.0)


def _least_s(end: QuotaEndpoint, streams: Sequence[CopyStream], applied_s: float) -> float:
    before, after = end.throttle_bytes_per_s, end.applied_bytes_per_s
    if before is None or after is None:
        return 0.0
    parts = [part for copy in streams for part in copy.parts]
    required = end.in_sync_bytes_per_s + sum(part.write_bytes_per_s for part in parts)
    gained = after - required + _leaving_bytes_per_s(end, parts)
    window = end.window.settings
    responses = [copy.limits.burst_bytes(len(copy.parts)) for copy in streams]
    if gained * window.length_s < sum(responses):
        return 0.0
    remaining = sum(part.remaining_bytes for part in parts) - max(responses, default=0.0)
    # What is written until the rates change is copied later, as far as the old rate does not let it through.
    return (remaining - end.window.unused_bytes(after) + (required - before) * applied_s) / gained


def _leaving_bytes_per_s(end: QuotaEndpoint, parts: Iterable[ReplicaCopy]) -> float:
    """Return the traffic of a quota that may end before the last copy, because partitions have moved."""
    moved: dict[int, CopiedPartition] = {id(part.moving): part.moving for part in parts if part.moving is not None}
    if len(moved) < 2:
        return 0.0
    return sum(rate for one in moved.values() for left, rate in one.leaving if left is end)
