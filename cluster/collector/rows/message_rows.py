"""Rows of the tick messages, one function per kind; columns as in ``schemas.tick_messages.ROWS``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from headroom.cluster.collector.rows.columns import Row
from headroom.cluster.collector.samples.history import EarlierSample
from headroom.cluster.collector.samples.sample_columns import Samples
from headroom.cluster.metrics.mbeans import FOLLOWER_QUOTA, LEADER_QUOTA
from headroom.cluster.model import (
    Broker,
    BrokerRead,
    BrokerThrottles,
    Lag,
    LeaderRebalanceConfig,
    Meter,
    Metrics,
    Partition,
    Reading,
    ReplicationSettings,
    TopicConfig,
)
from headroom.schemas.keys import TopicPartition
from headroom.schemas.tick_messages import column_types

METERS, LAGS, LOGS = (tuple(column_types(kind)) for kind in ("meters", "lags", "logs"))
# Columns of a log that are read of watched partitions only.
_WATCHED_ONLY = ("log_start_offset", "size_bytes", "prev_log_start_offset", "prev_size_bytes")
_ColumnValues = Mapping[str, Sequence[Any]]
_UNKNOWN = BrokerThrottles(known=False)
_NONE = (None, None, None, None)
# Columns that are times of the collector's clock.
_TIMES = ("read_ms", "prev_read_ms", "unchanged_since_ms")
_SamplePair = tuple[EarlierSample, "EarlierSample | None"]


def broker_row(registered: Broker, read: BrokerRead | None) -> Row:
    """Return the row of a broker; ``read`` is None if it was not read, because the metadata lists it as not alive."""
    throttles = read.throttles if read is not None else _UNKNOWN
    balancing = read.balancing if read is not None else LeaderRebalanceConfig()
    replication = read.replication if read is not None else ReplicationSettings()
    metrics = read.metrics if read is not None else None
    return {
        "broker": registered.broker,
        "host": registered.host,
        "port": registered.port,
        "alive": registered.alive,
        "answered": metrics is not None,
        "error": read.error if read is not None else "not registered with the cluster",
        "throttles_known": throttles.known,
        "leader_throttle_bytes_per_s": throttles.leader_bytes_per_s,
        "follower_throttle_bytes_per_s": throttles.follower_bytes_per_s,
        "leader_throttle_source": throttles.leader_source,
        "follower_throttle_source": throttles.follower_source,
        "leader_quota_bytes_per_s": _gauge(metrics, LEADER_QUOTA),
        "follower_quota_bytes_per_s": _gauge(metrics, FOLLOWER_QUOTA),
        "auto_leader_rebalance": balancing.auto,
        "leader_imbalance_check_s": balancing.check_interval_s,
        "leader_imbalance_percentage": balancing.percentage,
        **asdict(replication),
        "log_dirs_throttle_bytes_per_s": throttles.log_dirs_bytes_per_s,
        "log_dirs_throttle_source": throttles.log_dirs_source,
        "rack": registered.rack,
    }


def _gauge(metrics: Metrics | None, meter: Meter) -> float | None:
    reading = metrics.gauges.get(meter) if metrics is not None else None
    return float(reading.value) if reading is not None else None


def leader_row(partition: Partition) -> Row:
    """Return the row of a partition's leadership."""
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "leader": partition.leader,
        "leader_epoch": partition.leader_epoch,
        "replicas": list(partition.replicas),
        "isr": list(partition.isr),
        "adding": list(partition.adding),
        "removing": list(partition.removing),
    }


def under_replicated_row(partition: Partition) -> Row:
    """Return the row of an under-replicated partition that is not watched, so that its logs are not read."""
    config_columns = ("compacted", "remote_storage", "recompressed")
    sample_columns = (
        "previous_leader",
        "switch_tick_ms",
        "topic_counters",
        "before_log",
        "before_topic_counters",
        "without_log",
    )
    return {
        **leader_row(partition),
        "offline": list(partition.offline),
        "leader_listed": [],
        "follower_listed": [],
        "logs": [],
        **dict.fromkeys((*config_columns, *sample_columns)),
    }


def log_sample(
    broker: int,
    now: EarlierSample,
    earlier: EarlierSample | None,
    lag_source: int | None,
    unchanged_since_ms: int | None = None,
) -> Row:
    """Return the sample of a replica's log with its earlier sample.

    Args:
        broker: id of the broker with the replica.
        now: end offset, start offset, size in bytes and lag in offsets.
        earlier: the same about one rate window before; None if there is no earlier sample.
        lag_source: id of the broker that the replica fetches from; None if unknown.
        unchanged_since_ms: time since which the end offset is unchanged, epoch milliseconds; None if unknown.
    """
    end, start, size, lag = now.values
    prev_end, prev_start, prev_size, prev_lag = earlier.values if earlier is not None else _NONE
    return {
        "broker": broker,
        "read_ms": now.read_ms,
        "log_end_offset": end,
        "log_start_offset": start,
        "size_bytes": size,
        "prev_read_ms": earlier.read_ms if earlier is not None else None,
        "prev_log_end_offset": prev_end,
        "prev_log_start_offset": prev_start,
        "prev_size_bytes": prev_size,
        "lag_offsets": lag,
        "prev_lag_offsets": prev_lag,
        "lag_source": lag_source,
        "unchanged_since_ms": unchanged_since_ms,
    }


def without_progress(sample: Row) -> Row:
    """Return a sample of ``log_sample`` without the columns of lag and progress."""
    return {key: value for key, value in sample.items() if not key.startswith(("lag_", "prev_lag_", "unchanged_"))}


def shift_times(row: Row, step_ms: int) -> Row:
    """Return a log or counter sample with its times shifted by ``step_ms`` after a clock step."""
    return row | {name: row[name] + step_ms for name in _TIMES if row.get(name) is not None}


def topic_sample(bytes_pair: _SamplePair, messages_pair: _SamplePair) -> Row:
    """Return a topic's counters on one broker; both earlier samples are from the same tick, or both are None."""
    (now, earlier), (now_messages, earlier_messages) = bytes_pair, messages_pair
    both = earlier is not None and earlier_messages is not None
    # The two meters are read one after the other; samples further apart than this are from different ticks.
    if earlier is not None and earlier_messages is not None:
        window, messages_window = now.read_ms - earlier.read_ms, now_messages.read_ms - earlier_messages.read_ms
        both = abs(window - messages_window) <= max(200, window // 20)
    return {
        "read_ms": now.read_ms,
        "bytes_in": now.values[0],
        "messages_in": now_messages.values[0],
        "prev_read_ms": earlier.read_ms if both and earlier is not None else None,
        "prev_bytes_in": earlier.values[0] if both and earlier is not None else None,
        "prev_messages_in": earlier_messages.values[0] if both and earlier_messages is not None else None,
    }


def leader_columns(
    partitions: Sequence[Partition], ages_ms: Mapping[str, int], configs: Mapping[str, TopicConfig]
) -> _ColumnValues:
    """Return the columns of kind leaders, one row per partition.

    Args:
        partitions: every partition.
        ages_ms: age of the metadata by topic, milliseconds.
        configs: known configurations by topic.
    """

    def min_insync(p: Partition) -> int | None:
        config = configs.get(p.topic) if len(p.isr) < len(p.replicas) else None
        return config.min_insync_replicas if config is not None else None

    return {
        "topic": [p.topic for p in partitions],
        "partition": [p.partition for p in partitions],
        "leader": [p.leader for p in partitions],
        "leader_epoch": [p.leader_epoch for p in partitions],
        "replicas": [p.replicas for p in partitions],
        "isr": [p.isr for p in partitions],
        "adding": [p.adding for p in partitions],
        "removing": [p.removing for p in partitions],
        "metadata_age_ms": [ages_ms.get(p.topic) for p in partitions],
        "min_insync_replicas": [min_insync(p) for p in partitions],
    }


def meter_columns(broker: int, counters: Samples[Meter], gauges: Mapping[Meter, Reading]) -> _ColumnValues:
    """Return the columns of a broker's meters: first the counters, then the gauges, which have no count."""
    meters, values = [*counters.row_index, *gauges], gauges.values()
    read_ms, counts, prev_read_ms, prev_counts = counters.columns()
    none = [None] * len(gauges)
    return {
        "broker": [broker] * len(meters),
        "meter": [meter.meter for meter in meters],
        "topic": [meter.topic for meter in meters],
        "fetcher": [meter.fetcher for meter in meters],
        "source_broker": [meter.source_broker for meter in meters],
        "read_ms": [*read_ms, *(gauge.read_ms for gauge in values)],
        "count_total": [*counts, *none],
        "prev_read_ms": [*prev_read_ms, *none],
        "prev_count_total": [*prev_counts, *none],
        "gauge_value": [*[None] * len(counts), *(float(gauge.value) for gauge in values)],
    }


def lag_columns(broker: int, lags: Sequence[Lag]) -> _ColumnValues:
    """Return the columns of a follower's lag gauges, one row per replica and fetcher."""
    return {
        "broker": [broker] * len(lags),
        "topic": [lag.partition.topic for lag in lags],
        "partition": [lag.partition.partition for lag in lags],
        "source_broker": [lag.source_broker for lag in lags],
        "fetcher": [lag.fetcher for lag in lags],
        "lag_offsets": [lag.lag_offsets for lag in lags],
    }


def log_columns(
    broker: int,
    ends: Samples[TopicPartition],
    logs: Mapping[TopicPartition, Row],
    partitions: Mapping[TopicPartition, Partition],
) -> _ColumnValues:
    """Return the columns of a broker's logs: the end offset of each, and all values of watched partitions."""
    read_ms, now, prev_read_ms, prev = ends.columns()
    led = [partitions[name] for name in ends.row_index]
    columns: dict[str, list[Any]] = {
        "topic": [name.topic for name in ends.row_index],
        "partition": [name.partition for name in ends.row_index],
        "is_leader": [p.leader == broker for p in led],
        "preferred": [p.preferred_leader if p.leader == broker != p.preferred_leader else None for p in led],
        "broker": [broker] * len(read_ms),
        "read_ms": list(read_ms),
        "log_end_offset": list(now),
        "prev_read_ms": list(prev_read_ms),
        "prev_log_end_offset": list(prev),
        **{name: [None] * len(read_ms) for name in _WATCHED_ONLY},
    }
    for name, row in logs.items():
        for column in ("prev_read_ms", "prev_log_end_offset", *_WATCHED_ONLY):
            columns[column][ends.row_index[name]] = row[column]
    return columns


def topic_throttle_row(topic: str, config: TopicConfig) -> Row:
    """Return the row of a topic's throttled replica lists, as Kafka stores them."""
    return {
        "topic": topic,
        "leader_throttled_replicas": config.leader_list,
        "follower_throttled_replicas": config.follower_list,
    }
