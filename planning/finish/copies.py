"""Copies of out-of-sync replicas, and the quotas that limit them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from planning.finish.limits import DEFAULT_FETCH, FetchLimits
from planning.finish.quota import QuotaSamples


@dataclass(eq=False)
class QuotaEndpoint:
    """One end of a copy: a broker and the throttle of one role.

    Attributes:
        window: what its quota has counted.
        in_sync_bytes_per_s: traffic that counts and is never held back.
        throttle_bytes_per_s: rate in force until the change; None: none.
        applied_bytes_per_s: rate in force from the change on; None: none.
        waiting: copies that wait until the quota has room.
        check_s: when one of them checks again; infinity: not planned.
    """

    window: QuotaSamples
    in_sync_bytes_per_s: float
    throttle_bytes_per_s: float | None
    applied_bytes_per_s: float | None
    waiting: list[CopyStream] = field(default_factory=list)
    check_s: float = math.inf

    def free_s(self, at_s: float, applied: bool) -> float:
        """Return ``at_s`` if the quota is not exceeded, else the earliest time at which it may have room."""
        rate = self.applied_bytes_per_s if applied else self.throttle_bytes_per_s
        if rate is None:
            return at_s
        self.window.advance(at_s, self.in_sync_bytes_per_s)
        room = self.window.room(at_s, rate)
        return at_s if room >= 0 else self.window.next_check_s(at_s, room, rate - self.in_sync_bytes_per_s)

    @property
    def fastest(self) -> float:
        """Return the greatest rate that is ever in force, bytes per second; 0: there is none."""
        return max(self.throttle_bytes_per_s or 0.0, self.applied_bytes_per_s or 0.0)

    def room_bytes(self, at_s: float, applied: bool) -> float:
        """Return what the quota has room for now, negative if it is exceeded; infinite without one."""
        rate = self.applied_bytes_per_s if applied else self.throttle_bytes_per_s
        return math.inf if rate is None else self.window.room(at_s, rate)

    def record(self, at_s: float, amount: float) -> None:
        """Count a response."""
        self.window.advance(at_s, self.in_sync_bytes_per_s)
        self.window.record(at_s, amount)

    def change(self, at_s: float, bytes_per_s: float) -> None:
        """Let in-sync traffic grow or shrink from now on."""
        self.window.advance(at_s, self.in_sync_bytes_per_s)
        self.in_sync_bytes_per_s = max(0.0, self.in_sync_bytes_per_s + bytes_per_s)


@dataclass(eq=False)
class CopiedPartition:
    """A partition that moves: when its last replica has caught up, those that leave it fetch no more.

    Attributes:
        behind: replicas that have not caught up.
        leaving: in-sync traffic that ends then: whose quota counts it, and bytes per second.
    """

    behind: int
    leaving: Sequence[tuple[QuotaEndpoint, float]]

    def caught_up(self, at_s: float) -> None:
        """Note that one more replica has."""
        self.behind -= 1
        if self.behind == 0:
            for end, bytes_per_s in self.leaving:
                end.change(at_s, -bytes_per_s)


@dataclass(eq=False)
class ReplicaCopy:
    """What one replica copies.

    Attributes:
        remaining_bytes: bytes still to copy at ``grown_s``.
        write_bytes_per_s: what is written meanwhile.
        moving: its partition; None: nothing ends when it is done.
        grown_s: until when ``remaining_bytes`` counts what is written.
    """

    remaining_bytes: float
    write_bytes_per_s: float
    moving: CopiedPartition | None = None
    grown_s: float = 0.0

    def left_bytes(self, at_s: float) -> float:
        """Return what it still has to copy."""
        self.remaining_bytes += self.write_bytes_per_s * (at_s - self.grown_s)
        self.grown_s = at_s
        return self.remaining_bytes


@dataclass(eq=False)
class CopyStream:
    """What one fetcher thread of a destination copies from one leading broker.

    Attributes:
        leader: the leader's quota; None: not limited.
        destination: the destination's quota; None: not limited.
        parts: what is copied, in the order of the fetch session.
        limits: what a fetch brings.
        arriving_bytes: a response on its way.
        asked_s: when the last fetch was sent.
        served_s: when the last response was sent.
        luck: how often it is first of those that wait, and how fast its fetches follow each other, against others.
        pace: the same in one burst.
    """

    leader: QuotaEndpoint | None
    destination: QuotaEndpoint | None
    parts: deque[ReplicaCopy]
    limits: FetchLimits = DEFAULT_FETCH
    arriving_bytes: float = 0.0
    asked_s: float = 0.0
    served_s: float = 0.0
    luck: float = 1.0
    pace: float = 1.0

    @property
    def ends(self) -> list[QuotaEndpoint]:
        """Return the quotas that limit it."""
        return [end for end in (self.leader, self.destination) if end is not None]

    def respond(self, at_s: float, times: int, batch_bytes: float) -> float:
        """Take some of each partition in turn until a response is full, and return its bytes.

        Args:
            at_s: now.
            times: responses that are taken together.
            batch_bytes: size of producers' batches: what is cut off in the middle of one is sent again.
        """
        left, sent = float(times * self.limits.response_bytes), 0.0
        for _ in range(len(self.parts)):
            part = self.parts[0]
            most, behind = min(times * self.limits.partition_bytes, left), part.left_bytes(at_s)
            taken = min(most, behind)
            again = min(times * batch_bytes / 2, most / 2) if behind > most else 0.0
            part.remaining_bytes -= taken - again
            sent, left = sent + taken, left - taken
            self.parts.rotate(-1)
            if left <= 0:
                break
        return sent

    def close(self, at_s: float) -> None:
        """Drop the parts that are done: their traffic goes on as that of in-sync followers."""
        for part in [part for part in self.parts if part.remaining_bytes <= 0]:
            self.parts.remove(part)
            for end in self.ends:
                end.change(at_s, part.write_bytes_per_s)
            if part.moving is not None:
                part.moving.caught_up(at_s)
