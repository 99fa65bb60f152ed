"""Limits of a proposal: what it may cost, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

import numpy as np

from headroom.planning.balance.arrays import BoolArray
from headroom.planning.balance.model import NO_BROKER, ClusterModel
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
MOVE_OVERHEAD_BYTES = 256_000_000
# Factor between the rate that a batch requires and the throttle that it is given.
MARGIN_RATIO = ThrottlePolicy().margin_ratio


class Exclusion(str, Enum):
    """Reason why a partition is in no action.

    Attributes:
        TOPIC: its topic is excluded, or is not among the chosen ones.
        MOVING: a reassignment of it is running.
        DEAD_REPLICA: one of its replicas is on a broker that is down, so that its move might never end; it can still be
            elected.
        OUT_OF_SYNC: one of its replicas is not in sync, so that its move might wait for it, or take the only one that
            is; it can be elected.
        UNKNOWN_LOAD: one of its rates is unknown.
        UNKNOWN_SIZE: its size is unknown, so a copy has no price; it can still be elected.
        OVER_THROTTLE: its writes alone require more than the throttle or the replication capacity; it can be elected.
    """

    TOPIC = "topic"
    MOVING = "moving"
    DEAD_REPLICA = "dead_replica"
    OUT_OF_SYNC = "out_of_sync"
    UNKNOWN_LOAD = "unknown_load"
    UNKNOWN_SIZE = "unknown_size"
    OVER_THROTTLE = "over_throttle"


# Texts of the reasons; the subject is one partition.
WHY_EXCLUDED: Mapping[Exclusion, str] = {
    Exclusion.TOPIC: "its topic is excluded",
    Exclusion.MOVING: "a reassignment of it is running",
    Exclusion.DEAD_REPLICA: "one of its replicas is on a broker that is down, and its move might wait for it",
    Exclusion.OUT_OF_SYNC: "one of its replicas is not in sync, and its move might wait for it",
    Exclusion.UNKNOWN_LOAD: "its load is unknown",
    Exclusion.UNKNOWN_SIZE: "its size is unknown, so a copy has no price",
    Exclusion.OVER_THROTTLE: "its writes require more than the throttle",
}


@dataclass(frozen=True)
class ProposalLimits:
    """What a proposal may cost, and what it must leave alone.

    Attributes:
        move_overhead_bytes: cost of a move besides its bytes, as bytes.
        max_bytes: maximum bytes copied; None: no limit.
        max_moves: maximum number of copied replicas; None: no limit.
        topics: topics whose partitions may change; None: all.
        excluded_topics: topics whose partitions must not change.
        replication_bytes_per_s: throttle, or replication capacity of a broker, that a move must fit; None: unknown.
        elections_only: propose what copies nothing, and nothing else.
        internal_topics: topics that come last.

    Raises:
        HeadroomError: a limit allows nothing, or is negative.
    """

    move_overhead_bytes: float = float(MOVE_OVERHEAD_BYTES)
    max_bytes: float | None = None
    max_moves: int | None = None
    topics: frozenset[str] | None = None
    excluded_topics: frozenset[str] = frozenset()
    replication_bytes_per_s: float | None = None
    elections_only: bool = False
    internal_topics: frozenset[str] = field(default=INTERNAL_TOPICS)

    def __post_init__(self) -> None:
        """Reject limits that allow nothing."""
        if not self.move_overhead_bytes >= 0:
            raise _bad_limit("move_overhead", self.move_overhead_bytes, "0 or more")
        for name in ("max_bytes", "max_moves", "replication_bytes_per_s"):
            value = getattr(self, name)
            if value is not None and not value > 0:
                raise _bad_limit(name, value, "above 0; without copies, ask for elections only")
        if self.topics is not None and not self.topics - self.excluded_topics:
            raise HeadroomError("topics", "all chosen topics are excluded", "Choose at least one other topic.")

    @property
    def is_partial(self) -> bool:
        """Whether only a part of the gain may be within the limits."""
        chosen = (self.max_bytes, self.max_moves, self.topics)
        return self.elections_only or bool(self.excluded_topics) or any(limit is not None for limit in chosen)

    def exclusions(self, model: ClusterModel) -> dict[Exclusion, BoolArray]:
        """Return which partitions each reason excludes, (P,) each. A partition may have several reasons.

        Raises:
            HeadroomError: a chosen or excluded topic is unknown.
        """
        known = set(model.topics)
        unknown = sorted(((self.topics or frozenset()) | self.excluded_topics) - known)
        if unknown:
            raise HeadroomError(f"topic {unknown[0]}", "is unknown", "Name a topic of the cluster.")
        chosen = np.array(
            [t not in self.excluded_topics and (self.topics is None or t in self.topics) for t in model.topics],
            dtype=np.bool_,
        )
        over = np.zeros(model.partitions, dtype=np.bool_)
        if self.replication_bytes_per_s is not None:
            # A new replica is one more follower until the move ends.
            required = model.peak_write * (model.followers + 1)
            over = required * MARGIN_RATIO > self.replication_bytes_per_s
        return {
            Exclusion.TOPIC: ~chosen[model.topic],
            Exclusion.MOVING: model.moving,
            Exclusion.DEAD_REPLICA: model.has_dead_replica,
            Exclusion.OUT_OF_SYNC: ((model.replicas != NO_BROKER) & ~model.in_sync).any(axis=1),
            Exclusion.UNKNOWN_LOAD: ~model.rates_known,
            Exclusion.UNKNOWN_SIZE: ~np.isfinite(model.size),
            Exclusion.OVER_THROTTLE: over,
        }

    def internal(self, model: ClusterModel) -> BoolArray:
        """Return which partitions are of topics that come last, (P,)."""
        last = np.array([topic in self.internal_topics for topic in model.topics], dtype=np.bool_)
        internal: BoolArray = last[model.topic]
        return internal


# Reasons that only exclude copies; an election of the partition is possible.
COPIES_ONLY = (Exclusion.DEAD_REPLICA, Exclusion.OUT_OF_SYNC, Exclusion.UNKNOWN_SIZE, Exclusion.OVER_THROTTLE)


@dataclass(frozen=True)
class ExcludedPartition:
    """A partition that is in no action, with the reason."""

    name: TopicPartition
    reason: Exclusion


def _bad_limit(name: str, value: float, rule: str) -> HeadroomError:
    return HeadroomError(name, f"is {value}", f"Use a value {rule}.")
