"""One function per kind of row of the tick messages; columns as in ``schemas.messages.ROWS``."""

from __future__ import annotations

from cluster.history import Sample
from cluster.mbeans import FOLLOWER_QUOTA, LEADER_QUOTA
from cluster.model import Broker, BrokerRead, BrokerThrottles, Lag, Meter, Metrics, Partition, TopicConfig
from cluster.switches import Row

_UNKNOWN = BrokerThrottles(known=False)
_NONE = (None, None, None, None)
Counted = tuple[Sample, "Sample | None"]


def broker_row(seen: Broker, read: BrokerRead | None) -> Row:
    """Return the row of a broker; ``read`` None: it was not asked, for the cluster does not list it as alive."""
    throttles = read.throttles if read is not None else _UNKNOWN
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


def log_sample(broker: int, now: Sample, earlier: Sample | None, lag_source: int | None) -> Row:
    """Return a log with its earlier sample; values are (end, start, size, lag)."""
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
    }


def without_lag(sample: Row) -> Row:
    """Return a log with its earlier sample, of ``log_sample``, as if no lag had been read."""
    return {key: value for key, value in sample.items() if not key.startswith(("lag_", "prev_lag_"))}


def log_row(partition: Partition, sample: Row) -> Row:
    """Return the row of one log of a partition, of ``log_sample``."""
    return {
        "topic": partition.topic,
        "partition": partition.partition,
        "is_leader": partition.leader == sample["broker"],
        **without_lag(sample),
    }


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


def meter_row(broker: int, meter: Meter, now: Sample, earlier: Sample | None, gauge_value: float | None = None) -> Row:
    """Return the row of one meter; of a gauge the count is None."""
    return {
        "broker": broker,
        "meter": meter.meter,
        "topic": meter.topic,
        "fetcher": meter.fetcher,
        "source_broker": meter.source_broker,
        "read_ms": now.read_ms,
        "count_total": now.values[0],
        "prev_read_ms": earlier.read_ms if earlier is not None else None,
        "prev_count_total": earlier.values[0] if earlier is not None else None,
        "gauge_value": float(gauge_value) if gauge_value is not None else None,
    }


def lag_row(broker: int, lag: Lag) -> Row:
    """Return the row of one lag gauge."""
    return {
        "broker": broker,
        "topic": lag.partition.topic,
        "partition": lag.partition.partition,
        "source_broker": lag.source_broker,
        "fetcher": lag.fetcher,
        "lag_offsets": lag.lag_offsets,
    }


def topic_throttle_row(topic: str, config: TopicConfig) -> Row:
    """Return the row of a topic's throttled replica lists, as Kafka stores them."""
    return {
        "topic": topic,
        "leader_throttled_replicas": config.leader_list,
        "follower_throttled_replicas": config.follower_list,
    }
