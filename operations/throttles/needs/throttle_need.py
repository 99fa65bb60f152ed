"""Need of a throttle: what the running moves require of one rate of one broker."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from headroom.planning.quotas.load import lasting_rate
from headroom.schemas.keys import TopicPartition

# As in the evidence of gold/throttle_headroom.
MAX_PARTITIONS = 20


class NeedsSource(str, Enum):
    """Source of the needs: the newest tick of a running watch, or two readings by this command."""

    WATCH = "watch"
    LIVE = "live"


@dataclass(frozen=True)
class NeedingPartition:
    """A moving partition that needs a throttle.

    Attributes:
        topic: topic.
        partition: partition.
        write_bytes_per_s: write rate; None if unknown.
    """

    topic: str
    partition: int
    write_bytes_per_s: float | None

    @property
    def name(self) -> TopicPartition:
        """Topic and number of the partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class MoveNeed:
    """Need of one rate of one broker.

    Attributes:
        broker: broker id.
        role: leader, follower, or log_dirs for moves between the broker's log directories.
        throttle_bytes_per_s: rate in force; None if not set, or unknown.
        in_sync_bytes_per_s: traffic of in-sync followers that counts against it; None if unknown, or for log_dirs.
        required_bytes_per_s: traffic that the throttle must exceed, of partitions in the lists, whether they move or
            not; None if unknown.
        moving_bytes_per_s: traffic of the moving partitions alone, in the lists or not; None if unknown.
        verdict: effect of the throttle on the new replicas, as in ``gold/throttle_headroom``; None for log_dirs.
        moving_partitions: number of moving partitions that need it.
        partitions: the first of these, at most 20.
        remaining_bytes: bytes that they still have to copy; None if unknown.
        down_required_bytes_per_s: for a leader: what followers on dead brokers add to required_bytes_per_s once these
            are back; None if unknown.
        quota_bytes_per_s: traffic that the broker counts against the rate; None if not measured.
        copied_bytes_per_s: traffic of new replicas that the broker sends or receives, in the lists or not; None if not
            measured.
    """

    broker: int
    role: str
    throttle_bytes_per_s: float | None
    in_sync_bytes_per_s: float | None
    required_bytes_per_s: float | None
    moving_bytes_per_s: float | None
    verdict: str | None
    moving_partitions: int
    partitions: tuple[NeedingPartition, ...]
    remaining_bytes: int | None = None
    down_required_bytes_per_s: float | None = 0.0
    quota_bytes_per_s: float | None = None
    copied_bytes_per_s: float | None = None

    @property
    def observed_bytes_per_s(self) -> float | None:
        """Return the higher of what is copied and what counts against the rate; None if neither was measured.

        A quota does not count what is in no list, and copies do not include in-sync followers.
        """
        known = [rate for rate in (self.quota_bytes_per_s, self.copied_bytes_per_s) if rate is not None]
        return max(known, default=None)

    @property
    def lasting_required_bytes_per_s(self) -> float | None:
        """Return the traffic that the throttle must exceed once dead brokers are back too; None if unknown."""
        return lasting_rate(self.required_bytes_per_s, self.down_required_bytes_per_s)

    def as_json(self) -> dict[str, Any]:
        """Return the need as a JSON object."""
        return {**vars(self), "partitions": [dict(vars(partition)) for partition in self.partitions]}


@dataclass(frozen=True)
class ThrottleNeeds:
    """Needs of the running moves.

    Attributes:
        source: where they come from; None if they are unknown.
        tick_ms: tick that they were computed from, epoch milliseconds; None unless from a watch.
        needs: one per broker and role that a running move needs, by broker.
        problems: reasons why needs are missing, in sentences.
    """

    source: NeedsSource | None = None
    tick_ms: int | None = None
    needs: Sequence[MoveNeed] = ()
    problems: Sequence[str] = field(default=())

    def as_json(self) -> dict[str, Any]:
        """Return the needs as a JSON object."""
        return {
            "source": None if self.source is None else self.source.value,
            "tick_ms": self.tick_ms,
            "brokers": [need.as_json() for need in self.needs],
        }
