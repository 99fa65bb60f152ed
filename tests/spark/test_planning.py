"""The verdicts in Spark are those of ``planning.quotas.load``, on random clusters."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cache
from typing import Any

import pytest
from pyspark.sql import Row, SparkSession

from headroom.planning.quotas.load import PartitionTraffic, ThrottleLoad, throttle_loads
from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import Role
from headroom.streaming.transforms.decode import alert_messages
from headroom.streaming.transforms.moves.replicas import replicas
from headroom.streaming.transforms.moves.throttle_headroom import throttle_headroom
from headroom.streaming.transforms.tick_status import complete_ticks, rows_of
from tests.spark.support import examples
from tests.spark.ticks import broker, log, move, records, tick
from tests.support.random_clusters import BROKERS, RECORD_BYTES, Cluster, clusters

END = 100_000
Statuses = dict[tuple[int, str], Row]


@cache
def random_clusters() -> list[Cluster]:
    return examples(clusters(), 250)


def move_row(p: PartitionTraffic) -> dict[str, Any]:
    """The row that a collector sends of a partition; what is unknown has no earlier sample, or no log at all."""
    unknown = {"prev_read_ms": None} if p.write_bytes_per_s is None else {}
    leader_log = [log(p.leader, END, p.write_bytes_per_s or 0.0) | unknown] if p.leader is not None else []
    behind = [log(b, END - size // RECORD_BYTES) for b, size in p.remaining_bytes.items()]
    return move(
        *p.name,
        p.leader,
        [b for b in (p.leader, *p.followers) if b is not None],
        isr=sorted(p.in_sync),
        adding=sorted(p.adding),
        leader_listed=None if p.leader_listed is None else sorted(p.leader_listed),
        follower_listed=None if p.follower_listed is None else sorted(p.follower_listed),
        logs=[*leader_log, *behind],
    )


def broker_row(cluster: Cluster, broker_id: int) -> dict[str, Any]:
    known = cluster.rates.get(broker_id)
    rates = [None if rate is None else round(rate) for rate in known or (None, None)]
    return broker(broker_id, *rates, throttles_known=known is not None)


@pytest.fixture(scope="module")
def found(spark: SparkSession) -> dict[str, Statuses]:
    """The statuses of every cluster, each a cluster of its own in one batch."""
    messages = [
        m | {"cluster": str(number)}
        for number, cluster in enumerate(random_clusters())
        for m in tick([broker_row(cluster, b) for b in BROKERS], [move_row(p) for p in cluster.partitions])
    ]
    whole = complete_ticks(alert_messages(records(spark, messages)))
    brokers = rows_of(whole, "brokers")
    rows = throttle_headroom(replicas(rows_of(whole, "moves"), brokers), brokers).collect()
    statuses: dict[str, Statuses] = {}
    for row in rows:
        statuses.setdefault(row["cluster"], {})[(row["broker"], row["role"])] = row
    return statuses


def in_planning(demand: ThrottleLoad) -> tuple[Any, ...]:
    return (
        demand.throttle_bytes_per_s,
        demand.in_sync_bytes_per_s,
        demand.required_bytes_per_s,
        demand.limited_replicas,
        demand.free_replicas,
        demand.remaining_bytes,
        demand.verdict.value,
    )


Etas = tuple[float | None, ...]
UNKNOWN: Etas = (None, None, None)


def own_etas(demand: ThrottleLoad) -> Etas:
    """When a broker and role is in sync by its own throttle: no copy is seen in these clusters."""
    found = demand.catch_up
    return UNKNOWN if found is None else (found.low_s, found.middle_s, found.high_s)


def etas_in_planning(demand: ThrottleLoad, demands: Sequence[ThrottleLoad], rows: Statuses) -> Etas:
    """When a broker and role is in sync, as far as a throttle decides it: its own, or one at the other ends."""
    if demand.verdict is not Verdict.UNTHROTTLED or demand.remaining_bytes is None or demand.leader_too_low:
        return own_etas(demand)
    other_ends = [
        own_etas(replace(other, leader_too_low=False))
        for other in demands
        if other.role is not demand.role
        and other.verdict in (Verdict.CATCHING_UP, Verdict.SLOW)
        and demand.broker in [peer["broker"] for peer in rows[other.broker, other.role.value]["peers"]]
    ]
    if not other_ends:
        return UNKNOWN
    return tuple(None if None in ends else max(eta or 0.0 for eta in ends) for ends in zip(*other_ends, strict=True))


def in_spark(row: Row) -> tuple[Any, ...]:
    rates = [row[name] for name in ("throttle_bytes_per_s", "in_sync_bytes_per_s", "required_bytes_per_s")]
    return (
        *rates,
        row["moving_replicas"] - row["free_replicas"],
        row["free_replicas"],
        row["remaining_bytes"],
        row["verdict"],
    )


def test_every_broker_and_role_in_a_move_has_the_verdict_of_planning(
    found: dict[str, Statuses],
) -> None:
    verdicts, too_low, limited_elsewhere = set(), 0, 0
    for number, cluster in enumerate(random_clusters()):
        demands = throttle_loads(cluster.partitions, cluster.throttles())
        for demand in demands:
            row = found[str(number)][(demand.broker, demand.role.value)]
            assert in_spark(row) == in_planning(demand), f"broker {demand.broker} as {demand.role.value} of {cluster}"
            verdicts.add(demand.verdict.value)
            too_low += demand.leader_too_low and demand.verdict in (Verdict.CATCHING_UP, Verdict.SLOW)
            etas = [row[name] for name in ("eta_low_s", "eta_s", "eta_high_s")]
            assert etas == pytest.approx(list(etas_in_planning(demand, demands, found[str(number)]))), f"{demand}"
            limited_elsewhere += demand.verdict is Verdict.UNTHROTTLED and None not in etas
    # The examples are worth something: every verdict is among them.
    assert verdicts == {"idle", "catching_up", "slow", "losing", "starved", "unthrottled", "no_data"}
    # And destinations whose own throttle would be enough, but for that of a leader.
    assert too_low >= 3
    # And brokers without a throttle of their own, whose copies wait for that of the other end.
    assert limited_elsewhere >= 3


def test_brokers_and_roles_without_a_move_are_idle_and_every_broker_has_both_roles(
    found: dict[str, Statuses],
) -> None:
    for number, cluster in enumerate(random_clusters()):
        statuses = found[str(number)]
        assert set(statuses) == {(b, role.value) for b in BROKERS for role in Role}
        part = {(d.broker, d.role.value) for d in throttle_loads(cluster.partitions, cluster.throttles())}
        for broker_role in set(statuses) - part:
            row = statuses[broker_role]
            assert (row["verdict"], row["required_bytes_per_s"], row["moving_replicas"]) == ("idle", 0, 0)
