"""Batches fit their throttle and are the plan together; rollback undoes it."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from headroom.planning.reassignments.batches.batch import ReassignmentBatch, batches_of, copy_time_s
from headroom.planning.reassignments.batches.batching import BatchedPlan, BatchPolicy, cut_into_batches
from headroom.planning.reassignments.batches.copy_need import copy_needs
from headroom.planning.reassignments.batches.packing import Packer, Packing
from headroom.planning.reassignments.changes import plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.planning.reassignments.generation.planner import make_plan
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.throttles.replica_lists import TopicLists
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from tests.support.random_placements import carried_out, cluster_state, cluster_states, placement, plan_requests

MARGIN_RATIO = 1.2


@st.composite
def plans(draw: st.DrawFn) -> tuple[ClusterState, ReassignmentPlan, tuple[TargetAssignment, ...]]:
    """A cluster, a plan for it, and the leads that are given up first."""
    state = draw(cluster_states())
    try:
        made = make_plan(state, draw(plan_requests(state)))
    except HeadroomError:
        assume(False)
        raise
    assume(len(made.plan))
    return state, made.plan, made.leads_first


def plan_of(*assignments: tuple[int, Sequence[int]]) -> ReassignmentPlan:
    return ReassignmentPlan(
        tuple(TargetAssignment(TopicPartition("foo", number), tuple(own)) for number, own in assignments)
    )


def growing(rates: Sequence[float], size_bytes: int | None = 1_000_000) -> tuple[ClusterState, ReassignmentPlan]:
    """Partitions with one replica on broker 0 that all get a second one on broker 1."""
    partitions = [placement("foo", n, [0], size_bytes, rate) for n, rate in enumerate(rates)]
    return cluster_state([0, 1], partitions), plan_of(*((n, (0, 1)) for n in range(len(rates))))


def required(state: ClusterState, batch: ReassignmentBatch, switched: set[int]) -> Counter[BrokerRole]:
    """Required rate of each broker and role, where the partitions in ``switched`` have got their preferred leader."""
    sums: Counter[BrokerRole] = Counter()
    for at, target in enumerate(batch.assignments):
        p = state.partitions[target.name]
        new = [broker for broker in target.replicas if broker not in p.replicas]
        if not new:
            continue
        leads = at in switched and target.replicas[0] in p.isr and target.replicas[0] in p.replicas
        leader = target.replicas[0] if leads else p.leader
        followers = [b for b in {*p.replicas, *target.replicas} if b != leader and b in state.alive]
        assert leader is not None
        sums[BrokerRole(leader, Role.LEADER)] += (p.write_bytes_per_s or 0.0) * len(followers)
        for broker in new:
            sums[BrokerRole(broker, Role.FOLLOWER)] += p.write_bytes_per_s or 0.0
    return sums


@given(plans(), st.floats(1.0, 400.0), st.randoms(use_true_random=False))
def test_no_batch_needs_more_than_the_limit_whatever_leads_switch_meanwhile(
    found: tuple[ClusterState, ReassignmentPlan, tuple[TargetAssignment, ...]], limit: float, chance: random.Random
) -> None:
    state, plan, _ = found
    try:
        cut = cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=limit))
    except HeadroomError:
        # A partition alone exceeds the limit: test_batches_that_cannot_fit_are_refused.
        assume(False)
        raise
    for batch in cut.batches:
        switched = {at for at in range(len(batch.assignments)) if chance.random() < 0.5}
        sums = required(state, batch, switched)
        assert max(sums.values(), default=0.0) * MARGIN_RATIO <= limit * (1 + 1e-12)
        # The smallest rate covers every such state, and none of its own.
        assert max(sums.values(), default=0.0) <= batch.smallest_bytes_per_s


def test_traffic_in_lists_in_force_counts_in_every_batch() -> None:
    """A list of every replica names foo-2 too, which does not move: 3 B/s of broker 0 to its follower on broker 1.

    foo-0 and foo-1 of 1 B/s get a third replica each: 2 B/s at their leader 0, and 1 B/s at the other partition's
    leader too, because its follower on broker 1 is listed. Broker 1 is no leader, and gets no copy.
    """
    partitions = [placement("foo", n, [0, 1], 100, rate) for n, rate in enumerate((1.0, 1.0, 3.0))]
    state = replace(cluster_state([0, 1, 2], partitions), lists={"foo": TopicLists("*", "*")})
    plan = plan_of((0, (0, 1, 2)), (1, (0, 1, 2)))
    at = BrokerRole(0, Role.LEADER), BrokerRole(2, Role.FOLLOWER)
    cut = cut_into_batches(state, plan, BatchPolicy(2))
    assert [batch.required_bytes_per_s for batch in cut.batches] == [{at[0]: 6.0, at[1]: 1.0}] * 2
    together = cut_into_batches(state, plan, BatchPolicy(1))
    assert together.batches[0].required_bytes_per_s == {at[0]: 7.0, at[1]: 2.0}
    # A batch of its own needs 6 B/s, and 7.2 with the margin.
    assert len(cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=7.5)).batches) == 2
    with pytest.raises(HeadroomError, match="in a batch of its own"):
        cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=7.0))


def test_a_broker_that_gets_the_throttle_and_limits_replicas_of_others_alone_counts_in_a_batch() -> None:
    """bar-0 is behind on broker 2, listed at its leader 1, which gets the rate because it may lead foo-0."""
    behind = placement("bar", 0, [1, 2], 100, 5.0, isr=[1])
    state = cluster_state([0, 1, 2], [placement("foo", 0, [0, 1], 100, 1.0), behind])
    state = replace(state, lists={"bar": TopicLists("0:1", None)})
    (batch,) = cut_into_batches(state, plan_of((0, (2, 0))), BatchPolicy(1)).batches
    expected = {BrokerRole(0, Role.LEADER): 2.0, BrokerRole(1, Role.LEADER): 5.0, BrokerRole(2, Role.FOLLOWER): 1.0}
    assert batch.required_bytes_per_s == expected


@given(plans(), st.none() | st.integers(1, 8), st.booleans())
def test_the_batches_are_the_plan_and_each_partition_is_in_one(
    found: tuple[ClusterState, ReassignmentPlan, tuple[TargetAssignment, ...]], batches: int | None, first: bool
) -> None:
    state, plan, leads_first = found
    cut = cut_into_batches(state, plan, BatchPolicy(batches), leads_first if first else ())
    assert len(cut.durations_s) == len(cut.batches)
    assert cut.leads_first == (first and bool(leads_first))
    last = {target.name: target for batch in cut.batches for target in batch.assignments}
    assert last == plan.by_name
    if cut.leads_first:
        final = set(plan)
        assert all(target in final or target in leads_first for target in cut.batches[0].assignments)
        assert cut.batches[0].copied_bytes == {}
    else:
        assert sum(len(batch.assignments) for batch in cut.batches) == len(plan)
    if batches is not None:
        assert cut.chosen.batches <= batches


@given(plans(), st.randoms(use_true_random=False))
def test_the_order_of_the_plan_changes_nothing(
    found: tuple[ClusterState, ReassignmentPlan, tuple[TargetAssignment, ...]], chance: random.Random
) -> None:
    state, plan, leads_first = found
    shuffled = list(plan)
    chance.shuffle(shuffled)
    policy = BatchPolicy(3)
    assert cut_into_batches(state, ReassignmentPlan(tuple(shuffled)), policy, leads_first) == cut_into_batches(
        state, plan, policy, leads_first
    )


@given(plans())
def test_rollback_undoes_a_plan(
    found: tuple[ClusterState, ReassignmentPlan, tuple[TargetAssignment, ...]],
) -> None:
    state, plan, _ = found
    back = carried_out(carried_out(state, plan), plan_changes(plan, state).rollback)
    assert {p.name: p.replicas for p in back.partitions.values()} == {
        p.name: p.replicas for p in state.partitions.values()
    }


@given(st.lists(st.integers(1, 10), min_size=1, max_size=7), st.integers(10, 30))
def test_automatic_batches_are_the_fewest(rates: list[int], limit: int) -> None:
    state, plan = growing([float(rate) for rate in rates])
    cut = cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=limit * MARGIN_RATIO))
    # Bin packing, exactly, by trying all orders with "next fit", whose best one is optimal.
    assert cut.chosen.batches == fewest(sorted(rates, reverse=True), limit, [])


def fewest(rates: list[int], limit: int, bins: list[int]) -> int:
    if not rates:
        return len(bins)
    found = fewest(rates[1:], limit, [*bins, rates[0]])
    for at, used in enumerate(bins):
        if used + rates[0] <= limit:
            found = min(found, fewest(rates[1:], limit, [*bins[:at], used + rates[0], *bins[at + 1 :]]))
    return found


def test_the_required_rate_counts_every_follower_on_both_leaders() -> None:
    """Partition 0 is led by 1 and goes to 2: all three followers of [1, 2, 0] + [3] fetch 5 B/s from either."""
    p = replace(placement("foo", 0, [1, 2, 0], 1000, 5.0), leader=1)
    state = cluster_state([0, 1, 2, 3], [p])
    batch = cut_into_batches(state, plan_of((0, (2, 0, 3))), BatchPolicy()).batches[0]
    assert batch.required_bytes_per_s == {
        BrokerRole(1, Role.LEADER): 15.0,
        BrokerRole(2, Role.LEADER): 15.0,
        BrokerRole(3, Role.FOLLOWER): 5.0,
    }
    assert batch.copied_bytes == {BrokerRole(2, Role.LEADER): 1000, BrokerRole(3, Role.FOLLOWER): 1000}
    # Kafka's quotas are inaccurate below 1 MB/s.
    assert batch.throttle_bytes_per_s == 1_000_000
    stays = replace(state, auto_leader_rebalance=False)
    batch = cut_into_batches(stays, plan_of((0, (2, 0, 3))), BatchPolicy()).batches[0]
    assert batch.required_bytes_per_s == {BrokerRole(1, Role.LEADER): 15.0, BrokerRole(3, Role.FOLLOWER): 5.0}


def test_leads_that_are_given_up_first_count_on_the_new_leader_only() -> None:
    state = cluster_state([0, 1, 2], [placement("foo", 0, [0, 1], 1000, 5.0)])
    first = (TargetAssignment(TopicPartition("foo", 0), (1, 0)),)
    batch = cut_into_batches(state, plan_of((0, (1, 2))), BatchPolicy(), first).batches[1]
    assert batch.required_bytes_per_s == {BrokerRole(1, Role.LEADER): 10.0, BrokerRole(2, Role.FOLLOWER): 5.0}


def test_partitions_that_gain_no_replica_add_nothing() -> None:
    """4 MB/s at rest beside 1 MB/s that moves: 1 MB/s x 2 followers are required, not 6."""
    state = cluster_state([0, 1, 2], [placement("foo", 0, [0, 1], 10, 1e6), placement("foo", 1, [0, 1], 10, 4e6)])
    cut = cut_into_batches(state, plan_of((0, (0, 1, 2)), (1, (1, 0))), BatchPolicy())
    assert [len(batch.assignments) for batch in cut.batches] == [2]
    assert cut.batches[0].smallest_bytes_per_s == 2e6


def test_time_is_bytes_over_the_gain_of_the_slowest() -> None:
    batch = ReassignmentBatch(
        assignments=(),
        required_bytes_per_s={BrokerRole(0, Role.LEADER): 4e6, BrokerRole(1, Role.FOLLOWER): 2e6},
        copied_bytes={BrokerRole(0, Role.LEADER): 100_000_000, BrokerRole(1, Role.FOLLOWER): 400_000_000},
        throttle_bytes_per_s=6_000_000,
    )
    # 100 MB / 2 MB/s = 50 s at the leader, 400 MB / 4 MB/s = 100 s at the destination.
    assert copy_time_s(batch) == 100.0
    assert copy_time_s(replace(batch, throttle_bytes_per_s=4_000_000)) == math.inf
    assert copy_time_s(replace(batch, unknown_sizes=1)) is None


def test_more_batches_need_less_and_the_table_shows_both() -> None:
    state, plan = growing([2e6] * 6)
    cut = cut_into_batches(state, plan, BatchPolicy(3))
    # Two of the six in each batch, 2 MB/s each, plus the margin.
    assert cut.chosen.needed_bytes_per_s == pytest.approx(4.8e6)
    assert [(o.batches, round(o.needed_bytes_per_s)) for o in cut.options] == [
        (1, 14_400_000),
        (2, 7_200_000),
        (3, 4_800_000),
        # Four batches still have two partitions in one of them.
        (4, 4_800_000),
        (6, 2_400_000),
    ]


def test_a_deadline_raises_the_throttle() -> None:
    """6 MB in one batch with 12 MB/s required, in 2 s: 12 + 6 / 2 = 15 MB/s; the margin alone would be 14.4."""
    state, plan = growing([2e6] * 6)
    cut = cut_into_batches(state, plan, BatchPolicy(finish_within_s=2.0))
    assert cut.chosen.batches == 1
    assert cut.chosen.fits
    assert cut.chosen.total_s == pytest.approx(2.0, rel=0.1)
    assert cut.chosen.throttle_bytes_per_s == pytest.approx(15e6, rel=0.02)
    assert cut.in_time_bytes_per_s is None


def test_a_deadline_that_no_number_of_batches_keeps_gets_the_best_and_a_throttle_that_would() -> None:
    """One partition: 1 MB at 5 - 2 MB/s takes 0.33 s; in 0.1 s it takes 12 MB/s."""
    state, plan = growing([2e6])
    cut = cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=5e6, finish_within_s=0.1))
    assert (cut.chosen.batches, cut.chosen.fits) == (1, False)
    assert cut.chosen.total_s == pytest.approx(1 / 3)
    assert cut.in_time_bytes_per_s == pytest.approx(12e6, rel=0.02)


def test_a_deadline_beyond_the_capacity_gets_the_capacity() -> None:
    """6 MB with 12 MB/s required in 1 s take 18 MB/s. At a capacity of 16 it is 6 / 4 = 1.5 s, at 14.4 MB/s 2.5 s."""
    state, plan = growing([2e6] * 6)
    cut = cut_into_batches(state, plan, BatchPolicy(1, finish_within_s=1.0, capacity_bytes_per_s=16e6))
    assert (cut.chosen.throttle_bytes_per_s, cut.chosen.fits) == (16_000_000, False)
    assert cut.chosen.total_s == pytest.approx(1.5)
    assert cut.in_time_bytes_per_s is None


def test_the_margin_is_as_large_as_the_capacity_allows() -> None:
    """12 MB/s required and the margin are 14.4 MB/s; a broker that carries 13 MB/s has no use for more."""
    state, plan = growing([2e6] * 6)
    cut = cut_into_batches(state, plan, BatchPolicy(1, capacity_bytes_per_s=13e6))
    assert (cut.chosen.throttle_bytes_per_s, cut.chosen.fits) == (13_000_000, True)
    # Where it is not enough, the throttle is what it should be.
    short = cut_into_batches(state, plan, BatchPolicy(1, capacity_bytes_per_s=11e6))
    assert short.chosen.throttle_bytes_per_s == 14_400_000


def test_a_batch_that_never_ends_does_not_fit() -> None:
    """A duration that no throttle makes finite, as where a broker cannot carry what is required."""
    state, plan = growing([2e6])
    cut = cut_into_batches(state, plan, BatchPolicy(1, capacity_bytes_per_s=1e6), duration_s=lambda batch: math.inf)
    assert (cut.chosen.total_s, cut.chosen.fits, cut.in_time_bytes_per_s) == (math.inf, False, None)


def test_batches_wait_for_the_next_window_where_they_do_not_fit() -> None:
    """Each of three batches takes 1 MB / (3 - 2) MB/s = 1 s: one fits into a window of 1.5 s, two do not."""
    state, plan = growing([2e6] * 3)
    cut = cut_into_batches(state, plan, BatchPolicy(3, max_throttle_bytes_per_s=3e6, window_s=1.5))
    assert (cut.chosen.longest_s, cut.chosen.windows, cut.chosen.fits) == (1.0, 3, True)


def test_a_window_is_kept_by_more_batches() -> None:
    """With 10 MB/s all four take 4 MB / 2 MB/s = 2 s together, but two take 2 / 6 = 0.33 s."""
    state, plan = growing([2e6] * 4)
    cut = cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=10e6, window_s=1.0))
    assert (cut.chosen.batches, cut.chosen.fits, cut.chosen.windows) == (2, True, 1)


@pytest.mark.parametrize(
    ("rates", "policy", "said"),
    [
        ([5e6], BatchPolicy(max_throttle_bytes_per_s=5e6), "foo-0: needs a throttle of 6.00 MB/s in a batch"),
        ([2e6] * 4, BatchPolicy(2, max_throttle_bytes_per_s=4e6), "2 batches: need a throttle of 4.80 MB/s"),
        ([2e6], BatchPolicy(0), "at least 1"),
    ],
)
def test_batches_that_cannot_fit_are_refused(rates: list[float], policy: BatchPolicy, said: str) -> None:
    state, plan = growing(rates)
    with pytest.raises(HeadroomError) as refused:
        cut_into_batches(state, plan, policy)
    assert said in str(refused.value)


def test_an_unknown_write_rate_fits_no_limit_but_can_be_counted() -> None:
    partitions = [placement("foo", n, [0], 1000, None) for n in range(4)]
    state, plan = cluster_state([0, 1], partitions), plan_of(*((n, (0, 1)) for n in range(4)))
    with pytest.raises(HeadroomError, match="write rate of 4 partitions is unknown"):
        cut_into_batches(state, plan, BatchPolicy(max_throttle_bytes_per_s=5e6))
    cut = cut_into_batches(state, plan, BatchPolicy(2))
    assert [len(batch.assignments) for batch in cut.batches] == [2, 2]
    assert (cut.durations_s, cut.chosen.total_s, cut.chosen.fits) == ((None, None), None, True)


def test_another_estimate_of_the_time_can_be_given() -> None:
    state, plan = growing([2e6] * 4)
    cut: BatchedPlan = cut_into_batches(state, plan, BatchPolicy(2), duration_s=lambda batch: len(batch.assignments))
    assert cut.durations_s == (2, 2)


def test_a_plan_that_copies_nothing_is_one_batch() -> None:
    state = cluster_state([0, 1], [placement("foo", n, [0, 1]) for n in range(4)])
    cut = cut_into_batches(state, plan_of((0, (1, 0)), (1, (0,))), BatchPolicy(3, max_throttle_bytes_per_s=2e6))
    assert [len(batch.assignments) for batch in cut.batches] == [2]
    assert (cut.durations_s, cut.chosen.batches, cut.chosen.fits) == ((0.0,), 0, True)
    assert cut_into_batches(state, plan_of(), BatchPolicy()).batches == ()


@given(plans(), st.integers(1, 5))
def test_copies_that_are_put_into_batches_in_blocks_are_all_in_one_and_fit(
    found: tuple[ClusterState, ReassignmentPlan, tuple[TargetAssignment, ...]], batches: int
) -> None:
    state, plan, _ = found
    needs = copy_needs(state, sorted(plan, key=lambda a: a.name), {})
    divided = Packer(needs, many=0).divide(batches, Packing.EVEN, math.inf)
    assert divided is not None
    made = batches_of(needs, divided)
    assert len(made) <= batches
    assert sorted(str(a.name) for batch in made for a in batch.assignments) == sorted(
        str(a.name) for a in needs.assignments
    )
    together = batches_of(needs, np.zeros(len(needs), np.int64))
    for role, rate in (together[0].required_bytes_per_s if together else {}).items():
        assert sum(b.required_bytes_per_s.get(role, 0.0) for b in made) == pytest.approx(rate)


def test_blocks_of_copies_are_as_even_as_copies_one_by_one() -> None:
    """8,000 copies between 12 brokers, with rates and sizes that differ a thousandfold, in 5 batches."""
    chance, partitions, targets = random.Random(3), [], []
    for number in range(8_000):
        *replicas, new = chance.sample(range(12), 3)
        rate = 10 ** chance.uniform(0, 3)
        partitions.append(placement("foo", number, replicas, int(1000 * 10 ** chance.uniform(0, 3)), rate))
        targets.append((number, (replicas[0], new)))
    state, plan = cluster_state(range(12), partitions), plan_of(*targets)
    needs = copy_needs(state, list(plan), {})
    mean = batches_of(needs, np.zeros(len(needs), np.int64))[0].smallest_bytes_per_s / 5
    for packing in (Packing.EVEN, Packing.EVEN_RATES):
        for limit in (math.inf, 1.005 * mean):
            blocks, one_by_one = (
                batches_of(needs, divided)
                for many in (0, len(needs))
                if (divided := Packer(needs, many).divide(5, packing, limit)) is not None
            )
            assert most_rate(blocks) <= min(limit, 1.03 * most_rate(one_by_one))
            if packing is Packing.EVEN:
                assert most_bytes(blocks) <= 1.03 * most_bytes(one_by_one)


def most_rate(batches: list[ReassignmentBatch]) -> float:
    return max(batch.smallest_bytes_per_s for batch in batches)


def most_bytes(batches: list[ReassignmentBatch]) -> int:
    return max(max(batch.copied_bytes.values()) for batch in batches)
