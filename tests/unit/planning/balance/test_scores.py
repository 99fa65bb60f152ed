"""Load outside of bands, limits, and goals of one's own."""

from __future__ import annotations

import re
from dataclasses import dataclass, replace

import numpy as np
import pytest

from headroom.planning.balance.goals.catalogue import GOAL_NAMES, built_in_goals, find_goals
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.proposal import propose
from headroom.schemas.errors import HeadroomError
from tests.support.paths import REPOSITORY
from tests.unit.planning.balance.clusters import MIB, brokers, model_of


def loads_of(network_in: list[float]) -> np.ndarray:
    """Loads of brokers of which only network in counts, in MiB/s."""
    loads = np.zeros((6, len(network_in)))
    loads[0] = np.array(network_in) * MIB
    return loads


def test_load_outside_of_bands_counts_in_shares_of_the_mean() -> None:
    goals = [goal for goal in built_in_goals() if goal.name == "network_in"]
    model = model_of(brokers(3), [[1], [2], [3]], [500 * MIB, 300 * MIB, 100 * MIB])
    found = GoalSet(goals, ClusterLoads(model))
    # Mean 300 MiB/s, band 270 to 330: broker 1 is 170 above it, broker 3 as much below. Broker 2 is in its band.
    outside = found.total_outside(ClusterLoads(model).loads, np.arange(3))
    assert outside.tolist() == pytest.approx([170 / 300, 0.0, 170 / 300])
    assert found.total_outside(loads_of([330.0]), np.array([0])).tolist() == [0.0]
    np.testing.assert_allclose(found.outside(ClusterLoads(model).loads, np.arange(3)).sum(axis=0), outside)


def test_where_rates_vary_the_search_keeps_away_from_the_edges() -> None:
    goals = [goal for goal in built_in_goals() if goal.name == "network_in"]
    model = model_of(brokers(3), [[1], [2], [3]], [500 * MIB, 300 * MIB, 100 * MIB], hours=2)
    write = model.write.copy()
    write[2, 0] = 0.0
    found = GoalSet(goals, loads := ClusterLoads(replace(model, write=write)))
    # Of 0 and 100 MiB/s, the 95th percentile is 95, and the mean 895 / 3: the band ends at 0.9 and 1.1 times that, and
    # the search at 0.905 and 1.095 times.
    mean = 895 / 3
    outside = found.total_outside(loads.loads, np.arange(3))
    assert outside.tolist() == pytest.approx([500 / mean - 1.095, 0.0, 0.905 - 95 / mean])


def test_a_broker_that_starts_at_an_edge_of_its_band_is_in_it() -> None:
    goals = [goal for goal in built_in_goals() if goal.name == "network_in"]
    model = model_of(brokers(3), [[1], [2], [3]], [90 * MIB, 110 * MIB, 100 * MIB])
    found = GoalSet(goals, ClusterLoads(model))
    assert not found.total_outside(ClusterLoads(model).loads, np.arange(3)).any()
    assert propose(model, goals).actions == ()


def test_a_limit_refuses_what_gets_beyond_it_or_further_beyond_it() -> None:
    states = brokers(2, network_in_bytes_per_s=1000.0 * MIB)
    model = model_of(states, [[1], [2]], [700 * MIB, 900 * MIB])
    found = GoalSet([goal for goal in built_in_goals() if goal.name == "network_in_capacity"], ClusterLoads(model))
    # The limit is 800 MiB/s, included. The last ones start beyond it.
    before, after = loads_of([700, 799, 900, 900]), loads_of([800, 801, 850, 901])
    assert found.beyond_limits(before, after, np.zeros(4, dtype=np.int64)).tolist() == [False, True, False, True]


@dataclass(frozen=True)
class _Odd:
    answer: float
    name: str = "odd"
    hard: bool = False
    weight: float = 1.0
    group: str = "own"

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> None:
        if self.answer < 0:
            raise RuntimeError("no bounds")

    def holds(self, bounds: None, usage: BrokerUsage) -> np.ndarray:
        return np.ones(len(usage.brokers), dtype=np.bool_)

    def score(self, bounds: None, usage: BrokerUsage) -> np.ndarray:
        return np.full(len(usage.brokers), self.answer)


@pytest.mark.parametrize(
    ("answer", "text"), [(float("nan"), "score nan"), (2.0, "score 2.0"), (-1.0, "RuntimeError: no bounds")]
)
def test_a_goal_that_fails_stops_by_its_name(answer: float, text: str) -> None:
    model = model_of(brokers(2), [[1], [1], [2]], [9 * MIB, 9 * MIB, MIB])
    with pytest.raises(HeadroomError, match=text) as failed:
        propose(model, [*built_in_goals(), _Odd(answer)])
    assert failed.value.subject == "goal odd"


def test_goals_are_found_by_name_and_by_class_and_hard_ones_always_hold() -> None:
    assert tuple(goal.name for goal in find_goals([])) == GOAL_NAMES
    assert [goal.name for goal in find_goals(["disk"]) if not goal.hard] == ["disk"]
    assert {goal.name for goal in find_goals(["disk"]) if goal.hard} == {g.name for g in built_in_goals() if g.hard}
    cases = (("dsk", "is unknown"), ("no.module:Goal", "cannot be loaded"), ("builtins:dict", "is not a goal"))
    for name, text in cases:
        with pytest.raises(HeadroomError, match=text):
            find_goals([name])
    with pytest.raises(HeadroomError, match="twice"):
        find_goals(["disk", "disk"])


def test_the_goal_in_the_docs_has_fifteen_lines_and_is_followed() -> None:
    page = (REPOSITORY / "docs" / "balance.md").read_text(encoding="utf-8")
    code = next(block for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL) if "class " in block)
    body = code[code.index("class ") :]
    assert len(body.strip().splitlines()) <= 15
    names: dict[str, object] = {"__name__": "own_goals"}
    exec(code, names)
    goal = names["FewLeadersOnOldBroker"]()  # type: ignore[operator]
    # Broker 2 leads all 8 partitions, and broker 1 has a replica of each. Half of them would be even.
    model = model_of(brokers(2), [[2, 1]] * 8, [10.0 * MIB] * 8, read=[10.0 * MIB] * 8)
    even = propose(model, built_in_goals())
    assert even.loads_after[4].tolist() == [4.0, 4.0]
    kept = propose(model, [*built_in_goals(), goal])
    # The goal allows 2.
    assert kept.loads_after[4].tolist() == [2.0, 6.0]
