"""Goals of an operator's own, as modules of theirs would have them."""

from __future__ import annotations

from typing import Any

import numpy as np

from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import ClusterModel, Resource


class FewReplicas:
    name, hard, weight, group = "few_replicas", False, 1.0, "own"

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> float:
        return 8.0

    def holds(self, bounds: float, usage: BrokerUsage) -> Any:
        return usage.load(Resource.REPLICAS) <= bounds

    def score(self, bounds: float, usage: BrokerUsage) -> Any:
        return np.where(self.holds(bounds, usage), 1.0, 0.5)


class Raises(FewReplicas):
    name = "raises"

    def score(self, bounds: float, usage: BrokerUsage) -> Any:
        raise RuntimeError("no score")


class NotANumber(FewReplicas):
    name = "not_a_number"

    def score(self, bounds: float, usage: BrokerUsage) -> Any:
        return np.full(len(usage.brokers), np.nan)


class Two(FewReplicas):
    name = "two"

    def score(self, bounds: float, usage: BrokerUsage) -> Any:
        return np.full(len(usage.brokers), 2.0)
