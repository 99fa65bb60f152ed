"""Scores of actions, refusals, and goals of one's own."""

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


def usage(model: ClusterModel, broker: int, network_in: float) -> BrokerUsage:
    state = ClusterLoads(model).usage(np.array([broker]))
    loads = state.loads.copy()
    loads[0] = network_in
    return replace(state, loads=loads)


def test_an_action_scores_by_the_worst_of_its_brokers() -> None:
    goals = [goal for goal in built_in_goals() if goal.name == "network_in"]
    model = model_of(brokers(3), [[1], [2], [3]], [500 * MIB, 300 * MIB, 100 * MIB])
    found = GoalSet(goals, ClusterLoads(model))
    # Mean 300 MiB/s. The search brings brokers to 270 + 1.5 and 330 - 1.5 MiB/s. Broker 1 at 500 is 171.5 beyond that,
    # broker 3 at 100 is 171.5 below; after the action 121.5 each. Beyond 100 MiB/s the logarithm counts.
    before, after = (
        (usage(model, 0, 500.0 * MIB), usage(model, 2, 100.0 * MIB)),
        (
            usage(model, 0, 420.0 * MIB),
            usage(model, 2, 180.0 * MIB),
        ),
    )
    scores = found.action_scores(before, after)
    # 91.5 MiB/s beyond: 1 - 0.9 x 0.915 = 0.1765. Edge 28.5, S = 128.5: 0.1 ln(128.5 MiB) / ln(200 MiB) before.
    worst_before = 0.1 * np.log(128.5 * MIB) / np.log(200 * MIB)
    assert scores.changes[0, 0] == pytest.approx(0.1765 - worst_before)
    assert scores.is_accepted(0, np.zeros(1, dtype=np.bool_)).all()
    nothing = found.action_scores(before, before)
    # 0.5 changes nothing, and is not taken.
    assert nothing.changes[0, 0] == 0
    assert not nothing.is_accepted(0, np.zeros(1, dtype=np.bool_)).any()


def test_a_hard_goal_refuses_what_breaks_it_and_what_makes_it_worse() -> None:
    states = brokers(2, network_in_bytes_per_s=1000.0 * MIB)
    model = model_of(states, [[1], [2]], [700 * MIB, 900 * MIB])
    found = GoalSet([goal for goal in built_in_goals() if goal.name == "network_in_capacity"], ClusterLoads(model))

    def refused(source: tuple[float, float], target: tuple[float, float]) -> bool:
        before, after = ((usage(model, 1, source[n] * MIB), usage(model, 0, target[n] * MIB)) for n in (0, 1))
        return bool(found.action_scores(before, after).refused_by[0] >= 0)

    # The limit is 800 MiB/s, included.
    assert not refused((900, 800), (700, 800))
    assert refused((900, 799), (700, 801))
    # Broker 2 continues beyond its limit, but less so.
    assert not refused((900, 850), (700, 750))
    assert refused((850, 900), (750, 700))


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
    for name, text in (("dsk", "is unknown"), ("no.module:Goal", "cannot be loaded"), ("builtins:dict", "is no goal")):
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
