"""Prices and scores of a proposal: from the loads that the search has summed already."""

from __future__ import annotations

import numpy as np
import pytest

from headroom.operations.balance.cluster import saved_cluster
from headroom.operations.balance.proposal_result import proposal_result, search
from headroom.operations.balance.requests import ProposalRequest
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.reports.scorecard import scorecard_of
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.schemas.config import Settings
from tests.support.paths import REPOSITORY

STATE = REPOSITORY / "docs" / "examples" / "balance_state.json"


@pytest.mark.parametrize(("first", "in_band"), [(None, None), (6, None), (None, frozenset({1}))])
def test_after_the_search_only_the_loads_of_the_end_are_summed(
    first: int | None, in_band: frozenset[int] | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster, init = saved_cluster(Settings(), STATE), ClusterLoads.__init__
    made: list[ClusterModel] = []

    def summed(loads: ClusterLoads, model: ClusterModel) -> None:
        made.append(model)
        init(loads, model)

    monkeypatch.setattr(ClusterLoads, "__init__", summed)
    search(cluster, ProposalRequest())
    searched = len(made)
    proposal_result(cluster, ProposalRequest(), first=first, in_band=in_band)
    assert len(made) - searched == searched + 1


def test_scores_are_those_of_the_clusters_before_and_after() -> None:
    cluster = saved_cluster(Settings(), STATE)
    result = proposal_result(cluster, ProposalRequest(), first=9)
    proposal = result.proposal
    state = proposal.state(9)
    after = proposal.model.with_placement(state.replicas, state.leader)
    for card, model in ((result.before, proposal.model), (result.after, after)):
        expected = scorecard_of(model, proposal.goals.goals)
        np.testing.assert_array_equal(card.loads, expected.loads)
        np.testing.assert_array_equal(card.scores, expected.scores)
        np.testing.assert_array_equal(card.met, expected.met)
