"""Requests to the use cases of balance: what to propose, and which changes to try."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.search.limits import ProposalLimits
from headroom.schemas.config import Settings


@dataclass(frozen=True)
class Exclusions:
    """What a proposal leaves alone.

    Attributes:
        topics: topics.
        brokers: brokers, which give and take nothing.
    """

    topics: frozenset[str] = frozenset()
    brokers: frozenset[int] = frozenset()


@dataclass(frozen=True)
class ClusterChange:
    """A change of the cluster to be tried in the model.

    Attributes:
        text: the change as it was given.
        apply: returns the changed model.
    """

    text: str
    apply: Callable[[ClusterModel], ClusterModel]


@dataclass(frozen=True)
class ProposalRequest:
    """Which changes are proposed; None where nothing is asked for.

    Attributes:
        goals: names of goals.
        topics: topics that may change.
        exclude: topics and brokers that are left alone.
        max_bytes: maximum bytes copied.
        max_moves: maximum number of copied replicas.
        elections_only: whether only actions without copies are proposed.
        throttle: throttle of every batch, bytes per second.
    """

    goals: list[str] | None = None
    topics: list[str] | None = None
    exclude: Exclusions | None = None
    max_bytes: int | None = None
    max_moves: int | None = None
    elections_only: bool = False
    throttle: int | None = None

    def limits(self, settings: Settings) -> ProposalLimits:
        """Return the limits of a proposal.

        Raises:
            HeadroomError: they allow nothing.
        """
        exclude = self.exclude or Exclusions()
        known = [rate for rate in (self.throttle, settings.cluster.replication_capacity) if rate is not None]
        return ProposalLimits(
            move_overhead_bytes=settings.balance.move_overhead,
            max_bytes=self.max_bytes,
            max_moves=self.max_moves,
            topics=None if self.topics is None else frozenset(self.topics),
            excluded_topics=exclude.topics,
            replication_bytes_per_s=min(known, default=None),
            elections_only=self.elections_only,
        )
