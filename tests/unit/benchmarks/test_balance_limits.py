"""Limits while proposals for random clusters are carried out, counted apart from the product."""

from __future__ import annotations

import pytest

from benchmarks.groups.balance.limits.clusters import limit_cluster
from benchmarks.groups.balance.limits.replay import broken_limits

# Seeds that the benchmark does not have.
FIRST_SEED = 20_000


@pytest.mark.parametrize("block", range(4))
def test_no_moment_of_any_prefix_of_a_proposal_breaks_a_limit(block: int) -> None:
    seeds = range(FIRST_SEED + 10 * block, FIRST_SEED + 10 * block + 10)
    found = {seed: broken_limits(limit_cluster(seed), seed) for seed in seeds}
    assert {seed: texts[:3] for seed, texts in found.items() if texts} == {}
