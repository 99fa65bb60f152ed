"""The metrics that ``/metrics`` gives: names, types, labels, units and meanings, for dashboards and rules to rely on.

Whatever is not known has no series: an absent one never stands for zero, and none keeps a number of the past.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MetricType(str, Enum):
    """How a metric's values go on."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class MetricSpec:
    """One metric.

    Attributes:
        name: its name, ``_total`` of a counter included.
        type: how its values go on.
        labels: names of its labels.
        unit: of its values.
        meaning: what it tells, and when it is absent.
        buckets: of a histogram the upper bounds, without the infinite one; else empty.
    """

    name: str
    type: MetricType
    labels: tuple[str, ...]
    unit: str
    meaning: str
    buckets: tuple[float, ...] = ()


def _gauge(name: str, labels: tuple[str, ...], unit: str, meaning: str) -> MetricSpec:
    return MetricSpec(name, MetricType.GAUGE, labels, unit, meaning)


_CLUSTER = ("cluster",)
_BROKER = ("cluster", "broker")
_SIDE = ("cluster", "broker", "role")
_PARTITION = ("cluster", "topic", "partition")

THROTTLE = _gauge(
    "headroom_throttle_bytes_per_second",
    _SIDE,
    "bytes/s",
    "Rate in force for a broker's role (leader: what it sends, follower: what it receives). Absent: none, or unknown.",
)
REQUIRED = _gauge(
    "headroom_required_bytes_per_second",
    _SIDE,
    "bytes/s",
    "Traffic of all followers that counts against the throttle: only above it does a move end. Absent: unknown.",
)
IN_SYNC = _gauge(
    "headroom_in_sync_bytes_per_second",
    _SIDE,
    "bytes/s",
    "Traffic of in-sync followers that counts against the throttle: below it new replicas get nothing. "
    "Absent: unknown.",
)
HEADROOM = _gauge(
    "headroom_throttle_headroom_bytes_per_second",
    _SIDE,
    "bytes/s",
    "Throttle minus required; negative: the move will not end. Absent: no throttle, or unknown.",
)
REMAINING = _gauge(
    "headroom_remaining_bytes",
    _SIDE,
    "bytes",
    "What the out-of-sync replicas that the role serves or receives still have to copy. Absent: unknown.",
)
ETA = _gauge(
    "headroom_eta_seconds",
    _SIDE,
    "seconds",
    "Time until they are in sync at this throttle. Absent: nothing moves, never, or unknown; the verdict says which.",
)
MOVING_REPLICAS = _gauge(
    "headroom_moving_replicas", _SIDE, "replicas", "Out-of-sync replicas that the role serves or receives."
)
STALLED_REPLICAS = _gauge(
    "headroom_stalled_replicas",
    _SIDE,
    "replicas",
    "Adding replicas that are seen to copy nothing. Absent: none is seen, and the verdict is no_data.",
)
WAITING_REPLICAS = _gauge(
    "headroom_waiting_replicas",
    _SIDE,
    "replicas",
    "Adding replicas that copied nothing over the rate window, for a follower's partitions are served in turn.",
)
PLANNED = _gauge(
    "headroom_planned_under_replicated_partitions",
    _BROKER,
    "partitions",
    "Partitions that the broker leads of which none but replicas being added are out of sync: planned, and no alert.",
)
LOST_REPLICAS = _gauge(
    "headroom_lost_replicas",
    _BROKER,
    "replicas",
    "The broker's replicas, other than those being added, that are out of the ISR.",
)
VERDICT = _gauge(
    "headroom_verdict",
    (*_SIDE, "verdict"),
    "1",
    "1 for the present verdict: idle, catching_up, slow, losing, starved, unthrottled or no_data; others are absent.",
)
IMBALANCE = _gauge(
    "headroom_leader_imbalance_ratio",
    _BROKER,
    "ratio",
    "Share of the partitions that prefer the broker which another one leads, as Kafka counts it, moves included.",
)
IMBALANCE_THRESHOLD = _gauge(
    "headroom_leader_imbalance_threshold_ratio",
    _BROKER,
    "ratio",
    "What the share that an election would give back has to exceed for an alert.",
)
PREFERRED_PARTITIONS = _gauge(
    "headroom_leader_preferred_partitions", _BROKER, "partitions", "Partitions that prefer the broker."
)
LEADER_PARTITIONS = _gauge(
    "headroom_leader_partitions", _BROKER, "partitions", "Partitions that the broker leads, whomever they prefer."
)
ELECTABLE = _gauge(
    "headroom_leader_electable_partitions",
    _BROKER,
    "partitions",
    "Partitions that prefer the broker, that another one leads, and that an election would give back now.",
)
WAITING = _gauge(
    "headroom_leader_waiting_partitions",
    _BROKER,
    "partitions",
    "Partitions that prefer the broker, that another one leads, and that move: planned, and no alert.",
)
UNAVAILABLE = _gauge(
    "headroom_leader_unavailable_partitions",
    _BROKER,
    "partitions",
    "Partitions that prefer the broker, that another one leads, and that it cannot lead: it is down, or out of sync.",
)
LEADER_WRITE_RATE = _gauge(
    "headroom_leader_write_bytes_per_second",
    _BROKER,
    "bytes/s",
    "Written to the partitions that the broker leads. Absent: unknown.",
)
PREFERRED_WRITE_RATE = _gauge(
    "headroom_leader_preferred_write_bytes_per_second",
    _BROKER,
    "bytes/s",
    "What would be written to the broker if every preferred leader led. Absent: unknown.",
)
LEADER_READ_RATE = _gauge(
    "headroom_leader_read_bytes_per_second", _BROKER, "bytes/s", "Consumers read of the broker. Absent: unknown."
)
PREFERRED_READ_RATE = _gauge(
    "headroom_leader_preferred_read_bytes_per_second",
    _BROKER,
    "bytes/s",
    "What consumers would read of the broker if every preferred leader led: reads divided like writes. Absent: "
    "unknown.",
)
PARTITION_WRITE_RATE = _gauge(
    "headroom_partition_write_bytes_per_second",
    _PARTITION,
    "bytes/s",
    "Write rate of a moving partition, of those with the greatest write rate x followers: at most metrics.top_n of a "
    "cluster, and 20 of a leading broker. Absent: unknown.",
)
PARTITION_REMAINING = _gauge(
    "headroom_partition_remaining_bytes",
    _PARTITION,
    "bytes",
    "What the out-of-sync replicas of such a partition still have to copy from its leader. Absent: unknown.",
)
ALERTS = _gauge(
    "headroom_alerts",
    ("cluster", "kind", "severity", "state"),
    "alerts",
    "Alerts that stand, by state pending or firing. Absent: there are none.",
)
ALERT_EVENTS = MetricSpec(
    "headroom_alert_events_total",
    MetricType.COUNTER,
    ("cluster", "kind", "state"),
    "events",
    "Changes of alerts' states since the start: pending, firing (first and announced anew), resolved.",
)
TICK_AGE = _gauge(
    "headroom_tick_age_seconds",
    _CLUSTER,
    "seconds",
    "Age of the last tick that was judged, at the scrape. Absent: none was since the start.",
)
TICK_TIMESTAMP = _gauge(
    "headroom_tick_timestamp_seconds",
    _CLUSTER,
    "seconds since 1970",
    "Time of the last tick that was judged. Absent: none was since the start.",
)
DECISION = MetricSpec(
    "headroom_decision_seconds",
    MetricType.HISTOGRAM,
    _CLUSTER,
    "seconds",
    "From a tick's time to its verdict told, which takes the collector's reading in.",
    (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0),
)
BATCH = MetricSpec(
    "headroom_batch_seconds",
    MetricType.HISTOGRAM,
    (),
    "seconds",
    "Work on one micro-batch of the alert path, which holds a tick or several.",
    (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0),
)
ROWS = MetricSpec(
    "headroom_rows_total",
    MetricType.COUNTER,
    _CLUSTER,
    "rows",
    "Verdicts since the start, of every tick one for each broker and role: rows of gold/throttle_headroom.",
)
COLLECT = MetricSpec(
    "headroom_collect_seconds",
    MetricType.HISTOGRAM,
    _CLUSTER,
    "seconds",
    "How long the collector took to read the brokers and to write a tick.",
    (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0),
)
UNANSWERED_BROKERS = _gauge(
    "headroom_unanswered_brokers",
    _CLUSTER,
    "brokers",
    "Brokers that did not answer the collector, or did not tell all, in the last tick that was judged.",
)
COLLECTOR_ERRORS = MetricSpec(
    "headroom_collector_errors_total",
    MetricType.COUNTER,
    _CLUSTER,
    "errors",
    "Answers of brokers that the collector missed since the start: of every judged tick its unanswered brokers.",
)
SKIPPED_TICKS = MetricSpec(
    "headroom_skipped_ticks_total",
    MetricType.COUNTER,
    _CLUSTER,
    "ticks",
    "Ticks that the collector left out since the start to keep its pace.",
)
QUARANTINED = _gauge(
    "headroom_quarantined_messages",
    (),
    "messages",
    "Rows of silver/quarantine: what came to the ticks topic and could not be read, or was not believed. It falls when "
    "old days are dropped. Absent: there is no such table yet, or it cannot be read.",
)
UNDELIVERED = _gauge(
    "headroom_undelivered_events",
    ("receiver",),
    "events",
    "Events that a receiver of alerts has not got yet, without those that wait for the end of a silence. Absent: no "
    "such receiver is configured.",
)
LAST_DELIVERY = _gauge(
    "headroom_last_delivery_timestamp_seconds",
    ("receiver",),
    "seconds since 1970",
    "When a receiver of alerts last got an event. Absent: it got none since the start.",
)
BUILD_INFO = _gauge("headroom_build_info", ("version",), "1", "1, with the version of Headroom that runs.")

METRICS: tuple[MetricSpec, ...] = (
    THROTTLE,
    REQUIRED,
    IN_SYNC,
    HEADROOM,
    REMAINING,
    ETA,
    MOVING_REPLICAS,
    STALLED_REPLICAS,
    WAITING_REPLICAS,
    PLANNED,
    LOST_REPLICAS,
    VERDICT,
    IMBALANCE,
    IMBALANCE_THRESHOLD,
    PREFERRED_PARTITIONS,
    LEADER_PARTITIONS,
    ELECTABLE,
    WAITING,
    UNAVAILABLE,
    LEADER_WRITE_RATE,
    PREFERRED_WRITE_RATE,
    LEADER_READ_RATE,
    PREFERRED_READ_RATE,
    PARTITION_WRITE_RATE,
    PARTITION_REMAINING,
    ALERTS,
    ALERT_EVENTS,
    TICK_AGE,
    TICK_TIMESTAMP,
    DECISION,
    BATCH,
    ROWS,
    COLLECT,
    UNANSWERED_BROKERS,
    COLLECTOR_ERRORS,
    SKIPPED_TICKS,
    QUARANTINED,
    UNDELIVERED,
    LAST_DELIVERY,
    BUILD_INFO,
)
