"""Effect of one action of a proposal, goal by goal, on the two brokers that it changes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.arrays import FloatArray
from headroom.planning.balance.scoring.goal_set import goal_holds, goal_score, with_topics
from headroom.planning.balance.search.actions import BalanceAction
from headroom.planning.balance.search.proposal import Proposal, apply_actions
from headroom.schemas.errors import HeadroomError


@dataclass(frozen=True)
class GoalEffect:
    """Effect of an action in one goal.

    Attributes:
        goal: name of the goal.
        hard: whether it is a limit.
        group: its group.
        before: scores of the broker that gives and the one that takes, before the action.
        after: the same after it.
        held: whether each of the two met the goal before.
        holds: whether each of the two meets it after.
    """

    goal: str
    hard: bool
    group: str
    before: tuple[float, ...]
    after: tuple[float, ...]
    held: tuple[bool, ...]
    holds: tuple[bool, ...]

    @property
    def score(self) -> float:
        """Return (worst of both after - worst of both before + 1) / 2; 0.5 changes nothing."""
        return (min(self.after) - min(self.before) + 1) / 2


@dataclass(frozen=True, eq=False)
class Explanation:
    """Effect of an action in all goals.

    Attributes:
        number: number of the action in the proposal, from 1.
        action: the action.
        gain: fall of load outside of bands, in shares of the means.
        loads_before: loads of the broker that gives and of the one that takes, (6, 2).
        loads_after: the same after the action.
        effects: effect by goal.
    """

    number: int
    action: BalanceAction
    gain: float
    loads_before: FloatArray
    loads_after: FloatArray
    effects: tuple[GoalEffect, ...]


def explain(proposal: Proposal, number: int) -> Explanation:
    """Return the effect of an action, by its number from 1, after the ones before it.

    Scores are those by the bands of the cluster. The search keeps a small margin to their edges.

    Raises:
        HeadroomError: there is no such action.
    """
    count = len(proposal.actions)
    if not 1 <= number <= count:
        there = f"Choose one of 1 to {count}." if count else "The proposal has no action."
        raise HeadroomError(f"action {number}", "is not in the proposal", there)
    action = proposal.actions[number - 1]
    loads = proposal.state(number - 1)
    both = np.array([action.source, action.target])
    topics = np.full(2, int(proposal.model.topic[action.partition]))
    before = with_topics(loads.usage(both), loads, topics)
    apply_actions(loads, [action])
    after = with_topics(loads.usage(both), loads, topics)
    effects = []
    for goal, bounds in zip(proposal.goals.goals, proposal.goals.bounds, strict=True):
        scores = [tuple(goal_score(goal, bounds, usage).tolist()) for usage in (before, after)]
        holds = [tuple(goal_holds(goal, bounds, usage).tolist()) for usage in (before, after)]
        effects.append(GoalEffect(goal.name, goal.hard, goal.group, *scores, *holds))
    gain = float(proposal.gains[number - 1])
    return Explanation(number, action, gain, before.loads, after.loads, tuple(effects))
