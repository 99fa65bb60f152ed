"""The messages that a collector would send of a cluster's leaders."""

from __future__ import annotations

from collections import Counter
from functools import cache
from typing import Any

from tests.spark.support import examples
from tests.spark.ticks import TICK_MS, WINDOW_MS, broker, message
from tests.support.random_leaders import Leadership, PartitionState, leaderships

RECORD_BYTES = 1000
_END = 1_000_000
Row = dict[str, Any]


@cache
def random_clusters() -> list[Leadership]:
    """Random clusters, the same in every run."""
    return examples(leaderships(), 150)


def leader_row(p: PartitionState) -> Row:
    """The row of a partition's leadership; one that moves goes to another broker."""
    return {
        "topic": p.topic,
        "partition": p.partition,
        "leader": p.leader,
        "leader_epoch": 1,
        "replicas": list(p.replicas),
        "isr": list(p.isr),
        "adding": [9] if p.moving else [],
        "removing": [],
        "metadata_age_ms": 1000 * p.partition,
        "min_insync_replicas": 1 if len(p.isr) < len(p.replicas) else None,
    }


def _log_row(p: PartitionState, tick_ms: int) -> Row:
    """The log of a partition on its leader, of records of one size; one that is not reported has no earlier sample."""
    grown = p.write_bytes_per_s * WINDOW_MS // 1000 // RECORD_BYTES
    return {
        "topic": p.topic,
        "partition": p.partition,
        "is_leader": True,
        "preferred": p.replicas[0] if p.leader != p.replicas[0] else None,
        "broker": p.leader,
        "read_ms": tick_ms,
        "log_end_offset": _END,
        "prev_read_ms": tick_ms - WINDOW_MS if p.reported else None,
        "prev_log_end_offset": _END - grown if p.reported else None,
    }


def _meter(broker_id: int, name: str, topic: str | None, rate: int, tick_ms: int) -> Row:
    """A counter of a broker that grew at a rate per second."""
    return {
        "broker": broker_id,
        "meter": f"BrokerTopicMetrics.{name}",
        "topic": topic,
        "read_ms": tick_ms,
        "count_total": 10**9 + rate * WINDOW_MS // 1000,
        "prev_read_ms": tick_ms - WINDOW_MS,
        "prev_count_total": 10**9,
    }


def _meters(cluster: Leadership, tick_ms: int) -> list[Row]:
    of_topic: Counter[tuple[int, str]] = Counter()
    for p in cluster.partitions:
        if p.leader is not None:
            of_topic[p.leader, p.topic] += p.write_bytes_per_s
    rows = []
    for broker_id, b in cluster.brokers.items():
        written = sum(rate for (leader, _), rate in of_topic.items() if leader == broker_id)
        if b.metered:
            rows.append(_meter(broker_id, "BytesInPerSec", None, written, tick_ms))
            rows.append(_meter(broker_id, "BytesOutPerSec", None, b.reads * written, tick_ms))
    for (leader, topic), rate in of_topic.items():
        rows.append(_meter(leader, "BytesInPerSec", topic, rate, tick_ms))
        # Of a tenth of a record per second and more, in whole hundreds of bytes.
        rows.append(_meter(leader, "MessagesInPerSec", topic, 0, tick_ms) | _grown(rate))
    return rows


def _grown(rate: int) -> Row:
    return {"count_total": 10**9 + rate * WINDOW_MS // 1000 // RECORD_BYTES}


def broker_rows(cluster: Leadership) -> list[Row]:
    """The rows of the brokers."""
    return [
        broker(b, None, None, alive=state.alive, leader_imbalance_percentage=state.percentage)
        for b, state in cluster.brokers.items()
    ]


def history(cluster: Leadership, name: str = "c1", tick_ms: int = TICK_MS, cut: int = 5) -> list[Row]:
    """The messages that are not of the alert partition; leaders are in several messages of at most ``cut`` rows."""
    leaders = [leader_row(p) for p in cluster.partitions]
    logs = [_log_row(p, tick_ms) for p in cluster.partitions if p.leader is not None]
    parts = [("leaders", leaders[n : n + cut]) for n in range(0, len(leaders), cut)]
    parts += [("logs", logs), ("meters", _meters(cluster, tick_ms))]
    sent = [(kind, rows) for kind, rows in parts if rows]
    return [message(kind, seq, rows, tick_ms) | {"cluster": name} for seq, (kind, rows) in enumerate(sent, start=1)]


def alert_partition(cluster: Leadership, name: str = "c1", tick_ms: int = TICK_MS) -> list[Row]:
    """The messages of the alert partition, without the end."""
    return [message("brokers", 0, broker_rows(cluster), tick_ms) | {"cluster": name}]
