"""What was read of a broker in one minute, and the mean rate between the counters of two minutes."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from headroom.planning.balance.model import Resource

# Counters further apart give no rate of a minute.
MOST_MS = 150_000


@dataclass(frozen=True)
class ByteCounter:
    """Counter of bytes at the time of its reading.

    Attributes:
        read_ms: time of the reading, epoch milliseconds.
        total_bytes: bytes since the broker's start.
    """

    read_ms: int
    total_bytes: int


@dataclass(frozen=True)
class BrokerReading:
    """Loads of one broker in one minute.

    Attributes:
        broker: id.
        alive: whether it is registered with the cluster.
        answered: whether its metrics were read.
        loads: load by resource, in the unit of the resource; a resource that is unknown is missing.
        disk_bytes: size of its log directories that are online; None if unknown.
        flush_p999_s: 99.9th percentile of its log flush times, seconds; None if unknown.
    """

    broker: int
    alive: bool
    answered: bool
    loads: Mapping[Resource, float] = field(default_factory=dict)
    disk_bytes: float | None = None
    flush_p999_s: float | None = None


def mean_rate(before: ByteCounter | None, now: ByteCounter | None, window_rate: float | None) -> float | None:
    """Return the mean rate from one reading to the next, bytes per second; None if unknown.

    Args:
        before: counter of the minute before; None if unknown.
        now: counter of this minute; None if unknown.
        window_rate: rate over the collector's rate window, bytes per second, which counts where the readings do not lie
            about a minute apart or the broker has restarted between them; None if unknown.
    """
    if before is None or now is None:
        return window_rate
    passed_ms = now.read_ms - before.read_ms
    if not 0 < passed_ms <= MOST_MS or now.total_bytes < before.total_bytes:
        return window_rate
    return (now.total_bytes - before.total_bytes) * 1000 / passed_ms
