"""Kafka's replication quota, played forward: how long a throttled copy takes, burst by burst.

A quota is a mean over the samples of the last eleven seconds. A copy takes all the room there is at once, then waits
until what it took leaves the window; between its bursts the lag grows. When a copy ends therefore depends on what lies
in the windows of both ends, the leader's and the destination's, and on when it came in. So this does what the brokers
do: samples as Kafka's ``SampledStat`` keeps them, the mean as ``SimpleRate`` takes it, a replica held back while either
end is at its rate or above, in-sync traffic that counts and is never held back.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from statistics import fmean

# replication.quota.window.num and replication.quota.window.size.seconds, as Kafka ships them.
_SAMPLES, _SAMPLE_S = 11, 1.0
WINDOW_S = _SAMPLES * _SAMPLE_S
_STEP_S = 0.05
# replica.fetch.max.bytes and replica.fetch.response.max.bytes: what one fetch brings of a partition and in all, also
# where less is left of the quota.
_FETCH_BYTES, _RESPONSE_BYTES = 1_048_576.0, 10_485_760.0
# replica.fetch.backoff.ms: a destination at its rate looks again after this long.
_BACKOFF_S = 1.0
# A burst is as fast as disk and network allow: so many fetches in a step, and that many times the throttle at least.
_FETCHES, _BURST_RATIO = 5, 10.0
# After so many seconds the mean of what was gained tells the rest: from one cycle of bursts to another, the first of
# which begins when what was in the windows has left them.
_PLAYED_S, _CYCLE_S, _SETTLED_S = 132, 12, 24


class Window:
    """The samples of one quota. Times in seconds, amounts in bytes.

    Args:
        amounts: what lies in it per second of age, youngest first, ``WINDOW_S`` + 1 of them; time 0 is now.
        old_s: how long ago it counted its first; infinity: long ago.
        shift_s: by how much later its samples began than a whole number of seconds ago.
    """

    def __init__(self, amounts: Sequence[float], old_s: float = math.inf, shift_s: float = 0.0) -> None:
        self._old_s = old_s
        self._starts = [max(shift_s - age * _SAMPLE_S, -old_s) for age in range(_SAMPLES + 1, 0, -1)]
        self._amounts = list(reversed(amounts))
        samples = zip(self._starts, self._amounts, strict=True)
        self._ends = [start + (_SAMPLE_S if amount else 0.0) for start, amount in samples]
        self._current = _SAMPLES
        self._total = sum(amounts)
        self._look_again()

    def shifted(self, shift_s: float) -> Window:
        """Return another of the same amounts, to be played with; this one has not been."""
        return Window(self._amounts[::-1], self._old_s, shift_s)

    def record(self, at_s: float, amount: float) -> None:
        """Count an amount."""
        if at_s - self._starts[self._current] >= _SAMPLE_S:
            self._current = (self._current + 1) % (_SAMPLES + 1)
            self._clear(self._current, at_s)
            self._look_again()
        self._amounts[self._current] += amount
        self._ends[self._current] = at_s
        self._total += amount

    def exceeded(self, at_s: float, bytes_per_s: float) -> bool:
        """Return whether the mean is at a rate or above."""
        if at_s >= self._leaves_s:
            for index, end in enumerate(self._ends):
                if at_s - end >= WINDOW_S:
                    self._clear(index, at_s)
            self._look_again()
        return self._total >= bytes_per_s * max(_SAMPLE_S, at_s - self._oldest_s)

    def _clear(self, index: int, at_s: float) -> None:
        self._total -= self._amounts[index]
        self._amounts[index] = 0.0
        self._starts[index] = self._ends[index] = at_s

    def _look_again(self) -> None:
        """Note when the oldest sample began, and until when none leaves for sure."""
        self._oldest_s = min(self._starts)
        self._leaves_s = min(self._ends) + WINDOW_S


@dataclass
class End:
    """One end of a copy: a broker and the throttle of one role.

    Attributes:
        window: what its quota has counted.
        in_sync_bytes_per_s: traffic that counts and is never held back.
        throttle_bytes_per_s: rate in force until the new one is applied; None: none.
        held_s: when it was last found used up.
        free_s: when it was last found not to be, and has counted no copy since.
    """

    window: Window
    in_sync_bytes_per_s: float
    throttle_bytes_per_s: float | None
    held_s: float = -1.0
    free_s: float = -1.0


@dataclass
class Moving:
    """A partition that moves: when its last replica has caught up, those that leave it fetch no more.

    Attributes:
        behind: replicas that have not caught up.
        leaving: in-sync traffic that ends then: whose quota counts it, and bytes per second.
    """

    behind: int
    leaving: list[tuple[End, float]]


@dataclass
class Part:
    """What one replica copies, or several together.

    Attributes:
        remaining_bytes: bytes still to copy.
        write_bytes_per_s: what is written meanwhile.
        moving: its partition; None: nothing ends when it is done.
    """

    remaining_bytes: float
    write_bytes_per_s: float
    moving: Moving | None = None


@dataclass
class Copy:
    """What out-of-sync replicas copy from one leading broker to one destination.

    Attributes:
        leader: the leader's quota; None: not limited.
        destination: the destination's quota; None: not limited.
        parts: what is copied; a fetch brings some of each.
        ready_s: when it looks again whether it may fetch.
        grown_s: until when ``remaining_bytes`` counts what is written.
    """

    leader: End | None
    destination: End | None
    parts: list[Part]
    ready_s: float = 0.0
    grown_s: float = 0.0
    ends: list[End] = field(init=False)

    def __post_init__(self) -> None:
        """Note the quotas that limit it."""
        self.ends = [end for end in (self.leader, self.destination) if end is not None]

    def grow(self, at_s: float) -> None:
        """Add what was written since it was looked at last."""
        for part in self.parts:
            part.remaining_bytes += part.write_bytes_per_s * (at_s - self.grown_s)
        self.grown_s = at_s

    def left_bytes(self, at_s: float) -> float:
        """Return what it has to copy."""
        self.grow(at_s)
        return sum(part.remaining_bytes for part in self.parts)


def copied_s(copies: Sequence[Copy], throttle_bytes_per_s: float, applied_s: float) -> float | None:
    """Return seconds from when a throttle is applied on all ends until all is copied; None: never.

    Args:
        copies: what is to be copied; they and their windows are used up.
        throttle_bytes_per_s: the rate in force from then on.
        applied_s: seconds from now until then.
    """
    ends = {id(end): end for copy in copies for end in copy.ends}
    open_copies = list(copies)
    fetch_bytes = max(_FETCH_BYTES, _BURST_RATIO * throttle_bytes_per_s * _STEP_S / _FETCHES)
    second = round(1 / _STEP_S)
    left: list[float] = []
    for step in range(round(applied_s / _STEP_S) + _PLAYED_S * second):
        at_s = step * _STEP_S
        applied = at_s >= applied_s
        for end in ends.values():
            if end.in_sync_bytes_per_s > 0:
                end.window.record(at_s, end.in_sync_bytes_per_s * _STEP_S)
        for copy in open_copies:
            leader, destination = copy.leader, copy.destination
            # Most wait: for these it is known by now from another copy of their leader and one of their destination.
            if at_s < copy.ready_s or (
                leader is not None and leader.held_s == at_s and destination is not None and destination.free_s == at_s
            ):
                continue
            _fetch(copy, at_s, throttle_bytes_per_s if applied else None, fetch_bytes)
        open_copies = [copy for copy in open_copies if copy.parts]
        if applied and not open_copies:
            return at_s - applied_s
        if applied and step % second == 0:
            left.append(sum(copy.left_bytes(at_s) for copy in open_copies))
    before, after = fmean(left[_SETTLED_S:][:_CYCLE_S]), fmean(left[-_CYCLE_S:])
    gained_bytes_per_s = (before - after) / (_PLAYED_S - _SETTLED_S - _CYCLE_S)
    return _PLAYED_S - _CYCLE_S / 2 + after / gained_bytes_per_s if gained_bytes_per_s > 0 else None


def _fetch(copy: Copy, at_s: float, throttle: float | None, fetch_bytes: float) -> None:
    """Let a copy fetch for one step, until an end holds it back."""
    most_bytes = min(fetch_bytes, max(fetch_bytes, _RESPONSE_BYTES) / len(copy.parts))
    for _ in range(_FETCHES):
        if copy.destination is not None and _held(copy.destination, at_s, throttle):
            copy.ready_s = at_s + _BACKOFF_S
            return
        # A leader holds the answer back, and sends it as soon as it may.
        if copy.leader is not None and _held(copy.leader, at_s, throttle):
            return
        copy.grow(at_s)
        fetched = 0.0
        for part in copy.parts:
            taken = min(part.remaining_bytes, most_bytes)
            part.remaining_bytes -= taken
            fetched += taken
        for end in copy.ends:
            end.window.record(at_s, fetched)
            end.free_s = -1.0
        _close(copy)
        if not copy.parts:
            return


def _held(end: End, at_s: float, throttle: float | None) -> bool:
    """Return whether a quota is used up; within a step it does not become free again."""
    if at_s == end.held_s or at_s == end.free_s:
        return at_s == end.held_s
    rate = end.throttle_bytes_per_s if throttle is None else throttle
    held = rate is not None and end.window.exceeded(at_s, rate)
    if held:
        end.held_s = at_s
    else:
        end.free_s = at_s
    return held


def _close(copy: Copy) -> None:
    """Drop the parts that are done; they go on as in-sync traffic, and end what ends with them."""
    done = [part for part in copy.parts if part.remaining_bytes <= 0]
    if not done:
        return
    copy.parts = [part for part in copy.parts if part.remaining_bytes > 0]
    for part in done:
        for end in copy.ends:
            end.in_sync_bytes_per_s += part.write_bytes_per_s
        if part.moving is not None:
            part.moving.behind -= 1
            for end, rate in part.moving.leaving if part.moving.behind == 0 else ():
                end.in_sync_bytes_per_s -= rate
