"""The verdicts of synthetic clusters are the true ones, tick after tick."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from benchmarks.fixtures.synthetic.synthetic_ticks import LeaderCounts, SyntheticCluster, Workload
from headroom.cluster.collector.rows.encoder import encode_rows
from headroom.streaming.transforms.decode import alert_messages, message_rows, with_headers
from headroom.streaming.transforms.gold import headroom_rows
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from headroom.streaming.transforms.tick_status import complete_ticks, rows_of
from tests.spark.cases import Cases, Given, Results, by_case, records_of
from tests.spark.ticks import message, records

# Seed and replication factor of the synthetic clusters.
SHAPES = [(1, 2), (2, 3), (3, 4)]
Truth = dict[tuple[int, int, str], str]
Clusters = dict[tuple[int, int], tuple[list[dict[str, Any]], Truth]]


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


def synthetic(seed: int, replication_factor: int) -> tuple[list[dict[str, Any]], Truth]:
    """The alert partition of four ticks of a synthetic cluster, and its verdicts by tick, broker and role."""
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
    truth: Truth = {}
    for tick in SyntheticCluster(workload).ticks(4):
        sent = [json.loads(m.value) for m in encode_rows("c1", tick.tick_ms, tick) if m.for_alerts]
        end = {"first_offset": len(messages), "lane_messages": len(sent)}
        messages += [*sent, message("tick_end", 99, None, tick.tick_ms, **end)]
        truth |= {(tick.tick_ms, *broker_role): verdict for broker_role, verdict in tick.truth.items()}
    return messages, truth


def statuses_of(spark: SparkSession, cases: Mapping[str, Given]) -> dict[str, list[Row]]:
    return by_case(headroom_rows(complete_ticks(alert_messages(records_of(spark, cases)))).collect(), cases)


@pytest.fixture(scope="module")
def clusters() -> Clusters:
    return {shape: synthetic(*shape) for shape in SHAPES}


@pytest.fixture(scope="module")
def sides(spark: SparkSession, clusters: Clusters) -> Results[list[Row]]:
    cases = Cases(statuses_of)
    for shape, (messages, _) in clusters.items():
        cases.add(str(shape), messages)
    return cases.results(spark)


@pytest.mark.parametrize(("seed", "replication_factor"), SHAPES)
def test_the_verdicts_are_the_true_ones(
    sides: Results[list[Row]], clusters: Clusters, seed: int, replication_factor: int
) -> None:
    shape = (seed, replication_factor)
    _, truth = clusters[shape]
    found = {(row["tick_ms"], row["broker"], row["role"]): row["verdict"] for row in sides[str(shape)]}
    assert found == truth
    assert {"starved", "losing", "catching_up", "unthrottled"} <= set(truth.values())
