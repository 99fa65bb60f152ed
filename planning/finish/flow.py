"""Throttled copies as a steady flow, for the time after the end of a simulation.

Each quota's long-run throughput, instead of single fetches, is shared between the copies that it limits. Rates are
constant until the next replica finishes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from random import Random

from planning.finish.copies import CopyStream, QuotaEndpoint, ReplicaCopy
from planning.finish.long_run import YIELD_RATIOS, burst_bytes, copy_bytes_per_s
from schemas.alerts import Role

# Replicas that finish within this part of the elapsed time are treated as finished together.
_STEP_RATIO, _STEP_S = 0.03, 1.0
_MOST_STEPS = 1_000
# Longer times count as never. The rate of an unlimited copy makes it finish at once.
_LONGEST_S, _UNLIMITED_BYTES_PER_S = 3e8, 1e12
# Some copies randomly and permanently get more of a quota than others: standard deviation, as a ratio.
_UNEVEN_RATIO = 0.5


class Flow:
    """Copies with constant rates between two finished replicas.

    Args:
        copies: copy streams at ``at_s``; they are changed.
        at_s: start time, seconds.
        seed: seed of the random differences between copies.
    """

    def __init__(self, copies: Iterable[CopyStream], at_s: float, seed: int = 0) -> None:
        self._open = [copy for copy in copies if copy.parts]
        self._began_s = self._at_s = at_s
        ends = {id(end): end for copy in self._open for end in copy.ends}
        self._in_sync = {key: end.in_sync_bytes_per_s for key, end in ends.items()}
        chance = Random(seed)
        self._shares = {id(copy): math.exp(_UNEVEN_RATIO * chance.gauss(0, 1)) for copy in self._open}

    def run(self) -> float | None:
        """Return the time of the last copied byte, seconds; None if never."""
        for _ in range(_MOST_STEPS):
            if not self._open:
                return self._at_s
            rates = self._rates()
            soonest_s = min((_done_s(copy, rates[id(copy)]) for copy in self._open), default=math.inf)
            if soonest_s > _LONGEST_S:
                return None
            step_s = max(soonest_s, _STEP_S, _STEP_RATIO * (self._at_s - self._began_s))
            self._advance(step_s, rates)
        return None

    def _advance(self, step_s: float, rates: Mapping[int, float]) -> None:
        """Advance the time by a step, and remove finished replicas."""
        self._at_s += step_s
        for copy in self._open:
            share = rates[id(copy)] / len(copy.parts)
            for part in copy.parts:
                part.remaining_bytes += (part.write_bytes_per_s - share) * step_s
            for part in [part for part in copy.parts if part.remaining_bytes <= 1.0]:
                copy.parts.remove(part)
                self._caught_up(copy, part)
        self._open = [copy for copy in self._open if copy.parts]

    def _caught_up(self, copy: CopyStream, part: ReplicaCopy) -> None:
        # A replica in sync still fetches what is written, which its quotas count but never hold back.
        for end in copy.ends:
            self._in_sync[id(end)] += part.write_bytes_per_s
        if part.moving is None:
            return
        part.moving.behind -= 1
        # With its last replica in sync the partition has moved, and the replicas that leave it stop fetching.
        if part.moving.behind == 0:
            for end, bytes_per_s in part.moving.leaving:
                self._in_sync[id(end)] = max(0.0, self._in_sync.get(id(end), 0.0) - bytes_per_s)

    def _rates(self) -> dict[int, float]:
        """Return the new bytes per second of each copy: its share of the quotas, at most that of its scarcest quota."""
        behind: dict[int, list[CopyStream]] = defaultdict(list)
        ends: dict[int, QuotaEndpoint] = {}
        for copy in self._open:
            for end in copy.ends:
                behind[id(end)].append(copy)
                ends[id(end)] = end
        left = {key: _throughput(end, behind[key], self._in_sync[key]) for key, end in ends.items()}
        weight = {key: sum(self._shares[id(copy)] for copy in behind[key]) for key in left}
        rates: dict[int, float] = {}
        while left:
            scarcest = min(left, key=lambda key: left[key] / weight[key])
            per_weight = max(0.0, left[scarcest] / weight[scarcest])
            for copy in behind[scarcest]:
                if id(copy) not in rates:
                    rates[id(copy)] = per_weight * self._shares[id(copy)]
                    self._subtract(copy, rates[id(copy)], left, weight)
            left.pop(scarcest, None)
        return {id(copy): YIELD_RATIOS[1] * rates.get(id(copy), _UNLIMITED_BYTES_PER_S) for copy in self._open}

    def _subtract(self, copy: CopyStream, bytes_per_s: float, left: dict[int, float], weight: dict[int, float]) -> None:
        """Subtract the rate of a copy from each of its quotas; remove quotas without further copies."""
        for key in [id(end) for end in copy.ends if id(end) in left]:
            left[key] -= bytes_per_s
            weight[key] -= self._shares[id(copy)]
            if weight[key] <= 1e-9:
                del left[key], weight[key]


def _done_s(copy: CopyStream, bytes_per_s: float) -> float:
    """Return the seconds until the first replica of a copy stream finishes; infinity if never."""
    share = bytes_per_s / len(copy.parts)
    gaining = [part for part in copy.parts if share > part.write_bytes_per_s]
    return min((part.remaining_bytes / (share - part.write_bytes_per_s) for part in gaining), default=math.inf)


def _throughput(end: QuotaEndpoint, copies: Sequence[CopyStream], in_sync_bytes_per_s: float) -> float:
    """Return the throughput of a quota in the long run, bytes per second."""
    if end.applied_bytes_per_s is None:
        return _UNLIMITED_BYTES_PER_S
    role = Role.LEADER if end is copies[0].leader else Role.FOLLOWER
    burst = burst_bytes(role, [copy.limits.burst_bytes(len(copy.parts)) for copy in copies])
    return copy_bytes_per_s(end.applied_bytes_per_s, in_sync_bytes_per_s, burst, end.window.settings)
