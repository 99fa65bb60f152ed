"""A plan in short, and the plan that is made of a tick's rows: the same as that of the whole cluster."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from headroom.alerts.inputs.leader_balance import plan_summary
from headroom.planning.elections.planner import (
    Balance,
    BatchLimits,
    ClusterConstraints,
    PartitionState,
    balances,
    plan_elections,
)
from headroom.planning.elections.summary import BalanceForecast, ElectionPlanSummary, summarize
from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from headroom.streaming.transforms.leaders.election_plan import plan_of_tick
from tests.support.random_clusters import BROKERS
from tests.support.random_leaders import Leadership, as_planned, leaderships

TICK_MS = 1_800_000_000_000
THROTTLE = {"throttles_known": True, "leader_throttle_bytes_per_s": 400, "follower_throttle_bytes_per_s": 100_000}


def balance_rows(cluster: Leadership, alive: frozenset[int]) -> list[dict[str, Any]]:
    led = Counter(p.leader for p in cluster.partitions)
    return [vars(b) | {"leader_partitions": led[b.broker]} for b in balances(as_planned(cluster), alive)]


def away_rows(cluster: Leadership) -> list[dict[str, Any]]:
    kept = ("topic", "partition", "leader", "replicas", "isr", "write_bytes_per_s")
    return [
        {name: vars(p)[name] for name in kept}
        | {"adding": [9] if p.moving else [], "removing": [], "min_insync_replicas": 1}
        for p in cluster.partitions
        if p.leader != p.replicas[0]
    ]


def watched_rows(away: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """Every other partition is listed, on all of its replicas."""
    return [row | {"leader_listed": row["replicas"], "follower_listed": row["replicas"]} for row in away[::2]]


def traffic(rows: list[dict[str, Any]], alive: frozenset[int]) -> tuple[PartitionTraffic, ...]:
    return tuple(
        PartitionTraffic(
            TopicPartition(row["topic"], row["partition"]),
            row["leader"],
            tuple(b for b in row["replicas"] if b != row["leader"] and b in alive),
            frozenset(row["isr"]),
            frozenset(row["adding"]),
            frozenset(row["replicas"]),
            frozenset(row["replicas"]),
            row["write_bytes_per_s"],
        )
        for row in rows
    )


@given(leaderships(), st.integers(1, 4), st.integers(1, 3), st.booleans())
def test_rows_of_a_tick_give_the_plan_of_the_whole_cluster(
    cluster: Leadership, partitions: int, per_broker: int, throttled: bool
) -> None:
    alive = frozenset(b for b, broker in cluster.brokers.items() if broker.alive)
    limits = BatchLimits(partitions, per_broker, capacity_bytes_per_s=1500)
    away = away_rows(cluster)
    watched = watched_rows(away) if throttled else []
    brokers = [{"broker": b, "alive": broker.alive} | THROTTLE for b, broker in cluster.brokers.items()]
    row = plan_of_tick(limits, TICK_MS, balance_rows(cluster, alive), brokers, away, watched or None)

    throttles: dict[BrokerRole, float | None] = {
        (b, role): 400 if role is Role.LEADER else 100_000 for b in cluster.brokers for role in Role
    }
    plan = plan_elections(as_planned(cluster), limits, ClusterConstraints(alive, traffic(watched, alive), throttles))
    assert plan_summary(row | {"tick_ms": TICK_MS}) == summarize(plan, TICK_MS)


@given(leaderships())
def test_unknown_rates_prevent_no_election(cluster: Leadership) -> None:
    alive = frozenset(b for b, broker in cluster.brokers.items() if broker.alive)
    brokers = [{"broker": b, "alive": b in alive, "throttles_known": False} for b in cluster.brokers]
    unknown = [row | {"write_bytes_per_s": None} for row in away_rows(cluster)]
    counted = [row | {"write_bytes_per_s": None} for row in balance_rows(cluster, alive)]
    row = plan_of_tick(BatchLimits(), TICK_MS, counted, brokers, unknown, None)
    unmeasured = [replace(led, write_bytes_per_s=None) for led in as_planned(cluster)]
    plan = summarize(plan_elections(unmeasured, BatchLimits(), ClusterConstraints(alive)), TICK_MS)
    assert (row["elections"], row["write_bytes_per_s"]) == (plan.elections, None if plan.elections else 0)
    assert {o["broker"]: o["last_batch_ratio"] for o in row["outlooks"]} == {
        o.broker: o.last_batch_ratio for o in plan.outlooks
    }


def test_a_summary_has_the_first_batch_and_the_totals() -> None:
    away = [PartitionState(TopicPartition("t", n), 2, (1, 2), (1, 2), write_bytes_per_s=100.0 + n) for n in range(5)]
    moving = PartitionState(TopicPartition("t", 5), 2, (1, 2), (1, 2), moving=True, write_bytes_per_s=1.0)
    at_home = [PartitionState(TopicPartition("u", n), 1, (1, 2), (1, 2), write_bytes_per_s=1.0) for n in range(4)]
    limits = BatchLimits(partitions=3)
    found = summarize(
        plan_elections([*away, moving, *at_home], limits, ClusterConstraints(frozenset(BROKERS))), TICK_MS
    )
    assert found == ElectionPlanSummary(
        tick_ms=TICK_MS,
        batches=2,
        elections=5,
        write_bytes_per_s=510.0,
        # Those to which most is written come first.
        first_batch=(("t", 4), ("t", 3), ("t", 2)),
        first_batch_write_bytes_per_s=309.0,
        outlooks=(BalanceForecast(1, 0.3, 0.1),),
        left_out=(("moving", 1),),
    )
    assert (found.greatest_first_batch_ratio, found.greatest_last_batch_ratio) == (0.3, 0.1)


def test_numbers_have_their_column_types_in_an_empty_plan() -> None:
    # Without Arrow, Spark stores null if a function returns an integer for a DOUBLE.
    brokers = [{"broker": 1, "alive": True} | THROTTLE]
    balance = vars(Balance(1, 2, 0, 0, 0, 0.0, 0.0)) | {"leader_partitions": 2}
    row = plan_of_tick(BatchLimits(), TICK_MS, [balance], brokers, [], None)
    doubles = (row["write_bytes_per_s"], row["first_batch_write_bytes_per_s"], row["outlooks"][0]["last_batch_ratio"])
    assert [type(number) for number in doubles] == [float, float, float]


def test_the_total_write_rate_is_unknown_if_one_rate_is() -> None:
    away = [
        PartitionState(TopicPartition("t", n), 2, (1, 2), (1, 2), write_bytes_per_s=rate)
        for n, rate in enumerate((9.0, 8.0, None))
    ]
    found = summarize(plan_elections(away, BatchLimits(partitions=2), ClusterConstraints(frozenset(BROKERS))), TICK_MS)
    assert (found.first_batch_write_bytes_per_s, found.write_bytes_per_s) == (17.0, None)


def test_the_forecast_of_an_empty_plan_is_the_current_balance() -> None:
    moving = PartitionState(TopicPartition("t", 0), 2, (1, 2), (1, 2), moving=True)
    found = summarize(plan_elections([moving], BatchLimits(), ClusterConstraints(frozenset(BROKERS))), TICK_MS)
    assert (found.batches, found.first_batch, found.outlooks) == (0, (), (BalanceForecast(1, 1.0, 1.0),))
    assert (
        summarize(plan_elections([], BatchLimits(), ClusterConstraints(frozenset())), TICK_MS).greatest_last_batch_ratio
        == 0
    )
