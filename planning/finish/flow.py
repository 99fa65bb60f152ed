"""Throttled copies as a steady flow, for the time after the end of a simulation.

Each quota's long-run throughput, instead of single fetches, is shared between the copies that it limits. Rates are
constant until the next replica finishes. All copies are computed together, in arrays, because a large move has
thousands of copies and takes hundreds of steps.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from random import Random

import numpy as np
from numpy.typing import NDArray

from headroom.planning.finish.copies import CopyStream, QuotaEndpoint
from headroom.planning.quotas.long_run import YIELD_RATIOS, copy_bytes_per_s

# Replicas that finish within this part of the elapsed time are treated as finished together.
_STEP_RATIO, _STEP_S = 0.03, 1.0
_MOST_STEPS = 1_000
# Longer times count as never. The rate of an unlimited copy makes it finish at once.
_LONGEST_S, _UNLIMITED_BYTES_PER_S = 3e8, 1e12
# Some copies randomly and permanently get more of a quota than others: standard deviation, as a ratio.
_UNEVEN_RATIO = 0.5
# A replica with fewer bytes left is in sync. A sum of weights below the second is that of no copy.
_DONE_BYTES, _NO_WEIGHT = 1.0, 1e-9

Floats = NDArray[np.float64]
Ints = NDArray[np.intp]


class Flow:
    """Copies with constant rates between two finished replicas.

    Args:
        copies: copy streams at ``at_s``; the partitions that they move are changed.
        at_s: start time, seconds.
        seed: seed of the random differences between copies.
    """

    def __init__(self, copies: Iterable[CopyStream], at_s: float, seed: int = 0) -> None:
        streams = [copy for copy in copies if copy.parts]
        parts = [part for copy in streams for part in copy.parts]
        chance = Random(seed)
        self._began_s = self._at_s = at_s
        self._quotas = _Quotas(streams)
        # One value per replica that is not in sync.
        self._moving = np.array([part.moving for part in parts], object)
        self._stream = np.repeat(np.arange(len(streams)), [len(copy.parts) for copy in streams])
        self._remaining = np.array([part.remaining_bytes for part in parts], float)
        self._written = np.array([part.write_bytes_per_s for part in parts], float)
        # One value per copy stream.
        self._weights = np.array([math.exp(_UNEVEN_RATIO * chance.gauss(0, 1)) for _ in streams], float)

    def run(self) -> float | None:
        """Return the time of the last copied byte, seconds; None if never."""
        for _ in range(_MOST_STEPS):
            if not len(self._remaining):
                return self._at_s
            # Each replica gets an equal part of what its stream gets.
            replicas = np.bincount(self._stream, minlength=len(self._weights))
            new = YIELD_RATIOS[1] * self._quotas.shares(replicas, self._weights) / np.maximum(replicas, 1)
            gained = new[self._stream] - self._written
            gaining = gained > 0
            soonest_s = np.min(self._remaining[gaining] / gained[gaining], initial=math.inf)
            if soonest_s > _LONGEST_S:
                return None
            self._advance(max(soonest_s, _STEP_S, _STEP_RATIO * (self._at_s - self._began_s)), gained)
        return None

    def _advance(self, step_s: float, gained: Floats) -> None:
        """Advance the time by a step, and remove replicas that are in sync."""
        self._at_s += step_s
        self._remaining -= gained * step_s
        behind = self._remaining > _DONE_BYTES
        # A replica in sync still fetches what is written, which its quotas count but never hold back.
        self._quotas.keep_up(self._stream[~behind], self._written[~behind])
        for moving in self._moving[~behind]:
            if moving is not None:
                moving.behind -= 1
                # With its last replica in sync the partition has moved, and replicas that leave it stop fetching.
                if moving.behind == 0:
                    self._quotas.end(moving.leaving)
        self._moving, self._stream = self._moving[behind], self._stream[behind]
        self._remaining, self._written = self._remaining[behind], self._written[behind]


class _Quotas:
    """The quotas of copy streams: arrays with one value per quota, and a last one for no limit.

    Args:
        streams: copy streams; an index of them is a position here.
    """

    def __init__(self, streams: Sequence[CopyStream]) -> None:
        self._ends = list({id(end): end for copy in streams for end in copy.ends}.values())
        self._index = {id(end): number for number, end in enumerate(self._ends)}
        self._in_sync = np.array([*(end.in_sync_bytes_per_s for end in self._ends), 0.0], float)
        self._leader = self._positions([copy.leader for copy in streams])
        self._destination = self._positions([copy.destination for copy in streams])
        # By limits and number of replicas: one round of fetches of a stream, bytes.
        limits = {limit: number for number, limit in enumerate(dict.fromkeys(copy.limits for copy in streams))}
        most = max((len(copy.parts) for copy in streams), default=0)
        self._rounds = np.array([[limit.burst_bytes(n) for n in range(most + 1)] for limit in limits], float)
        self._limits = np.array([limits[copy.limits] for copy in streams], np.intp)

    def _positions(self, ends: Sequence[QuotaEndpoint | None]) -> Ints:
        return np.array([len(self._ends) if end is None else self._index[id(end)] for end in ends], np.intp)

    def keep_up(self, streams: Ints, bytes_per_s: Floats) -> None:
        """Count what replicas in sync fetch.

        Args:
            streams: stream of each replica.
            bytes_per_s: write rate of each replica.
        """
        for ends in (self._leader, self._destination):
            self._in_sync += self._sums(ends[streams], bytes_per_s)

    def end(self, leaving: Iterable[tuple[QuotaEndpoint, float]]) -> None:
        """Subtract in-sync traffic that ends: the quota that counts it, and bytes per second."""
        for end, bytes_per_s in leaving:
            number = self._index.get(id(end))
            if number is not None:
                self._in_sync[number] = max(0.0, self._in_sync[number] - bytes_per_s)

    def shares(self, replicas: Ints, weights: Floats) -> Floats:
        """Return the bytes per second of each stream: its share of the quotas, at most that of its scarcest quota.

        Quotas are divided in rounds. Each one divides all quotas that are the scarcest of every stream that they limit.

        Args:
            replicas: number of replicas of each stream that are not in sync.
            weights: weight of each stream.
        """
        shares = np.full(len(weights), _UNLIMITED_BYTES_PER_S)
        left = self._throughputs(replicas)
        streams = np.flatnonzero(replicas)
        while len(streams):
            leader, destination, own = self._leader[streams], self._destination[streams], weights[streams]
            weight = self._sums(leader, own) + self._sums(destination, own)
            per_weight = np.maximum(left, 0.0) / np.maximum(weight, _NO_WEIGHT)
            scarcest = np.minimum(per_weight[leader], per_weight[destination])
            waits = np.zeros(len(left), bool)
            for ends in (leader, destination):
                waits[ends[scarcest < per_weight[ends]]] = True
            divided = ~waits[leader] | ~waits[destination]
            limited = divided & np.isfinite(scarcest)
            limited_shares = scarcest[limited] * own[limited]
            shares[streams[limited]] = limited_shares
            left -= self._sums(leader[limited], limited_shares) + self._sums(destination[limited], limited_shares)
            streams = streams[~divided]
        return shares

    def _throughputs(self, replicas: Ints) -> Floats:
        """Return the throughput of each quota in the long run, bytes per second."""
        rounds = self._rounds[self._limits, replicas]
        # As ``burst_bytes``: the sum of what a destination fetches, the greatest of what a leader sends.
        bursts = self._sums(self._destination, rounds)
        np.maximum.at(bursts, self._leader, rounds)
        quotas = zip(self._ends, self._in_sync.tolist(), bursts.tolist(), strict=False)
        return np.array([*(_throughput(*of_end) for of_end in quotas), math.inf], float)

    def _sums(self, ends: Ints, values: Floats) -> Floats:
        """Return the sum of values per quota, and of those without a limit."""
        return np.bincount(ends, values, minlength=len(self._in_sync)).astype(float)


def _throughput(end: QuotaEndpoint, in_sync_bytes_per_s: float, burst_bytes: float) -> float:
    if end.applied_bytes_per_s is None:
        return _UNLIMITED_BYTES_PER_S
    return copy_bytes_per_s(end.applied_bytes_per_s, in_sync_bytes_per_s, burst_bytes, end.window.settings)
