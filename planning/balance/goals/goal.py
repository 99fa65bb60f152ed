"""What a goal is: the protocol that built-in goals and goals of one's own follow."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Protocol, runtime_checkable

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.model import ClusterModel, Resource


@dataclass(frozen=True, eq=False)
class BrokerUsage:
    """Loads of N brokers in one state of the cluster. A broker may occur several times, in several states.

    Attributes:
        brokers: index of each broker in ``ClusterModel.brokers``, (N,).
        loads: load by resource, (6, N); rows are numbered by ``Resource``.
        topics: topic that an action moves, (N,); -1 without one.
        topic_replicas: replicas of that topic on the broker, (N,).
        topic_leaders: partitions of that topic that the broker leads, (N,).
        crowded: replicas on the broker that share a rack with more replicas of their partition than necessary, (N,).
    """

    brokers: IntArray
    loads: FloatArray
    topics: IntArray
    topic_replicas: FloatArray
    topic_leaders: FloatArray
    crowded: FloatArray

    def load(self, resource: Resource) -> FloatArray:
        """Return the loads of a resource, (N,)."""
        load: FloatArray = self.loads[resource]
        return load


@runtime_checkable
class BalanceGoal(Protocol):
    """One goal. All methods are pure; arrays have one element per broker of the usage."""

    @property
    def name(self) -> str:
        """Name in ``balance.goals``, in scores and in errors."""

    @property
    def hard(self) -> bool:
        """Whether no proposal may take a broker from holding to not holding."""

    @property
    def weight(self) -> float:
        """Weight among all goals, above 0."""

    @property
    def group(self) -> str:
        """Name under which scores are shown together."""

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> Any:
        """Return what ``holds`` and ``score`` compare with, by the usage of all brokers. It is asked once per plan."""

    def holds(self, bounds: Any, usage: BrokerUsage) -> BoolArray:
        """Return whether each broker meets the goal, (N,)."""

    def score(self, bounds: Any, usage: BrokerUsage) -> FloatArray:
        """Return the score of each broker, 0 to 1, (N,); 1 is best."""
