"""Elections planned in Spark, from a tick's rows: what is planned from the whole cluster."""

from __future__ import annotations

from typing import Any

from pyspark.sql import SparkSession

from headroom.alerts.inputs.leader_balance import plan_summary
from headroom.planning.elections.planner import BatchLimits, ClusterConstraints, plan_elections
from headroom.planning.elections.summary import ElectionPlanSummary, summarize
from headroom.planning.quotas.load import PartitionTraffic
from headroom.schemas.keys import Role, TopicPartition
from headroom.schemas.tables import ELECTION_PLAN, LEADER_IMBALANCE
from headroom.streaming.transforms.decode import alert_messages, message_rows, with_headers
from headroom.streaming.transforms.gold import as_table
from headroom.streaming.transforms.leaders.election_plan import election_plans
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs, leader_imbalance
from headroom.streaming.transforms.tick_status import rows_of
from tests.spark.leaders import alert_partition, broker_rows, history, random_clusters
from tests.spark.ticks import TICK_MS, log, message, move, records
from tests.support.random_clusters import BROKERS
from tests.support.random_leaders import Broker, Leadership, PartitionState, as_planned

LIMITS = BatchLimits(partitions=2, capacity_bytes_per_s=1500)
WELL = Broker(alive=True, metered=True, reads=1, percentage=None)


def plans(spark: SparkSession, messages: list[dict[str, Any]], limits: BatchLimits) -> dict[str, ElectionPlanSummary]:
    """The plan of each cluster."""
    raw = records(spark, messages)
    headers = with_headers(raw).where("reason IS NULL")
    kinds = (message_rows(headers, kind) for kind in ("leaders", "logs", "meters"))
    inputs = ImbalanceInputs(*kinds, rows_of(alert_messages(raw), "brokers"))
    balances = as_table(leader_imbalance(inputs, 0.1), LEADER_IMBALANCE)
    rows = as_table(election_plans(inputs, rows_of(alert_messages(raw), "moves"), balances, limits), ELECTION_PLAN)
    return {row["cluster"]: plan_summary(row.asDict(recursive=True)) for row in rows.collect()}


def known(cluster: Leadership) -> bool:
    """Whether all write rates of a cluster are known, and a partition has a non-preferred leader."""
    is_known = all(b.metered for b in cluster.brokers.values()) and all(p.reported for p in cluster.partitions)
    return is_known and any(p.leader != p.replicas[0] for p in cluster.partitions)


def test_plans_are_those_of_the_whole_clusters(spark: SparkSession) -> None:
    clusters = [cluster for cluster in random_clusters() if known(cluster)]
    messages = [
        m for n, cluster in enumerate(clusters) for m in (*alert_partition(cluster, str(n)), *history(cluster, str(n)))
    ]
    found = plans(spark, messages, LIMITS)
    for number, cluster in enumerate(clusters):
        alive = frozenset(b for b, state in cluster.brokers.items() if state.alive)
        assert found[str(number)] == summarize(
            plan_elections(as_planned(cluster), LIMITS, ClusterConstraints(alive)), TICK_MS
        )
    assert len(clusters) > 20
    assert sum(plan.batches > 1 for plan in found.values()) > 3


def test_an_election_above_the_throttle_is_deferred_and_the_throttle_is_named(spark: SparkSession) -> None:
    # Broker 1 is to lead two partitions to which 1,000 B/s are written, each followed by one out of sync.
    partitions = tuple(PartitionState("a", n, 2, (1, 2, 3), (1, 2), False, 1000, True) for n in range(2))
    cluster = Leadership(partitions, dict.fromkeys(BROKERS, WELL))
    listed = {"leader_listed": [1, 2, 3], "follower_listed": [1, 2, 3], "isr": [1, 2]}
    moves = [
        move("a", n, 2, [1, 2, 3], logs=[log(2, 1000, 1000), log(1, 1000, 1000), log(3, 500)], **listed)
        for n in range(2)
    ]
    throttled = [
        row | {"leader_throttle_bytes_per_s": 3000, "follower_throttle_bytes_per_s": 9000}
        for row in broker_rows(cluster)
    ]
    alert_rows = [message("brokers", 0, throttled), message("moves", 1, moves)]
    history_ = [m | {"seq": m["seq"] + 1} for m in history(cluster)]
    found = plans(spark, [*alert_rows, *history_], BatchLimits())["c1"]

    traffic = tuple(
        PartitionTraffic(
            TopicPartition("a", n),
            2,
            (1, 3),
            frozenset({1, 2}),
            frozenset(),
            frozenset({1, 2, 3}),
            frozenset({1, 2, 3}),
            1000.0,
        )
        for n in range(2)
    )
    throttles = {(b, role): 3000 if role is Role.LEADER else 9000 for b in BROKERS for role in Role}
    around = ClusterConstraints(frozenset(BROKERS), traffic, throttles)
    assert found == summarize(plan_elections(as_planned(cluster), BatchLimits(), around), TICK_MS)
    assert (found.elections, dict(found.left_out)) == (1, {"over_throttle": 1})
    (first,) = found.raise_first
    assert (first.broker_role, first.throttle_bytes_per_s, first.required_bytes_per_s) == ((1, Role.LEADER), 3000, 4000)
