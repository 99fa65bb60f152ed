"""Kafka's replication quota, played forward: how long a throttled copy takes, burst by burst.

A quota is a mean over the samples of the last eleven seconds. A copy takes all the room there is at once, then waits
until what it took leaves the window; between its bursts the lag grows. When a copy ends therefore depends on what lies
in the windows of both ends, the leader's and the destination's, and on when it came in. So this does what the brokers
do: samples as Kafka's ``SampledStat`` keeps them, the mean as ``SimpleRate`` takes it, a replica held back while either
end is at its rate or above, in-sync traffic that counts and is never held back.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

# replication.quota.window.num and replication.quota.window.size.seconds, as Kafka ships them.
_SAMPLES, _SAMPLE_S = 11, 1.0
WINDOW_S = _SAMPLES * _SAMPLE_S
_STEP_S = 0.05
# replica.fetch.max.bytes: what one fetch brings of a partition, also where less is left of the quota.
_FETCH_BYTES = 1_048_576.0
# replica.fetch.backoff.ms: a destination at its rate looks again after this long.
_BACKOFF_S = 1.0
# A burst is that much faster than the throttle at least.
_BURST_RATIO = 4.0
# After so long the mean of what was gained tells the rest. A burst comes again every twelve seconds or so.
_PLAYED_S, _MEAN_S = 132.0, 108.0


class Window:
    """The samples of one quota. Times in seconds, amounts in bytes.

    Args:
        amounts: what lies in it per second of age, youngest first, ``WINDOW_S`` + 1 of them; time 0 is now.
    """

    def __init__(self, amounts: Sequence[float]) -> None:
        self._starts = [-age * _SAMPLE_S for age in range(_SAMPLES + 1, 0, -1)]
        self._amounts = list(reversed(amounts))
        samples = zip(self._starts, self._amounts, strict=True)
        self._ends = [start + (_SAMPLE_S if amount else 0.0) for start, amount in samples]
        self._current = _SAMPLES
        self._total = sum(amounts)
        self._look_again()

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
    """

    window: Window
    in_sync_bytes_per_s: float
    throttle_bytes_per_s: float | None


@dataclass
class Copy:
    """What out-of-sync replicas copy from one leading broker to one destination.

    Attributes:
        leader: the leader's quota; None: not limited.
        destination: the destination's quota; None: not limited.
        remaining_bytes: bytes still to copy.
        write_bytes_per_s: what is written to these replicas' partitions meanwhile.
        ready_s: when it looks again whether it may fetch.
    """

    leader: End | None
    destination: End | None
    remaining_bytes: float
    write_bytes_per_s: float
    ready_s: float = 0.0

    @property
    def ends(self) -> list[End]:
        """Return the quotas that limit it."""
        return [end for end in (self.leader, self.destination) if end is not None]


def copied_s(copies: Sequence[Copy], throttle_bytes_per_s: float, applied_s: float) -> float | None:
    """Return seconds from when a throttle is applied on all ends until all is copied; None: never.

    Args:
        copies: what is to be copied; they and their windows are used up.
        throttle_bytes_per_s: the rate in force from then on.
        applied_s: seconds from now until then.
    """
    ends = {id(end): end for copy in copies for end in copy.ends}
    open_copies = list(copies)
    fetch_bytes = max(_FETCH_BYTES, _BURST_RATIO * throttle_bytes_per_s * _STEP_S)
    steps, mean_steps = round((applied_s + _PLAYED_S) / _STEP_S), round(_MEAN_S / _STEP_S)
    left_before = 0.0
    for step in range(steps):
        at_s = step * _STEP_S
        applied = at_s >= applied_s
        for end in ends.values():
            if end.in_sync_bytes_per_s:
                end.window.record(at_s, end.in_sync_bytes_per_s * _STEP_S)
        for copy in open_copies:
            _fetch(copy, at_s, throttle_bytes_per_s if applied else None, fetch_bytes)
        if applied:
            open_copies = list(_still_open(open_copies))
            if not open_copies:
                return at_s - applied_s
        if step == steps - mean_steps:
            left_before = _left(open_copies)
    gained_bytes_per_s = (left_before - _left(open_copies)) / _MEAN_S
    return _PLAYED_S + _left(open_copies) / gained_bytes_per_s if gained_bytes_per_s > 0 else None


def _fetch(copy: Copy, at_s: float, throttle: float | None, fetch_bytes: float) -> None:
    """Let one step pass for a copy: its partitions are written to, and it fetches if no end holds it back."""
    copy.remaining_bytes += copy.write_bytes_per_s * _STEP_S
    if at_s < copy.ready_s:
        return
    for end in copy.ends:
        rate = end.throttle_bytes_per_s if throttle is None else throttle
        if rate is not None and end.window.exceeded(at_s, rate):
            # A leader answers as soon as it may; a destination does not ask for a while.
            copy.ready_s = at_s + _BACKOFF_S if end is copy.destination else at_s
            return
    fetched = min(copy.remaining_bytes, fetch_bytes)
    copy.remaining_bytes -= fetched
    for end in copy.ends:
        end.window.record(at_s, fetched)


def _still_open(copies: Iterable[Copy]) -> Iterable[Copy]:
    """Give the copies that are not done; one that is done goes on as in-sync traffic."""
    for copy in copies:
        if copy.remaining_bytes > 0:
            yield copy
        else:
            for end in copy.ends:
                end.in_sync_bytes_per_s += copy.write_bytes_per_s


def _left(copies: Sequence[Copy]) -> float:
    return sum(copy.remaining_bytes for copy in copies)
