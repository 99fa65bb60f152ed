"""Plan of preferred leader elections of a tick, computed on the executors.

The planner uses turns and heaps, for which Spark has no built-in functions. So a Python function gets all partitions of
a tick that matter: those with a non-preferred leader, and those that throttles limit. Nearly all others have their
preferred leader, and are in the counts of ``gold/leader_imbalance``. The table has only a summary, whose size does not
grow with the number of partitions.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from headroom.planning.elections.leadership import BrokerLeadership
from headroom.planning.elections.planner import BatchLimits, ClusterConstraints, PartitionState, plan_from_non_preferred
from headroom.planning.elections.summary import ElectionPlanSummary, summarize
from headroom.planning.quotas.load import PartitionTraffic, live_followers
from headroom.schemas.keys import BrokerRole, Role, TopicPartition
from headroom.schemas.tables import ELECTION_PLAN
from headroom.streaming.transforms.leaders.imbalance import ImbalanceInputs, non_preferred_traffic
from headroom.streaming.transforms.moves.replicas import MOVES_OR_LISTED
from headroom.streaming.transforms.moves.write_rate import with_write_rate
from headroom.streaming.transforms.tick_status import TICK

Fields = Mapping[str, Any]

_PARTITION = ("topic", "partition", "leader", "replicas", "isr", "adding", "removing", "write_bytes_per_s")
_BROKER = (
    "broker",
    "alive",
    "throttles_known",
    "leader_throttle_bytes_per_s",
    "follower_throttle_bytes_per_s",
)
_BALANCE = (
    "broker",
    "preferred_partitions",
    "non_preferred_partitions",
    "electable_now",
    "waiting_for_move",
    "leader_partitions",
    "write_bytes_per_s",
    "preferred_write_bytes_per_s",
)
_PLAN_COLUMNS = [column for column in ELECTION_PLAN.columns if column.name not in ("cluster", "tick_ms", "date")]


def election_plans(inputs: ImbalanceInputs, moves: DataFrame, balances: DataFrame, limits: BatchLimits) -> DataFrame:
    """Return the rows of ``gold/election_plan`` without ``date``, one per tick.

    Args:
        inputs: rows of complete ticks. Each of them gets a plan.
        moves: rows of the kind ``moves`` of these ticks.
        balances: rows of ``gold/leader_imbalance`` of these ticks.
        limits: limits of one batch of elections.
    """
    columns = ", ".join(f"{c.name} {c.type}" for c in _PLAN_COLUMNS)
    # Without Arrow, because nothing else needs it.
    plan = F.udf(lambda *of_tick: plan_of_tick(limits, *of_tick), columns, useArrow=False)
    balanced = balances.groupBy(*TICK).agg(_all(_BALANCE, "balances"))
    brokers = inputs.brokers.groupBy(*TICK).agg(_all(_BROKER, "brokers"))
    non_preferred = (
        _non_preferred(inputs).groupBy(*TICK).agg(_all((*_PARTITION, "min_insync_replicas"), "non_preferred"))
    )
    throttled = (
        with_write_rate(moves.where(MOVES_OR_LISTED))
        .groupBy(*TICK)
        .agg(_all((*_PARTITION, "leader_listed", "follower_listed"), "throttled"))
    )
    ticks = balanced.join(brokers, TICK).join(non_preferred, TICK).join(throttled, TICK, "left")
    plans = ticks.select(*TICK, plan("tick_ms", "balances", "brokers", "non_preferred", "throttled").alias("plan"))
    return plans.select(*TICK, "plan.*")


def _all(columns: Sequence[str], name: str) -> Column:
    """Return the aggregate that collects some columns of all rows as an array of structs."""
    return F.expr(f"collect_list(struct({', '.join(columns)})) AS {name}")


def _non_preferred(inputs: ImbalanceInputs) -> DataFrame:
    """Return the partitions with a non-preferred leader or none, with their write rate (null if unknown)."""
    leaders = inputs.leaders.where("size(replicas) > 0 AND NOT leader <=> get(replicas, 0)")
    rates = non_preferred_traffic(inputs.logs, inputs.meters).select(
        *TICK, "topic", "partition", "leader", "write_bytes_per_s"
    )
    return leaders.join(rates, [*TICK, "topic", "partition", "leader"], "left")


def plan_of_tick(
    limits: BatchLimits,
    tick_ms: int,
    balances: Sequence[Fields],
    brokers: Sequence[Fields],
    non_preferred: Sequence[Fields],
    moves: Sequence[Fields] | None,
) -> dict[str, Any]:
    """Return the columns of one tick's plan.

    Args:
        limits: limits of one batch.
        tick_ms: time of the tick, epoch milliseconds.
        balances: its rows of ``gold/leader_imbalance``.
        brokers: its rows of the kind ``brokers``.
        non_preferred: its rows of the kind ``leaders`` without the preferred leader, with ``write_bytes_per_s``.
        moves: its rows of the kind ``moves`` that move or are listed, with ``write_bytes_per_s``; None if there are
            none.
    """
    alive = frozenset(b["broker"] for b in brokers if b["alive"])
    throttled = tuple(_partition_traffic(p, alive) for p in moves or ())
    # The rate of a partition that moves or is listed comes from more samples, and replaces the other one.
    rates = {p.name: p.write_bytes_per_s for p in throttled}
    partitions = [_partition_state(p, rates.get(_name(p))) for p in non_preferred]
    throttles = {
        BrokerRole(b["broker"], role): b[f"{role.value}_throttle_bytes_per_s"]
        for b in brokers
        if b["throttles_known"]
        for role in Role
    }
    constraints = ClusterConstraints(alive, throttled, throttles)
    plan = plan_from_non_preferred(_leadership(balances, partitions), partitions, limits, constraints)
    return _columns(summarize(plan, tick_ms))


def _leadership(balances: Sequence[Fields], non_preferred: Sequence[PartitionState]) -> dict[int, BrokerLeadership]:
    """Return the leader counts and rates of every broker."""
    leadership = {b["broker"]: _leadership_of(b) for b in balances}
    preferred = set(leadership)
    for p in non_preferred:
        if p.leader is not None and p.leader not in preferred:
            # A broker that is the preferred leader of no partition has no row of balance, and leads only these.
            own = leadership.setdefault(p.leader, BrokerLeadership())
            own.leads += 1
            own.led_bytes_per_s += p.write_bytes_per_s or 0.0
            own.unknown_led += p.write_bytes_per_s is None
    return dict(sorted(leadership.items()))


def _leadership_of(balance: Fields) -> BrokerLeadership:
    led, preferred = balance["write_bytes_per_s"], balance["preferred_write_bytes_per_s"]
    return BrokerLeadership(
        preferred=balance["preferred_partitions"],
        missing=balance["non_preferred_partitions"],
        electable=balance["electable_now"],
        waiting=balance["waiting_for_move"],
        leads=balance["leader_partitions"],
        led_bytes_per_s=led or 0.0,
        preferred_bytes_per_s=preferred or 0.0,
        unknown_led=int(led is None),
        unknown_preferred=int(preferred is None),
    )


def _name(p: Fields) -> TopicPartition:
    return TopicPartition(p["topic"], p["partition"])


def _partition_state(p: Fields, moves_bytes_per_s: float | None) -> PartitionState:
    own = p["write_bytes_per_s"]
    return PartitionState(
        name=_name(p),
        leader=p["leader"],
        replicas=tuple(p["replicas"]),
        isr=tuple(p["isr"]),
        moving=bool(p["adding"] or p["removing"]),
        min_insync_replicas=p["min_insync_replicas"],
        write_bytes_per_s=own if moves_bytes_per_s is None else moves_bytes_per_s,
    )


def _partition_traffic(p: Fields, alive: frozenset[int]) -> PartitionTraffic:
    return PartitionTraffic(
        name=_name(p),
        leader=p["leader"],
        followers=live_followers(p["replicas"], p["leader"], alive),
        in_sync=frozenset(p["isr"]),
        adding=frozenset(p["adding"]),
        leader_listed=None if p["leader_listed"] is None else frozenset(p["leader_listed"]),
        follower_listed=None if p["follower_listed"] is None else frozenset(p["follower_listed"]),
        write_bytes_per_s=p["write_bytes_per_s"],
    )


def _columns(summary: ElectionPlanSummary) -> dict[str, Any]:
    return {
        "batches": summary.batches,
        "elections": summary.elections,
        "write_bytes_per_s": summary.write_bytes_per_s,
        "first_batch": [{"topic": topic, "partition": partition} for topic, partition in summary.first_batch],
        "first_batch_write_bytes_per_s": summary.first_batch_write_bytes_per_s,
        "outlooks": [asdict(outlook) for outlook in summary.outlooks],
        "left_out": [{"reason": reason, "partitions": count} for reason, count in summary.left_out],
        "raise_first": [
            {
                "broker": raised.broker_role[0],
                "role": raised.broker_role[1].value,
                "throttle_bytes_per_s": float(raised.throttle_bytes_per_s),
                "required_bytes_per_s": float(raised.required_bytes_per_s),
            }
            for raised in summary.raise_first
        ],
    }
