"""Evidence that every alert kind has, and the one place that writes evidence as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, is_dataclass
from enum import Enum
from typing import Any

from headroom.alerts.inputs.throttle_status import PartitionEvidence
from headroom.schemas.keys import Role


class EvidenceCause(str, Enum):
    """Cause of a problem within its alert kind; causes that group findings are in ``alerts.rules.causes``."""

    BROKER_DOWN = "broker_down"
    FALLEN_BEHIND = "fallen_behind"
    NO_LEADER = "no_leader"
    DESTINATION_DOWN = "destination_down"
    DESTINATION_DISK = "destination_disk"
    NOT_FETCHING = "not_fetching"
    UNKNOWN = "unknown"
    NO_RATE = "no_rate"
    NOT_LISTED = "not_listed"
    FAR_ABOVE = "far_above_observed"
    EXCEEDED = "observed_above_rate"


@dataclass(frozen=True)
class OutOfSyncPartition:
    """A partition with an out-of-sync replica on a broker, with the keys that every partition in evidence has.

    Attributes:
        topic: topic.
        partition: partition.
        leader: leading broker; None if there is none.
        moving: whether a reassignment of the partition is running.
        write_bytes_per_s: None, because it does not apply.
        previous_leader: None, because it does not apply.
        switch_tick_ms: None, because it does not apply.
    """

    topic: str
    partition: int
    leader: int | None
    moving: bool
    write_bytes_per_s: None = None
    previous_leader: None = None
    switch_tick_ms: None = None


@dataclass(frozen=True, kw_only=True)
class Evidence:
    """Numbers of a finding. Every alert kind has these; its own class adds others.

    Names of attributes are keys of the stored JSON. Values that do not apply are None or empty, and are stored.

    Attributes:
        broker_id: broker that the finding is about.
        role: role whose throttle the finding is about.
        throttle_bytes_per_s: throttle in force.
        in_sync_bytes_per_s: traffic of in-sync followers.
        required_bytes_per_s: rate that a throttle has to exceed.
        remaining_bytes: bytes that out-of-sync replicas have to copy.
        partitions: affected partitions; truncated.
        switch_tick_ms: first tick after the leader switch that is the cause, epoch milliseconds.
        cause: cause within the alert kind. The only key that is omitted if there is none.
    """

    broker_id: int | None = None
    role: Role | None = None
    throttle_bytes_per_s: float | None = None
    in_sync_bytes_per_s: float | None = None
    required_bytes_per_s: float | None = None
    remaining_bytes: int | None = None
    partitions: Sequence[PartitionEvidence | OutOfSyncPartition] = ()
    switch_tick_ms: int | None = None
    cause: EvidenceCause | None = None

    def to_json(self) -> dict[str, Any]:
        """Return the evidence as it is stored: the attributes in order, the cause last."""
        values: dict[str, Any] = _plain(self)
        cause = values.pop("cause")
        return values if cause is None else {**values, "cause": cause}


def _plain(value: Any) -> Any:
    """Return a value ready for JSON: attributes as keys, words as text."""
    if isinstance(value, Enum):
        return value.value
    if is_dataclass(value):
        return {name: _plain(attribute) for name, attribute in vars(value).items()}
    return [_plain(entry) for entry in value] if isinstance(value, (list, tuple)) else value
