"""Time that a broker takes to move replicas between its directories at a rate."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from headroom.planning.log_dirs.duration import directory_estimates, directory_moves_time
from headroom.planning.quotas.limits import FetchLimits
from headroom.planning.quotas.long_run import CopyTime
from headroom.planning.reassignments.directory_moves import DirectoryMove, directory_moves
from headroom.schemas.keys import TopicPartition
from tests.unit.builders.log_dirs import GB, MB, A, B, cluster, placed, plan

# A fetch of one byte: the rate is not rounded to whole fetches.
STEADY = FetchLimits(partition_bytes=1)


def move(partition: int, size: int | None, written: float | None = 0.0) -> DirectoryMove:
    return DirectoryMove(TopicPartition("orders", partition), 1, A, B, size, write_bytes_per_s=written)


def test_the_sum_of_the_logs_is_copied_at_the_rate() -> None:
    # 3 GB at 10 MB/s: 300 s. Between 95 and 100 % of the bytes are new (YIELD_RATIOS of planning/quotas/long_run.py).
    found = directory_moves_time([move(0, GB), move(1, 2 * GB)], 10 * MB, fetch=STEADY)
    assert found is not None
    assert found.low_s == pytest.approx(300, rel=0.001)
    assert found.middle_s == pytest.approx(300 / 0.985, rel=0.001)
    assert found.high_s == pytest.approx(300 / 0.95, rel=0.001)


def test_a_log_grows_while_it_waits_for_the_others() -> None:
    # Alone, 1 GB at 10 - 5 MB/s takes 200 s. Then orders-1 has 1 GB + 200 s x 4 MB/s = 1.8 GB: 1.8 GB / 6 MB/s = 300 s.
    found = directory_moves_time([move(1, GB, 4.0 * MB), move(0, GB, 5.0 * MB)], 10 * MB, fetch=STEADY)
    assert found is not None
    assert found.low_s == pytest.approx(500, rel=0.001)


def test_a_log_that_grows_as_fast_as_it_is_copied_never_ends() -> None:
    never = CopyTime(None, None, None)
    assert directory_moves_time([move(0, GB, 11.0 * MB)], 10 * MB, fetch=STEADY) == never


def test_a_rate_below_a_fetch_in_each_window_is_not_kept() -> None:
    # 2 kB/s, and a fetch of 1 MiB in each window of 11 to 12 s: at least 87 kB/s, whatever the rate.
    found = directory_moves_time([move(0, 100 * MB)], 2000)
    assert found is not None
    assert found.middle_s is not None
    assert found.middle_s < 100 * MB / 80_000


def test_without_a_rate_or_a_size_the_time_is_unknown() -> None:
    assert directory_moves_time([move(0, GB)], None) is None
    assert directory_moves_time([move(0, None)], 10 * MB) is None
    assert directory_moves_time([move(0, GB, None)], 10 * MB) is None
    assert directory_moves_time([], None) == CopyTime(0.0, 0.0, 0.0)


SIZES = st.lists(st.tuples(st.integers(0, 10**12), st.integers(0, 2 * MB)), min_size=1, max_size=10)


@given(SIZES, st.integers(3 * MB, 100 * MB))
def test_a_higher_rate_is_never_slower_and_the_range_is_in_order(sizes: list[tuple[int, int]], rate: int) -> None:
    moves = [move(number, size, float(written)) for number, (size, written) in enumerate(sizes)]
    slow, fast = directory_moves_time(moves, rate), directory_moves_time(moves, 2 * rate)
    assert slow is not None
    assert fast is not None
    assert slow.low_s is not None
    assert slow.middle_s is not None
    assert slow.high_s is not None
    assert slow.low_s <= slow.middle_s <= slow.high_s
    assert fast.low_s is not None
    assert fast.low_s <= slow.low_s


def test_brokers_are_estimated_one_by_one_at_the_rate_that_they_will_have() -> None:
    # orders-0 moves on brokers 1 and 2, orders-1 on broker 1; the replica on broker 3 is new.
    targets = plan(("orders", 0, (1, 2), (B, B)), ("orders", 1, (1, 3), (B, B)))
    moves = directory_moves(targets, cluster(placed(), placed(partition=1)))
    first, second = directory_estimates(moves, {1: 2 * MB, 2: 80 * MB}, 50 * MB)
    assert (first.broker, first.replicas, first.size_bytes, first.rate_bytes_per_s) == (1, 2, 2 * GB, 50 * MB)
    assert first.time == directory_moves_time([move for move in moves if move.broker == 1], 50 * MB)
    # A higher rate in force stays.
    assert (second.broker, second.replicas, second.rate_bytes_per_s) == (2, 1, 80 * MB)
    assert [found.time for found in directory_estimates(moves, {})] == [None, None]
