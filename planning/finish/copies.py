"""Copies of out-of-sync replicas, and the quotas that limit them."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Sequence
from dataclasses import dataclass, field

from headroom.planning.quotas.limits import DEFAULT_FETCH, FetchLimits
from headroom.planning.quotas.samples import QuotaSamples


@dataclass(eq=False)
class QuotaEndpoint:
    """One end of a copy: a broker and the throttle of one role.

    Attributes:
        window: traffic counted by the quota.
        in_sync_bytes_per_s: counted traffic that the quota never limits.
        throttle_bytes_per_s: rate in force until the change; None if there is none.
        applied_bytes_per_s: rate in force from the change on; None if there is none.
        waiting: copies that wait for room in the quota.
        check_s: time of the next quota check by a waiting copy; infinity if none is planned.
    """

    window: QuotaSamples
    in_sync_bytes_per_s: float
    throttle_bytes_per_s: float | None
    applied_bytes_per_s: float | None
    waiting: list[CopyStream] = field(default_factory=list)
    check_s: float = math.inf

    def open_at_s(self, at_s: float, applied: bool) -> float:
        """Return ``at_s`` if the quota is not exceeded, otherwise the earliest time at which it may have room."""
        rate = self.applied_bytes_per_s if applied else self.throttle_bytes_per_s
        if rate is None:
            return at_s
        self.window.advance(at_s, self.in_sync_bytes_per_s)
        room = self.window.room(at_s, rate)
        return at_s if room >= 0 else self.window.next_check_s(at_s, room, rate - self.in_sync_bytes_per_s)

    @property
    def fastest(self) -> float:
        """Return the higher of the two rates, in bytes per second; 0 if there is none."""
        return max(self.throttle_bytes_per_s or 0.0, self.applied_bytes_per_s or 0.0)

    def room_bytes(self, at_s: float, applied: bool) -> float:
        """Return the current room in the quota in bytes: negative if it is exceeded, infinite without a rate."""
        rate = self.applied_bytes_per_s if applied else self.throttle_bytes_per_s
        return math.inf if rate is None else self.window.room(at_s, rate)

    def record(self, at_s: float, amount: float) -> None:
        """Count the bytes of a response."""
        self.window.advance(at_s, self.in_sync_bytes_per_s)
        self.window.record(at_s, amount)

    def change(self, at_s: float, bytes_per_s: float) -> None:
        """Increase or decrease the in-sync traffic from now on."""
        self.window.advance(at_s, self.in_sync_bytes_per_s)
        self.in_sync_bytes_per_s = max(0.0, self.in_sync_bytes_per_s + bytes_per_s)


@dataclass(eq=False)
class CopiedPartition:
    """A partition in a reassignment; once its last replica has caught up, removed replicas stop fetching.

    Attributes:
        behind: number of replicas that have not caught up.
        leaving: in-sync traffic that ends then: the quota that counts it, and bytes per second.
    """

    behind: int
    leaving: Sequence[tuple[QuotaEndpoint, float]]

    def caught_up(self, at_s: float) -> None:
        """Count one more replica that has caught up, and end the leaving traffic after the last one."""
        self.behind -= 1
        if self.behind == 0:
            for end, bytes_per_s in self.leaving:
                end.change(at_s, -bytes_per_s)


@dataclass(eq=False)
class ReplicaCopy:
    """Data that one replica still has to copy.

    Attributes:
        remaining_bytes: bytes still to copy at ``grown_s``.
        write_bytes_per_s: write rate of the partition meanwhile.
        moving: its partition; None if no traffic ends with this copy.
        grown_s: time up to which ``remaining_bytes`` includes new writes.
    """

    remaining_bytes: float
    write_bytes_per_s: float
    moving: CopiedPartition | None = None
    grown_s: float = 0.0

    def left_bytes(self, at_s: float) -> float:
        """Return the bytes still to copy, with all writes up to now."""
        self.remaining_bytes += self.write_bytes_per_s * (at_s - self.grown_s)
        self.grown_s = at_s
        return self.remaining_bytes


@dataclass(eq=False)
class CopyStream:
    """Copies of one fetcher thread of a destination from one leading broker.

    Attributes:
        leader: quota of the leader; None if it has no limit.
        destination: quota of the destination; None if it has no limit.
        parts: copies in the order of the fetch session.
        limits: size limits of a fetch.
        arriving_bytes: size of a response in flight.
        asked_s: time of the last fetch.
        served_s: time of the last response.
        luck: weight of this stream among waiting ones, and factor of its fetch rate, for the whole simulation.
        pace: factor of its fetch rate in the current burst.
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
        """Return the quotas that limit this stream."""
        return [end for end in (self.leader, self.destination) if end is not None]

    def respond(self, at_s: float, times: int, batch_bytes: float) -> float:
        """Take data of each partition in turn until a response is full, and return its size in bytes.

        Args:
            at_s: now.
            times: number of responses that are combined.
            batch_bytes: size of producer batches; a batch that is cut off is sent again.
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
        """Remove the parts that are done; their traffic continues as that of in-sync followers."""
        for part in [part for part in self.parts if part.remaining_bytes <= 0]:
            self.parts.remove(part)
            for end in self.ends:
                end.change(at_s, part.write_bytes_per_s)
            if part.moving is not None:
                part.moving.caught_up(at_s)
