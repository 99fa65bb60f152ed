"""The plan of preferred elections of a tick, made on the executors: the table has only what does not grow.

To put elections in order takes turns and heaps, which no built-in function has; so a function of Python gets a tick's
partitions at once: those that their preferred broker does not lead, and those that throttles limit. Nearly all others
are led as preferred, and are in the counts of ``gold/leader_imbalance``.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F

from planning.elections.leadership import BrokerLeadership
from planning.elections.planner import BatchLimits, ClusterConstraints, PartitionState, plan_from_non_preferred
from planning.elections.summary import ElectionPlanSummary, summarize
from planning.throttles.load import BrokerRole, PartitionTraffic, partition_traffic
from schemas.alerts import Role
from schemas.tables import ELECTION_PLAN
from streaming.transforms.leaders.imbalance import ImbalanceInputs, non_preferred_traffic
from streaming.transforms.moves.replicas import MOVES_OR_LISTED
from streaming.transforms.moves.write_rate import with_write_rate
from streaming.transforms.tick_status import TICK

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
_MADE = [column for column in ELECTION_PLAN.columns if column.name not in ("cluster", "tick_ms", "date")]


def election_plans(seen: ImbalanceInputs, moves: DataFrame, balances: DataFrame, limits: BatchLimits) -> DataFrame:
    """Return the rows of ``gold/election_plan`` but for ``date``, one per tick.

    Args:
        seen: of whole ticks, all of which are planned.
        moves: their rows of the kind ``moves``.
        balances: their rows of ``gold/leader_imbalance``.
        limits: of one batch.
    """
    columns = ", ".join(f"{c.name} {c.type}" for c in _MADE)
    # Without Arrow, which nothing else needs.
    made = F.udf(lambda *of_tick: planned(limits, *of_tick), columns, useArrow=False)
    balanced = balances.groupBy(*TICK).agg(_all(_BALANCE, "balances"))
    brokers = seen.brokers.groupBy(*TICK).agg(_all(_BROKER, "brokers"))
    away = _away(seen).groupBy(*TICK).agg(_all((*_PARTITION, "min_insync_replicas"), "away"))
    watched = (
        with_write_rate(moves.where(MOVES_OR_LISTED))
        .groupBy(*TICK)
        .agg(_all((*_PARTITION, "leader_listed", "follower_listed"), "watched"))
    )
    ticks = balanced.join(brokers, TICK).join(away, TICK).join(watched, TICK, "left")
    plans = ticks.select(*TICK, made("tick_ms", "balances", "brokers", "away", "watched").alias("plan"))
    return plans.select(*TICK, "plan.*")


def _all(columns: Sequence[str], name: str) -> Column:
    return F.expr(f"collect_list(struct({', '.join(columns)})) AS {name}")


def _away(seen: ImbalanceInputs) -> DataFrame:
    """Return the partitions that their preferred broker does not lead, with what is written to them (null: unknown)."""
    leaders = seen.leaders.where("size(replicas) > 0 AND NOT leader <=> get(replicas, 0)")
    rates = non_preferred_traffic(seen.logs, seen.meters).select(
        *TICK, "topic", "partition", "leader", "write_bytes_per_s"
    )
    return leaders.join(rates, [*TICK, "topic", "partition", "leader"], "left")


def planned(
    limits: BatchLimits,
    tick_ms: int,
    balances: Sequence[Fields],
    brokers: Sequence[Fields],
    away: Sequence[Fields],
    watched: Sequence[Fields] | None,
) -> dict[str, Any]:
    """Return the columns of one tick's plan.

    Args:
        limits: of one batch.
        tick_ms: the tick, epoch milliseconds.
        balances: its rows of ``gold/leader_imbalance``.
        brokers: its rows of the kind ``brokers``.
        away: its rows of the kind ``leaders`` that their preferred broker does not lead, with ``write_bytes_per_s``.
        watched: its rows of the kind ``moves`` that move or are listed, with ``write_bytes_per_s``; None: there are
            none.
    """
    alive = frozenset(b["broker"] for b in brokers if b["alive"])
    throttled = tuple(_throttled(p, alive) for p in watched or ())
    # Of a partition that moves or is listed more is read.
    rates = {(p.topic, p.partition): p.write_bytes_per_s for p in throttled}
    partitions = [_led(p, rates.get((p["topic"], p["partition"]))) for p in away]
    around = ClusterConstraints(alive, throttled, _throttles(brokers))
    plan = plan_from_non_preferred(_standings(balances, partitions), partitions, limits, around)
    return _columns(summarize(plan, tick_ms))


def _standings(balances: Sequence[Fields], away: Sequence[PartitionState]) -> dict[int, BrokerLeadership]:
    """Return what every broker leads and is preferred for."""
    read_current_alerts = {b["broker"]: _standing(b) for b in balances}
    preferred = set(read_current_alerts)
    for p in away:
        if p.leader is not None and p.leader not in preferred:
            # One that no partition prefers leads these alone.
            own = read_current_alerts.setdefault(p.leader, BrokerLeadership())
            own.leads += 1
            own.led_bytes_per_s += p.write_bytes_per_s or 0.0
            own.unknown_led += p.write_bytes_per_s is None
    return dict(sorted(read_current_alerts.items()))


def _standing(balance: Fields) -> BrokerLeadership:
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


def _led(p: Fields, watched_bytes_per_s: float | None) -> PartitionState:
    own = p["write_bytes_per_s"]
    return PartitionState(
        topic=p["topic"],
        partition=p["partition"],
        leader=p["leader"],
        replicas=tuple(p["replicas"]),
        isr=tuple(p["isr"]),
        moving=bool(p["adding"] or p["removing"]),
        min_insync_replicas=p["min_insync_replicas"],
        write_bytes_per_s=own if watched_bytes_per_s is None else watched_bytes_per_s,
    )


def _throttled(p: Fields, alive: frozenset[int]) -> PartitionTraffic:
    return partition_traffic(
        (p["topic"], p["partition"]),
        p["leader"],
        p["replicas"],
        p["isr"],
        p["adding"],
        (p["leader_listed"], p["follower_listed"]),
        p["write_bytes_per_s"],
        alive,
    )


def _throttles(brokers: Sequence[Fields]) -> dict[BrokerRole, float | None]:
    known = [b for b in brokers if b["throttles_known"]]
    return {(b["broker"], role): b[f"{role.value}_throttle_bytes_per_s"] for b in known for role in Role}


def _columns(short: ElectionPlanSummary) -> dict[str, Any]:
    return {
        "batches": short.batches,
        "elections": short.elections,
        "write_bytes_per_s": short.write_bytes_per_s,
        "first_batch": [{"topic": topic, "partition": partition} for topic, partition in short.first_batch],
        "first_batch_write_bytes_per_s": short.first_batch_write_bytes_per_s,
        "outlooks": [outlook._asdict() for outlook in short.outlooks],
        "left_out": [{"reason": reason, "partitions": count} for reason, count in short.left_out],
        "raise_first": [
            {
                "broker": raised.broker_role[0],
                "role": raised.broker_role[1].value,
                "throttle_bytes_per_s": float(raised.throttle_bytes_per_s),
                "required_bytes_per_s": float(raised.required_bytes_per_s),
            }
            for raised in short.raise_first
        ],
    }
