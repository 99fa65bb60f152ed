"""Limits of a proposal: what it may cost, and what it must leave alone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import Enum

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.goals.bands import LIMIT_RATIO
from headroom.planning.balance.model import NO_BROKER, ClusterModel
from headroom.planning.throttles.recommendation import ThrottlePolicy
from headroom.schemas.errors import HeadroomError

INTERNAL_TOPICS = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
MOVE_OVERHEAD_BYTES = 256_000_000
# Factor between the rate that a batch requires and the throttle that it is given.
MARGIN_RATIO = ThrottlePolicy().margin_ratio
# A copy has at least this share of what brokers may send or receive: a partition without writes would have none.
_LEAST_COPY_RATIO = 0.01


class Exclusion(str, Enum):
    """Reason why a partition is in no action, in words in ``WHY_EXCLUDED``."""

    TOPIC = "topic"
    MOVING = "moving"
    DEAD_REPLICA = "dead_replica"
    OUT_OF_SYNC = "out_of_sync"
    NO_LEADER = "no_leader"
    UNKNOWN_LOAD = "unknown_load"
    UNKNOWN_SIZE = "unknown_size"
    OVER_THROTTLE = "over_throttle"


# Texts of the reasons; the subject is one partition.
WHY_EXCLUDED: Mapping[Exclusion, str] = {
    # Or it is not among the chosen ones.
    Exclusion.TOPIC: "its topic is excluded",
    Exclusion.MOVING: "a reassignment of it is running",
    Exclusion.DEAD_REPLICA: "one of its replicas is on a broker that is down, and its move might wait for it",
    # Or its move might take the only replica that is in sync.
    Exclusion.OUT_OF_SYNC: "one of its replicas is not in sync, and its move might wait for it",
    Exclusion.NO_LEADER: "it has no leader to copy from",
    Exclusion.UNKNOWN_LOAD: "its load is unknown",
    Exclusion.UNKNOWN_SIZE: "its size is unknown, so a copy has no price",
    # The throttle that was given, or the replication capacity.
    Exclusion.OVER_THROTTLE: "its writes require more than the throttle",
}
# Reasons that only exclude copies; an election of the partition is possible.
COPIES_ONLY = (Exclusion.DEAD_REPLICA, Exclusion.OUT_OF_SYNC, Exclusion.UNKNOWN_SIZE, Exclusion.OVER_THROTTLE)


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

    Raises:
        HeadroomError: all chosen topics are excluded.
    """

    move_overhead_bytes: float = float(MOVE_OVERHEAD_BYTES)
    max_bytes: float | None = None
    max_moves: int | None = None
    topics: frozenset[str] | None = None
    excluded_topics: frozenset[str] = frozenset()
    replication_bytes_per_s: float | None = None
    elections_only: bool = False

    def __post_init__(self) -> None:
        """Reject topics that leave nothing to change."""
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
            Exclusion.NO_LEADER: model.leader == NO_BROKER,
            Exclusion.UNKNOWN_LOAD: ~model.rates_known,
            Exclusion.UNKNOWN_SIZE: ~np.isfinite(model.size),
            Exclusion.OVER_THROTTLE: over,
        }


def least_throttles(model: ClusterModel, partitions: IntArray) -> FloatArray:
    """Return the least throttle of a batch that copies each of N partitions, bytes per second, (N,), with the margin.

    Until the copy ends, its leader may send this much to all followers, and the new replica may receive it.
    """
    # The new replica is one more follower.
    required = model.peak_write.take(partitions) * (model.followers.take(partitions) + 1) * MARGIN_RATIO
    return np.maximum(required, least_copy_rate(model))


def least_copy_rate(model: ClusterModel) -> float:
    """Return what the throttle of a batch is at least where brokers have limits of the network, bytes per second."""
    return 0.0 if np.isinf(model.least_network) else _LEAST_COPY_RATIO * LIMIT_RATIO * model.least_network


def is_internal(model: ClusterModel) -> BoolArray:
    """Return which partitions are of Kafka's own topics, which come last, (P,)."""
    of_topic = np.array([topic in INTERNAL_TOPICS for topic in model.topics], dtype=np.bool_)
    of_partition: BoolArray = of_topic[model.topic]
    return of_partition
