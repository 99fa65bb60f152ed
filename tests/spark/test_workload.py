"""The verdicts of synthetic clusters are the true ones, tick after tick."""

from __future__ import annotations

import json
from typing import Any

import pytest
from pyspark.sql import SparkSession

from benchmarks.fixtures.synthetic.synthetic_ticks import LeaderCounts, SyntheticCluster, Workload
from cluster.collector.rows.encoder import encode_rows
from streaming.transforms.decode import alert_messages, message_rows, with_headers
from streaming.transforms.gold import headroom_rows
from streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from streaming.transforms.tick_status import complete_ticks, rows_of
from tests.spark.ticks import message, records


def test_the_counts_of_leaders_are_the_true_ones(spark: SparkSession) -> None:
    workload = Workload(brokers=12, topics=10, partitions=200, moving_ratio=0.5, cluster="c1")
    messages: list[dict[str, Any]] = []
    truth: dict[tuple[int, int], LeaderCounts] = {}
    for tick in SyntheticCluster(workload).ticks(3):
        messages += [json.loads(m.value) for m in encode_rows("c1", tick.tick_ms, tick)]
        truth |= {(tick.tick_ms, broker): balance for broker, balance in tick.leader_counts.items()}
    raw = records(spark, messages)
    kinds = [message_rows(with_headers(raw), kind) for kind in ("leaders", "logs", "meters")]
    rows = leader_imbalance(ImbalanceInputs(*kinds, rows_of(alert_messages(raw), "brokers")), 0.1).collect()
    counts = ("preferred_partitions", "non_preferred_partitions", "waiting_for_move")
    assert {(row["tick_ms"], row["broker"]): tuple(row[name] for name in counts) for row in rows} == truth
    assert any(balance.waiting_for_move for balance in truth.values())


@pytest.mark.parametrize(("seed", "replication_factor"), [(1, 2), (2, 3), (3, 4)])
def test_the_verdicts_are_the_true_ones(spark: SparkSession, seed: int, replication_factor: int) -> None:
    workload = Workload(
        brokers=12,
        topics=10,
        partitions=200,
        replication_factor=replication_factor,
        moving_ratio=0.5,
        throttle_changes_per_minute=30,
        seed=seed,
        cluster="c1",
    )
    messages: list[dict[str, Any]] = []
    truth: dict[tuple[int, int, str], str] = {}
    for tick in SyntheticCluster(workload).ticks(4):
        sent = [json.loads(m.value) for m in encode_rows("c1", tick.tick_ms, tick) if m.for_alerts]
        end = {"first_offset": len(messages), "lane_messages": len(sent)}
        messages += [*sent, message("tick_end", 99, None, tick.tick_ms, **end)]
        truth |= {(tick.tick_ms, *broker_role): verdict for broker_role, verdict in tick.truth.items()}
    rows = headroom_rows(complete_ticks(alert_messages(records(spark, messages)))).collect()
    assert {(row["tick_ms"], row["broker"], row["role"]): row["verdict"] for row in rows} == truth
    assert {"starved", "losing", "catching_up", "unthrottled"} <= set(truth.values())
