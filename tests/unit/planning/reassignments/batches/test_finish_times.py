"""Times of batches with what other replication leaves of the capacity."""

from __future__ import annotations

import math

import pytest

from headroom.planning.reassignments.batches import finish_times as module
from headroom.planning.reassignments.batches.batching import BatchPolicy, cut_into_batches
from headroom.planning.reassignments.batches.finish_times import finish_times, plan_time_s
from tests.unit.builders.cluster_states import MB, placed, plan_of, state_of

# Broker 3 copies 100 MB from broker 1, and receives 2 MB/s from it of a partition that stays.
MOVES, STAYS = placed(0, (1,)), placed(1, (1, 3), write_bytes_per_s=2.0 * MB)
PLAN = plan_of({0: (1, 3)})


def time_s(capacity: float | None, throttle: int, others: bool) -> float | None:
    state = state_of([MOVES, STAYS] if others else [MOVES])
    policy = BatchPolicy(batches=1, max_throttle_bytes_per_s=throttle)
    duration = finish_times(state, (), capacity)
    (seconds,) = cut_into_batches(state, PLAN, policy, duration_s=duration).durations_s
    return seconds


@pytest.mark.parametrize("most_simulated", [2_000, 0])
def test_other_replication_leaves_less_of_the_capacity_to_a_batch(
    monkeypatch: pytest.MonkeyPatch, most_simulated: int
) -> None:
    """8 MB/s less 2 are 6, simulated or by the sums of a large batch."""
    monkeypatch.setattr(module, "_MOST_PARTITIONS", most_simulated)
    left = time_s(8.0 * MB, 100 * MB, others=True)
    assert left == pytest.approx(time_s(6.0 * MB, 100 * MB, others=False))
    assert left != pytest.approx(time_s(8.0 * MB, 100 * MB, others=False), rel=0.05)
    # 1 MB/s is left of 3, which the writes of the partition use up.
    assert time_s(3.0 * MB, 100 * MB, others=True) == math.inf


def test_a_run_knows_that_too() -> None:
    state, alone = state_of([MOVES, STAYS]), state_of([MOVES])
    assert plan_time_s(PLAN, state, 100 * MB, 8.0 * MB) == pytest.approx(plan_time_s(PLAN, alone, 6 * MB, None))
