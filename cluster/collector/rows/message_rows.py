"""One function per kind of row of the tick messages; columns as in ``schemas.tick_messages.ROWS``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from typing import Any

from cluster.collector.rows.columns import Row
from cluster.collector.samples.history import EarlierSample
from cluster.collector.samples.sample_columns import Samples
from cluster.metrics.mbeans import FOLLOWER_QUOTA, LEADER_QUOTA
from cluster.model import (
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
    TopicPartition,
)
from schemas.tick_messages import column_types

METERS, LAGS, LOGS = (tuple(column_types(kind)) for kind in ("meters", "lags", "logs"))
# Of a log: what is read of watched partitions only.
_WATCHED_ONLY = ("log_start_offset", "size_bytes", "prev_log_start_offset", "prev_size_bytes")
_Part = Mapping[str, Sequence[Any]]
_UNKNOWN = BrokerThrottles(known=False)
_NONE = (None, None, None, None)
# Columns that are times of the collector's clock.
_TIMES = ("read_ms", "prev_read_ms", "unchanged_since_ms")
Counted = tuple[EarlierSample, "EarlierSample | None"]


def broker_row(seen: Broker, read: BrokerRead | None) -> Row:
    """Return the row of a broker; ``read`` None: it was not asked, for the cluster does not list it as alive."""
    throttles = read.throttles if read is not None else _UNKNOWN
    balancing = read.balancing if read is not None else LeaderRebalanceConfig()
    replication = read.replication if read is not None else ReplicationSettings()
    metrics = read.metrics if read is not None else None
    return {
        "broker": seen.broker,
        "host": seen.host,
        "port": seen.port,
        "alive": seen.alive,
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
    """Return the row of a partition that is not watched and lacks a replica: nothing of its logs is read for that."""
    settings = ("compacted", "remote_storage", "recompressed")
    unread = (
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
        **dict.fromkeys((*settings, *unread)),
    }


def log_sample(
    broker: int,
    now: EarlierSample,
    earlier: EarlierSample | None,
    lag_source: int | None,
    unchanged_since_ms: int | None = None,
) -> Row:
    """Return a log with its earlier sample.

    Args:
        broker: that has it.
        now: end, start, size and lag.
        earlier: the same of about one rate window before; None: there is none.
        lag_source: the broker that it is fetched from; None: not known.
        unchanged_since_ms: since when its end has been the same; None: not known.
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


def without_lag(sample: Row) -> Row:
    """Return a log with its earlier sample, of ``log_sample``, without what a replica's copying shows by."""
    return {key: value for key, value in sample.items() if not key.startswith(("lag_", "prev_lag_", "unchanged_"))}


def shifted(row: Row, step_ms: int) -> Row:
    """Return a sample of a log or of a topic's counters by a clock that was set."""
    return row | {name: row[name] + step_ms for name in _TIMES if row.get(name) is not None}


def topic_sample(counted: Counted, messages: Counted) -> Row:
    """Return a topic's counters on one broker; the earlier samples are both there, of one time, or both null."""
    (now, earlier), (now_messages, earlier_messages) = counted, messages
    pair = earlier is not None and earlier_messages is not None
    # The meters are read one after the other; samples further apart than that are of two different ticks.
    if earlier is not None and earlier_messages is not None:
        window, messages_window = now.read_ms - earlier.read_ms, now_messages.read_ms - earlier_messages.read_ms
        pair = abs(window - messages_window) <= max(200, window // 20)
    return {
        "read_ms": now.read_ms,
        "bytes_in": now.values[0],
        "messages_in": now_messages.values[0],
        "prev_read_ms": earlier.read_ms if pair and earlier is not None else None,
        "prev_bytes_in": earlier.values[0] if pair and earlier is not None else None,
        "prev_messages_in": earlier_messages.values[0] if pair and earlier_messages is not None else None,
    }


def leader_columns(
    partitions: Sequence[Partition], ages_ms: Mapping[str, int], configs: Mapping[str, TopicConfig]
) -> _Part:
    """Return the columns of leaders.

    Args:
        partitions: every partition.
        ages_ms: by topic, how long ago its metadata were read.
        configs: by topic, as far as they are known.
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


def meter_columns(broker: int, counters: Samples[Meter], gauges: Mapping[Meter, Reading]) -> _Part:
    """Return the columns of a broker's meters: counters, then gauges, which have a value and no count."""
    meters, values = [*counters.places, *gauges], gauges.values()
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


def lag_columns(broker: int, lags: Sequence[Lag]) -> _Part:
    """Return the columns of a follower's lag gauges."""
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
) -> _Part:
    """Return the columns of a broker's logs: the ends of all, and all of those that are watched."""
    read_ms, now, prev_read_ms, prev = ends.columns()
    told = [partitions[name] for name in ends.places]
    columns: dict[str, list[Any]] = {
        "topic": [name.topic for name in ends.places],
        "partition": [name.partition for name in ends.places],
        "is_leader": [p.leader == broker for p in told],
        "preferred": [p.preferred if p.leader == broker != p.preferred else None for p in told],
        "broker": [broker] * len(read_ms),
        "read_ms": list(read_ms),
        "log_end_offset": list(now),
        "prev_read_ms": list(prev_read_ms),
        "prev_log_end_offset": list(prev),
        **{name: [None] * len(read_ms) for name in _WATCHED_ONLY},
    }
    for name, row in logs.items():
        for column in ("prev_read_ms", "prev_log_end_offset", *_WATCHED_ONLY):
            columns[column][ends.places[name]] = row[column]
    return columns


def topic_throttle_row(topic: str, config: TopicConfig) -> Row:
    """Return the row of a topic's throttled replica lists, as Kafka stores them."""
    return {
        "topic": topic,
        "leader_throttled_replicas": config.leader_list,
        "follower_throttled_replicas": config.follower_list,
    }
