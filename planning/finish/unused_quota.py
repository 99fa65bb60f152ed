"""Shortest time of throttled copies that the unused part of their quotas allows, whatever its samples are.

A simulation starts from guessed samples. If they are older than the real ones, they leave the window early, and more
passes in the next seconds than the quota can have left. This bound uses no samples, only their mean.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from headroom.planning.finish.copies import CopiedPartition, CopyStream, QuotaEndpoint, ReplicaCopy

# Windows after the change of the rates, in which the change itself sets the phase of the bursts.
_KNOWN_WINDOWS = 2.0


class EndBounds(NamedTuple):
    """Bounds of the end of all copies by the quota that takes longest, in seconds from the change of the rates.

    Attributes:
        shortest_s: time that its rate and its unused part need; 0 if there is no bound.
        window_s: length of its window: what passes comes in bursts, so the end may be this much later.
    """

    shortest_s: float
    window_s: float

    def within(self, ended_s: float, phase: float) -> float:
        """Return a simulated end that respects the bound: its own, or at a phase of the window after the bound.

        Args:
            ended_s: end of a simulation, seconds.
            phase: assumed part of the window, 0 to 1.
        """
        return ended_s if ended_s >= self.shortest_s else self.shortest_s + phase * self.window_s

    def latest_s(self, ended_s: float) -> float:
        """Return the latest end with the same traffic in seconds, if the phase of the window is another one.

        The first two bursts follow the change of the rates, so their phase is known.

        Args:
            ended_s: end of a simulation, seconds.
        """
        has_unknown_phase = self.shortest_s > 0 and max(ended_s, self.shortest_s) > _KNOWN_WINDOWS * self.window_s
        return max(ended_s, self.shortest_s + self.window_s) if has_unknown_phase else ended_s


def end_bounds(copies: Iterable[CopyStream], applied_s: float) -> EndBounds:
    """Return the bounds of the end of all copies.

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
    bounds = [
        EndBounds(_least_s(end, streams[key], applied_s), end.window.settings.mean_s) for key, end in ends.items()
    ]
    longest = max(bounds, default=EndBounds(0.0, 0.0))
    return longest if longest.shortest_s > 0 else EndBounds(0.0, 0.0)


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
