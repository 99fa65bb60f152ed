"""Proposals beside a plain greedy search, on a random cluster of each kind."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.groups.balance.greedy import greedy
from benchmarks.groups.balance.random_clusters import random_cluster
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.scoring.goal_set import GoalSet
from headroom.planning.balance.search.proposal import propose


@pytest.mark.parametrize("seed", range(6))
def test_a_proposal_leaves_no_more_outside_of_bands_than_a_greedy_search_and_ends_at_rest(seed: int) -> None:
    _, model = random_cluster(seed)
    goals = built_in_goals()
    proposal = propose(model, goals)
    after = proposal.state(len(proposal.actions))
    assert GoalSet(goals, after).start_outside <= 1.02 * greedy(model, goals).outside + 1e-6
    assert propose(replace(model, replicas=after.replicas, leader=after.leader), goals).actions == ()
