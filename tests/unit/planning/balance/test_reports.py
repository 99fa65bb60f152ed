"""Scorecards, explanations, prefixes, throttles and progress of proposals."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings

from headroom.planning.balance.batches.batches import BalanceBatch, make_batches
from headroom.planning.balance.batches.numbering import CopyLimits
from headroom.planning.balance.goals.catalogue import built_in_goals
from headroom.planning.balance.model import BalanceBroker, PartitionArrays, Resource, cluster_model
from headroom.planning.balance.pricing.price import BatchRun
from headroom.planning.balance.reports.explanation import explain
from headroom.planning.balance.reports.prefixes import gain_ratio, prefix_price, prefixes
from headroom.planning.balance.reports.progress import ProposedBatch, proposal_progress
from headroom.planning.balance.reports.scorecard import scorecard_of
from headroom.planning.balance.reports.throttle_choice import ThrottleRequest, ThrottleSource, choose_throttle
from headroom.planning.balance.scoring.loads import ClusterLoads
from headroom.planning.balance.search.proposal import Proposal, propose
from headroom.planning.elections.planner import PartitionState
from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.balance_states import broker, state_of
from tests.unit.builders.cluster_states import plan_of
from tests.unit.planning.balance.clusters import MIB, brokers, clusters, model_of


def test_a_scorecard_has_bands_limits_and_who_does_not_meet_them() -> None:
    states = brokers(3, network_in_bytes_per_s=50.0 * MIB)
    model = model_of(states, [[1], [1], [2], [3]], [30.0 * MIB, 20.0 * MIB, 30.0 * MIB, 31.0 * MIB])
    card = scorecard_of(model, built_in_goals())
    # 50, 30 and 31 MiB/s: a mean of 37. The limit is 40.
    band = card.band(Resource.NETWORK_IN)
    assert band is not None
    assert band.upper.tolist() == pytest.approx([40.7 * MIB] * 3)
    broken = {(b.goal, b.broker): (b.load, b.edge) for b in card.broken() if b.goal.startswith("network_in")}
    assert broken[("network_in_capacity", 1)] == (50.0 * MIB, 40.0 * MIB)
    assert broken[("network_in", 1)] == (50.0 * MIB, pytest.approx(40.7 * MIB))
    assert broken[("network_in", 2)] == (30.0 * MIB, pytest.approx(33.3 * MIB))
    assert not card.is_balanced()[0]
    assert card.limit(Resource.DISK) is not None
    assert np.isinf(card.limit(Resource.DISK)).all()


def test_brokers_that_do_not_count_have_no_score() -> None:
    states = [*brokers(2), BalanceBroker(3, alive=False)]
    card = scorecard_of(model_of(states, [[1], [2], [3]], [MIB] * 3), built_in_goals())
    assert np.isnan(card.scores[:, 2]).all()
    assert card.met[:, 2].all()


def test_goals_on_topics_are_scored_over_all_topics() -> None:
    # Topic a is on broker 1 alone: 4 of 4 partitions, mean 2. Topic b is even.
    replicas = [[1]] * 4 + [[1], [2]]
    model = model_of(brokers(2), replicas, [MIB] * 6, topics=["a"] * 4 + ["b"] * 2)
    card = scorecard_of(model, built_in_goals())
    row = [goal.name for goal in card.goals].index("topic_replicas")
    assert card.met[row].tolist() == [False, False]
    # Band of topic a: 1.8 to 2.2, length 10. 4 is 1.8 beyond: 1 - 0.9 x 0.18 = 0.838; topic b scores 1.
    assert card.scores[row].tolist() == pytest.approx([(0.838 + 1) / 2] * 2)


@pytest.mark.parametrize("change", [{"known": False}, {"alive": False}])
def test_replicas_on_brokers_that_do_not_count_are_in_no_mean_of_a_topic(change: dict[str, bool]) -> None:
    """Each of 4 brokers has 3 of 12 partitions. Of the three that count, which have 9, the mean is 3."""
    states = [*brokers(3), BalanceBroker(4, **change)]  # type: ignore[arg-type]
    card = scorecard_of(model_of(states, [[n % 4 + 1] for n in range(12)], [MIB] * 12), built_in_goals())
    names = [goal.name for goal in card.goals]
    for name in ("topic_leaders", "topic_replicas"):
        assert card.met[names.index(name)].all()
        assert card.scores[names.index(name), :3].tolist() == [1.0] * 3


def first_batches(proposal: Proposal, actions: int) -> list[BalanceBatch]:
    return make_batches(ClusterLoads(proposal.model), proposal.goals, proposal.actions[:actions], CopyLimits())


def run_of(found: Sequence[BalanceBatch]) -> BatchRun:
    return BatchRun(found, [{}] * len(found))


@settings(max_examples=6, deadline=None)
@given(clusters())
def test_prefixes_gain_more_and_more_and_effects_add_up(found: tuple[list[BalanceBroker], PartitionArrays]) -> None:
    proposal = propose(cluster_model(*found), built_in_goals())
    numbers = prefixes(proposal)
    count = len(proposal.actions)
    assert numbers == sorted(set(numbers))
    assert (numbers[-1:] == [count]) is bool(count)
    free = next((n for n, action in enumerate(proposal.actions) if action.copies), count)
    assert free in {0, *numbers}
    whole = first_batches(proposal, count)
    for number in numbers:
        batches = first_batches(proposal, number)
        price = prefix_price(proposal, number, run_of(whole), 1e12)
        assert price.batches == len(batches)
        assert price.duration_s is not None
        # A batch of all actions may have another room for a throttle than one of the first alone.
        if all(math.isinf(batch.room.most_bytes_per_s) for batch in whole):
            assert price.duration_s == run_of(batches).rough_s(1e12)[1]
        assert sum(len(batch.actions) for batch in batches) == number
        assert price.copied_bytes == pytest.approx(sum(a.bytes_copied for a in proposal.actions[:number]))
        assert price.gain_ratio == gain_ratio(proposal, number)
    for number in {1, count} if count else set():
        found_effects = explain(proposal, number)
        before, after = proposal.state(number - 1), proposal.state(number)
        both = [found_effects.action.source, found_effects.action.target]
        assert found_effects.loads_before == pytest.approx(before.loads[:, both])
        assert found_effects.loads_after == pytest.approx(after.loads[:, both])
        for effect in found_effects.effects:
            # A limit that both kept is kept.
            assert not (effect.hard and all(effect.held)) or all(effect.holds)
    with pytest.raises(HeadroomError, match="is not in the proposal"):
        explain(proposal, count + 1)


def test_an_explanation_meets_the_goals_that_the_scores_meet() -> None:
    """4 leads on 3 brokers: one has 2, between which and 1 there is no whole number."""
    # Network rates below 1 MiB/s count as in band.
    proposal = propose(model_of(brokers(3), [[1, 2, 3]] * 4, [0.1 * MIB] * 4), built_in_goals())
    count = len(proposal.actions)
    state = proposal.state(count)
    assert sorted(np.bincount(state.leader).tolist()) == [1, 1, 2]
    card = scorecard_of(proposal.model.with_placement(state.replicas, state.leader), built_in_goals())
    assert card.met.all()
    assert all(all(effect.holds) for effect in explain(proposal, count).effects)


def test_a_throttle_in_force_counts_only_if_every_broker_has_one() -> None:
    # 6 partitions on broker 1 alone, at 10 MiB/s each: some move.
    model = model_of(brokers(2), [[1]] * 6, [10.0 * MIB] * 6)
    proposal = propose(model, built_in_goals())
    batches = first_batches(proposal, len(proposal.actions))
    with_one = broker(1, leader_bytes_per_s=90_000_000), broker(2, follower_bytes_per_s=80_000_000)
    chosen = choose_throttle(run_of(batches), ThrottleRequest(), state_of(with_one, []))
    assert (chosen.source, chosen.bytes_per_s) == (ThrottleSource.IN_FORCE, 80_000_000)
    without = broker(1, leader_bytes_per_s=90_000_000), broker(2)
    chosen = choose_throttle(run_of(batches), ThrottleRequest(), state_of(without, []))
    # 3 partitions move: their leader sends 30 MiB/s, x 1.2.
    assert (chosen.source, chosen.bytes_per_s) == (ThrottleSource.RECOMMENDED, pytest.approx(36 * MIB, abs=1))
    assert choose_throttle(run_of([]), ThrottleRequest(), state_of(without, [])).bytes_per_s is None


def test_a_rate_left_over_that_a_batch_does_not_fit_is_not_chosen() -> None:
    model = model_of(brokers(2), [[1]] * 6, [10.0 * MIB] * 6)
    proposal = propose(model, built_in_goals())
    run = run_of(first_batches(proposal, len(proposal.actions)))
    # The leader sends 30 MiB/s, x 1.2 = 37.7 MB/s. With 20 or 35 MB/s the batch would never end, or hardly.
    for left_over, capacity, source in (
        (20_000_000, None, ThrottleSource.RECOMMENDED),
        (35_000_000, None, ThrottleSource.RECOMMENDED),
        (35_000_000, 90e6, ThrottleSource.CAPACITY),
        (38_000_000, 90e6, ThrottleSource.IN_FORCE),
    ):
        state = state_of([broker(n, leader_bytes_per_s=left_over, follower_bytes_per_s=left_over) for n in (1, 2)], [])
        chosen = choose_throttle(run, ThrottleRequest(capacity_bytes_per_s=capacity), state)
        assert (chosen.source, run.rough_s(chosen.bytes_per_s or 0)[1] is not None) == (source, True)


def test_a_deadline_that_no_throttle_meets_is_missed_whatever_is_known_of_capacities() -> None:
    model = model_of(brokers(2), [[1]] * 6, [10.0 * MIB] * 6)
    proposal, state = propose(model, built_in_goals()), state_of([broker(1), broker(2)], [])
    run = run_of(first_batches(proposal, len(proposal.actions)))
    # 3 GB in 5 s are 600 MB/s, and 3 x 10 MiB/s are written meanwhile.
    for within_s, capacity, network, rate in (
        (5.0, 100e6, None, 100_000_000),
        (5.0, None, 100e6, 100_000_000),
        (5.0, 200e6, 100e6, 100_000_000),
        # A broker that sends more than the network is said to carry: less than the batch needs never ends.
        (5.0, None, 20e6, 37_748_736),
        # Sooner than any throttle allows: what survives a leader switch.
        (0.01, None, None, 37_748_736),
    ):
        chosen = choose_throttle(run, ThrottleRequest(None, within_s, capacity, network), state)
        assert (chosen.bytes_per_s, chosen.misses_deadline) == (rate, True)
    chosen = choose_throttle(run, ThrottleRequest(None, 5.0), state)
    assert (chosen.bytes_per_s, chosen.misses_deadline) == (pytest.approx(644e6, rel=0.01), False)


BATCHES = (
    ProposedBatch(plan_of({0: (2, 1), 1: (2, 1)}), plan_of({0: (1, 2), 1: (1, 2)})),
    ProposedBatch(plan_of({0: (2, 3), 2: (3, 2)}), plan_of({0: (2, 1), 2: (1, 2)})),
)


def replicas(*rows: tuple[int, ...], moving: tuple[int, ...] = ()) -> dict[TopicPartition, PartitionState]:
    names = [TopicPartition("t", n) for n in range(len(rows))]
    return {
        name: PartitionState(name, row[0], row, row, name.partition in moving)
        for name, row in zip(names, rows, strict=True)
    }


@pytest.mark.parametrize(
    ("current", "done", "next_batch"),
    [
        (replicas((1, 2), (1, 2), (1, 2)), (), 1),
        (replicas((2, 1), (1, 2), (1, 2)), (), 1),
        (replicas((2, 1), (2, 1), (1, 2)), (1,), 2),
        # The first batch is done although the second one has changed its partition since.
        (replicas((2, 3), (2, 1), (1, 2)), (1,), 2),
        (replicas((2, 3), (2, 1), (3, 2)), (1, 2), None),
    ],
)
def test_progress(current: dict[TopicPartition, PartitionState], done: tuple[int, ...], next_batch: int | None) -> None:
    found = proposal_progress(BATCHES, current, "p")
    assert (found.done, found.next_batch, found.moving) == (done, next_batch, ())


def test_a_batch_is_done_only_if_its_leaders_lead() -> None:
    now = replicas((2, 3), (2, 1), (3, 2))
    for partition, done, next_batch in ((1, (2,), 1), (2, (1,), 2), (0, (1,), 2)):
        name = TopicPartition("t", partition)
        for leader in (9, None):
            found = proposal_progress(BATCHES, {**now, name: replace(now[name], leader=leader)}, "p")
            assert (found.done, found.next_batch, found.unled) == (done, next_batch, (name,))
    # Before any batch, nobody has promised a leader.
    first = replicas((1, 2), (1, 2), (1, 2))
    name = TopicPartition("t", 0)
    assert proposal_progress(BATCHES, {**first, name: replace(first[name], leader=2)}, "p").unled == ()


def test_a_partition_that_a_later_batch_took_further_is_left_out_of_an_undone_one() -> None:
    now = replicas((2, 3), (2, 1), (3, 2))
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    switched = proposal_progress(BATCHES, {**now, second: replace(now[second], leader=1)}, "p")
    assert (switched.done, switched.left) == ((2,), {1: plan_of({1: (2, 1)})})
    # A lead of the later batch is a matter of that one alone, and before it both are carried out as proposed.
    switched = proposal_progress(BATCHES, {**now, first: replace(now[first], leader=3)}, "p")
    assert (switched.done, switched.left) == ((1,), {2: BATCHES[1].plan})
    between = replicas((2, 1), (2, 1), (1, 2))
    switched = proposal_progress(BATCHES, {**between, second: replace(between[second], leader=1)}, "p")
    assert (switched.done, switched.left) == ((), {1: BATCHES[0].plan, 2: BATCHES[1].plan})


def test_a_late_election_is_not_taken_back_by_the_batch_of_its_copy() -> None:
    batches = (
        ProposedBatch(plan_of({0: (1, 3), 1: (3, 2)}), plan_of({0: (1, 2), 1: (1, 2)})),
        ProposedBatch(plan_of({0: (3, 1)}), plan_of({0: (1, 3)})),
    )
    now, name = replicas((3, 1), (3, 2)), TopicPartition("t", 1)
    found = proposal_progress(batches, {**now, name: replace(now[name], leader=2)}, "p")
    assert (found.done, found.left) == ((2,), {1: plan_of({1: (3, 2)})})


def test_a_moving_partition_is_not_done_and_not_older() -> None:
    found = proposal_progress(BATCHES, replicas((2, 1, 3), (2, 1), (1, 2), moving=(0,)), "p")
    assert (found.done, found.next_batch, found.moving) == ((), 1, (TopicPartition("t", 0),))


@pytest.mark.parametrize(
    ("current", "rule"),
    [
        (replicas((1, 2), (3, 1), (9, 2)), "t-1 has replicas 3,1, which no batch left behind, and 1 more changed"),
        (replicas((1, 2), (1, 2)), "t-2 does not exist"),
        # A batch that is taken back is no other change, but another order is.
        (replicas((1, 2), (1, 2), (2, 1)), "t-2 has replicas 2,1"),
    ],
)
def test_a_proposal_older_than_the_assignment(current: dict[TopicPartition, PartitionState], rule: str) -> None:
    with pytest.raises(HeadroomError) as failed:
        proposal_progress(BATCHES, current, "out")
    assert failed.value.subject == "out"
    assert rule in failed.value.rule


def test_no_batches_are_done() -> None:
    assert proposal_progress([], {}, "p").next_batch is None
    assert len(ReassignmentPlan(())) == 0
