"""Synthetic ticks: the same for the same seed, of the requested size, with the columns of their kinds."""

from __future__ import annotations

from dataclasses import replace

import pytest

from benchmarks.fixtures.synthetic.synthetic_producer import prepare
from benchmarks.fixtures.synthetic.synthetic_ticks import SyntheticCluster, Workload
from headroom.cluster.collector.rows.encoder import KIND_ORDER, encode_rows
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tick_messages import COLUMNAR, column_types

SMALL = Workload(brokers=8, topics=10, partitions=60, moving_ratio=0.5, throttle_changes_per_minute=60)


def encoded(workload: Workload, ticks: int) -> list[list[bytes]]:
    cluster = SyntheticCluster(workload)
    return [[m.value for m in encode_rows("c", tick.tick_ms, tick)] for tick in cluster.ticks(ticks)]


def test_a_seed_makes_its_ticks_again_and_another_seed_makes_others() -> None:
    assert encoded(SMALL, 3) == encoded(SMALL, 3)
    assert encoded(SMALL, 1) != encoded(replace(SMALL, seed=2), 1)


def test_processes_that_share_the_work_prepare_the_same_ticks() -> None:
    alone = prepare(SMALL, 5)
    assert prepare(SMALL, 5, processes=2) == alone
    assert [tick.rows for tick in alone] == [
        sum(len(tick.get(kind)) for kind in KIND_ORDER) for tick in SyntheticCluster(SMALL).ticks(5)
    ]


@pytest.mark.parametrize("replication_factor", [2, 3])
def test_a_tick_has_a_row_for_every_partition_replica_and_broker(replication_factor: int) -> None:
    cluster = SyntheticCluster(replace(SMALL, replication_factor=replication_factor))
    (tick,) = cluster.ticks(1)
    counts = {kind: len(tick.get(kind)) for kind in KIND_ORDER}
    moving = counts["moves"]
    # Half of the topics move: at most 30 partitions, those left out whose new broker would be one that they have.
    assert 15 <= moving <= 30
    assert (counts["brokers"], counts["leaders"], counts["logs"]) == (8, 60, 60)
    assert counts["lags"] == 60 * (replication_factor - 1) + moving
    assert len(tick.truth) == 16


# Sizes of replicas come every 5 minutes, and are in no synthetic tick.
@pytest.mark.parametrize("kind", [kind for kind in COLUMNAR if kind not in ("replica_sizes", "migration_syncs")])
def test_rows_of_every_partition_have_the_columns_of_their_kind(kind: str) -> None:
    (tick,) = SyntheticCluster(SMALL).ticks(1)
    assert list(tick.get(kind)[0]) == list(column_types(kind))


def test_logs_have_a_sample_of_a_window_before_and_a_size_only_where_they_move() -> None:
    cluster = SyntheticCluster(SMALL)
    (tick,) = cluster.ticks(1)
    logs = {TopicPartition(row["topic"], row["partition"]): row for row in tick.get("logs")}
    for p in cluster.partitions:
        log = logs[p.name]
        # 1,000 bytes a record; ten seconds before, ten seconds' bytes less.
        assert (log["broker"], log["is_leader"], log["log_end_offset"]) == (p.leader, True, p.begin_bytes // 1000)
        assert log["prev_read_ms"] == tick.tick_ms - 10_000
        assert log["prev_log_end_offset"] == (p.begin_bytes - 10 * p.bytes_per_s) // 1000
        assert (log["size_bytes"], log["log_start_offset"]) == ((p.begin_bytes, 0) if p.added else (None, None))


def test_switches_and_throttles_change_as_often_as_asked() -> None:
    # 60 a minute at a tick every 10 s: 10 a tick, none in the first.
    switched = [len(tick.switched) for tick in SyntheticCluster(SMALL).ticks(4)]
    assert switched == [0, 10, 10, 10]
    still = replace(SMALL, switches_per_minute=0, throttle_changes_per_minute=0)
    truths = [tick.truth for tick in SyntheticCluster(still).ticks(3)]
    assert truths[0] == truths[1] == truths[2]
    assert {"idle", "unthrottled"} < {
        verdict for tick in SyntheticCluster(SMALL).ticks(9) for verdict in tick.truth.values()
    }
