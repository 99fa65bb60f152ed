"""Figures of each broker over all topics, from its meters."""

from __future__ import annotations

from pyspark.sql import DataFrame

from headroom.planning.balance.observation.cluster import OWN_VOLUME_RATIO
from headroom.streaming.transforms.silver import (
    BYTES_IN,
    BYTES_OUT,
    FETCH_REQUESTS,
    PRODUCE_REQUESTS,
    of_meter,
    with_meter_rate,
)
from headroom.streaming.transforms.steps import aggregate_by
from headroom.streaming.transforms.tick_status import TICK

# What reassignments copy is part of replication. It ends with the move, and is no load that a placement causes.
_IN = (BYTES_IN, "BrokerTopicMetrics.ReplicationBytesInPerSec", "BrokerTopicMetrics.ReassignmentBytesInPerSec")
_OUT = (BYTES_OUT, "BrokerTopicMetrics.ReplicationBytesOutPerSec", "BrokerTopicMetrics.ReassignmentBytesOutPerSec")
_REPLICAS = "ReplicaManager.PartitionCount"
# Read seldom, and not by every collector: the next are counters, the others gauges.
_REQUESTS = (PRODUCE_REQUESTS, FETCH_REQUESTS)
_DISK = ("LogDirs.UsedBytes", "LogDirs.UsableBytes", "LogDirs.TotalBytes")
# In milliseconds.
_LOG_FLUSH = "LogFlushStats.LogFlushRateAndTimeMs"


def _network(meters: tuple[str, str, str], value: str) -> str:
    """Return the sum over clients and replication without copies; null if one of the first two is unknown."""
    clients, replication, copied = (of_meter(meter, value) for meter in meters)
    return f"{clients} + {replication} - least({replication}, coalesce({copied}, 0))"


def _disk_capacity(*meters: str) -> str:
    """Return the size of the volumes, less what other files take if that is more than a tenth of it."""
    logs, usable, total = (of_meter(meter, "bytes_per_s") for meter in meters)
    return f"if({logs} + {usable} < {OWN_VOLUME_RATIO}D * {total}, {logs} + {usable}, {total})"


def _read_ms(meters: tuple[str, str, str]) -> str:
    return f"max(CASE WHEN meter IN ({_texts(meters)}) THEN read_ms END)"


def _texts(meters: tuple[str, ...]) -> str:
    return ", ".join(f"'{meter}'" for meter in meters)


_TRAFFIC = {
    # Bytes per second that producers write to the broker as leader.
    "write_bytes_per_s": of_meter(BYTES_IN, "bytes_per_s"),
    # Bytes per second that consumers read from it.
    "read_bytes_per_s": of_meter(BYTES_OUT, "bytes_per_s"),
    # Time between the two readings of the rates, milliseconds.
    "rate_window_ms": f"max(CASE WHEN meter IN ({_texts((BYTES_IN, BYTES_OUT))}) THEN window_ms END)",
}
_FIGURES = {
    # Bytes per second that it receives, from producers and as follower.
    "network_in_bytes_per_s": _network(_IN, "bytes_per_s"),
    # The same in bytes since its start.
    "network_in_bytes": _network(_IN, "count_total"),
    # When these were read, epoch milliseconds.
    "network_in_read_ms": _read_ms(_IN),
    # Bytes per second that it sends, to consumers and followers.
    "network_out_bytes_per_s": _network(_OUT, "bytes_per_s"),
    # The same in bytes since its start.
    "network_out_bytes": _network(_OUT, "count_total"),
    # When these were read, epoch milliseconds.
    "network_out_read_ms": _read_ms(_OUT),
    # Produce and fetch requests that it serves per second, once for each of their partitions.
    "requests_per_s": " + ".join(of_meter(meter, "bytes_per_s") for meter in _REQUESTS),
    # Bytes of its logs.
    "disk_bytes": of_meter(_DISK[0], "bytes_per_s"),
    # What the volumes of its log directories that are online can hold of Kafka's logs, bytes.
    "disk_capacity_bytes": _disk_capacity(*_DISK),
    # Its replicas.
    "replicas": of_meter(_REPLICAS, "bytes_per_s"),
    # 99.9th percentile of its log flush times, seconds.
    "flush_p999_s": f"{of_meter(_LOG_FLUSH, 'bytes_per_s')} / 1000D",
}
# Columns of ``broker_meters`` that leader imbalance does not need.
BROKER_FIGURES = tuple(_FIGURES)


def broker_meters(meters: DataFrame) -> DataFrame:
    """Return one row per tick and broker with its traffic over all topics and the figures of ``BROKER_FIGURES``.

    Args:
        meters: every meter that was read, of complete ticks.
    """
    chosen = _texts((*_IN, *_OUT, *_REQUESTS, *_DISK, _REPLICAS, _LOG_FLUSH))
    own = meters.where(f"topic IS NULL AND meter IN ({chosen})")
    return aggregate_by(with_meter_rate(own), (*TICK, "broker"), {**_TRAFFIC, **_FIGURES})
