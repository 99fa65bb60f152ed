"""Metrics of ``/metrics``: names, types, labels, units and meanings, as a contract for dashboards and rules.

An unknown value has no series: absence never means zero, and no series keeps an old value.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class MetricType(str, Enum):
    """Prometheus type of a metric."""

    GAUGE = "gauge"
    COUNTER = "counter"
    HISTOGRAM = "histogram"


@dataclass(frozen=True)
class MetricSpec:
    """One metric.

    Attributes:
        name: full name, with ``_total`` for a counter.
        type: Prometheus type.
        labels: names of the labels.
        unit: unit of the values.
        meaning: meaning of the values and of an absent series.
        buckets: upper bounds of a histogram's buckets, without the infinite one; empty for other types.
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
_BROKER_ROLE = ("cluster", "broker", "role")
_PARTITION = ("cluster", "topic", "partition")

THROTTLE = _gauge(
    "headroom_throttle_bytes_per_second",
    _BROKER_ROLE,
    "bytes/s",
    "Throttle rate in force for a broker's role (leader: sent, follower: received). Absent: no rate, or unknown.",
)
REQUIRED = _gauge(
    "headroom_required_bytes_per_second",
    _BROKER_ROLE,
    "bytes/s",
    "Traffic of all followers that counts against the throttle. A move ends only above it. Absent: unknown.",
)
IN_SYNC = _gauge(
    "headroom_in_sync_bytes_per_second",
    _BROKER_ROLE,
    "bytes/s",
    "Traffic of in-sync followers that counts against the throttle. Below it new replicas get nothing. "
    "Absent: unknown.",
)
HEADROOM = _gauge(
    "headroom_throttle_headroom_bytes_per_second",
    _BROKER_ROLE,
    "bytes/s",
    "Throttle minus required rate. Negative: the move will not end. Absent: no throttle, or unknown.",
)
REMAINING = _gauge(
    "headroom_remaining_bytes",
    _BROKER_ROLE,
    "bytes",
    "Bytes still to copy for the out-of-sync replicas that the role serves or receives. Absent: unknown.",
)
ETA = _gauge(
    "headroom_eta_seconds",
    _BROKER_ROLE,
    "seconds",
    "Time until these are in sync at the rates in force. Absent: no move, never, or unknown (see the verdict).",
)
MOVING_REPLICAS = _gauge(
    "headroom_moving_replicas", _BROKER_ROLE, "replicas", "Out-of-sync replicas that the role serves or receives."
)
STALLED_REPLICAS = _gauge(
    "headroom_stalled_replicas",
    _BROKER_ROLE,
    "replicas",
    "Adding replicas without progress. Absent: none is known, and the verdict is no_data.",
)
WAITING_REPLICAS = _gauge(
    "headroom_waiting_replicas",
    _BROKER_ROLE,
    "replicas",
    "Adding replicas without progress over the rate window because a follower's partitions are served in turn.",
)
PLANNED = _gauge(
    "headroom_planned_under_replicated_partitions",
    _BROKER,
    "partitions",
    "Partitions led by the broker whose only out-of-sync replicas are being added. Planned; no alert.",
)
LOST_REPLICAS = _gauge(
    "headroom_lost_replicas",
    _BROKER,
    "replicas",
    "Out-of-sync replicas on the broker, except those being added.",
)
VERDICT = _gauge(
    "headroom_verdict",
    (*_BROKER_ROLE, "verdict"),
    "1",
    "1 for the current verdict: idle, catching_up, slow, losing, starved, unthrottled or no_data. Absent: the others.",
)
MIGRATION_PARTITIONS = _gauge(
    "headroom_migration_partitions",
    ("cluster", "migration", "status"),
    "partitions",
    "Partitions of a migration to the cluster by agreed status: planned, migrating, migrated or aged. Absent: none.",
)
MIGRATION_LEFT = _gauge(
    "headroom_migration_left_offsets",
    ("cluster", "migration"),
    "offsets",
    "Offsets below the agreed end offsets that are still to be written on the origin. Absent: unknown of a partition.",
)
MIGRATION_LOST = _gauge(
    "headroom_migration_lost_offsets",
    ("cluster", "migration"),
    "offsets",
    "Acknowledged offsets below the agreed end offsets that the origin no longer has, at least. Absent: unknown.",
)
IMBALANCE = _gauge(
    "headroom_leader_imbalance_ratio",
    _BROKER,
    "ratio",
    "Share of the broker's preferred partitions that another broker leads, by Kafka's count (moves included).",
)
IMBALANCE_THRESHOLD = _gauge(
    "headroom_leader_imbalance_threshold_ratio",
    _BROKER,
    "ratio",
    "Threshold of the alert leader_imbalance, compared with the share that an election would return.",
)
PREFERRED_PARTITIONS = _gauge(
    "headroom_leader_preferred_partitions", _BROKER, "partitions", "Partitions whose preferred leader is the broker."
)
LEADER_PARTITIONS = _gauge(
    "headroom_leader_partitions", _BROKER, "partitions", "Partitions that the broker leads, preferred or not."
)
ELECTABLE = _gauge(
    "headroom_leader_electable_partitions",
    _BROKER,
    "partitions",
    "Preferred partitions of the broker that another broker leads and that an election would return now.",
)
WAITING = _gauge(
    "headroom_leader_waiting_partitions",
    _BROKER,
    "partitions",
    "Preferred partitions of the broker that another broker leads during a move. Planned; no alert.",
)
UNAVAILABLE = _gauge(
    "headroom_leader_unavailable_partitions",
    _BROKER,
    "partitions",
    "Preferred partitions of the broker that another broker leads because the broker is down or out of sync.",
)
LEADER_WRITE_RATE = _gauge(
    "headroom_leader_write_bytes_per_second",
    _BROKER,
    "bytes/s",
    "Write rate of the partitions that the broker leads. Absent: unknown.",
)
PREFERRED_WRITE_RATE = _gauge(
    "headroom_leader_preferred_write_bytes_per_second",
    _BROKER,
    "bytes/s",
    "Write rate of the broker if every preferred leader led. Absent: unknown.",
)
LEADER_READ_RATE = _gauge(
    "headroom_leader_read_bytes_per_second", _BROKER, "bytes/s", "Read rate of the broker's consumers. Absent: unknown."
)
PREFERRED_READ_RATE = _gauge(
    "headroom_leader_preferred_read_bytes_per_second",
    _BROKER,
    "bytes/s",
    "Read rate of the broker if every preferred leader led, with reads distributed like writes. Absent: unknown.",
)
_RESOURCE = ("cluster", "broker", "resource")
_RESOURCE_UNIT = "bytes/s, requests/s, bytes or a number"
BROKER_LOAD = _gauge(
    "headroom_broker_load",
    _RESOURCE,
    _RESOURCE_UNIT,
    "Load of a broker in the last minute: network_in, network_out (without what reassignments copy), requests, disk, "
    "leaders, replicas. Absent: unknown.",
)
BROKER_LOAD_MEAN = _gauge(
    "headroom_broker_load_mean",
    _RESOURCE,
    _RESOURCE_UNIT,
    "Load that the broker would have if all carried their share. Absent: unknown.",
)
BROKER_LOAD_LOWER = _gauge(
    "headroom_broker_load_band_lower", _RESOURCE, _RESOURCE_UNIT, "Lower edge of the broker's band. Absent: no goal."
)
BROKER_LOAD_UPPER = _gauge(
    "headroom_broker_load_band_upper", _RESOURCE, _RESOURCE_UNIT, "Upper edge of the broker's band. Absent: no goal."
)
BROKER_LOAD_LIMIT = _gauge(
    "headroom_broker_load_limit",
    _RESOURCE,
    _RESOURCE_UNIT,
    "Share of its capacity that the broker may use. Absent: its capacity is unknown.",
)
BROKER_LOAD_IN_BAND = _gauge(
    "headroom_broker_load_in_band",
    _RESOURCE,
    "1",
    "1: the load is in the broker's band, or too small to matter. 0: it is not. Absent: unknown.",
)
BROKER_LOAD_SCORE = _gauge(
    "headroom_broker_load_score",
    _RESOURCE,
    "score",
    "Score of the load in its band, 0 to 1. Absent: unknown.",
)
BROKER_LOAD_PROMISED = _gauge(
    "headroom_broker_load_promised",
    _RESOURCE,
    _RESOURCE_UNIT,
    "Load that the broker has after the actions of the watch's last proposal. Absent: no proposal yet, or unknown.",
)
PROPOSAL_ACTIONS = _gauge(
    "headroom_balance_proposal_actions", ("cluster",), "actions", "Actions of the watch's last proposal."
)
PROPOSAL_GAIN = _gauge(
    "headroom_balance_proposal_gain_ratio",
    ("cluster",),
    "ratio",
    "Share of the load outside of bands that these actions remove, 0 to 1.",
)
PROPOSAL_COPIED_BYTES = _gauge(
    "headroom_balance_proposal_copied_bytes", ("cluster",), "bytes", "Bytes that these actions copy."
)
PROPOSAL_DURATION = _gauge(
    "headroom_balance_proposal_duration_seconds",
    ("cluster",),
    "s",
    "Time of the batches of these actions. Absent: one never ends.",
)
SLOW_ROUNDS = _gauge(
    "headroom_broker_slow_rounds",
    _BROKER,
    "minutes",
    "Minutes in which the broker was slow to flush its logs, less the others. Absent: its flush times are unknown.",
)
PARTITION_WRITE_RATE = _gauge(
    "headroom_partition_write_bytes_per_second",
    _PARTITION,
    "bytes/s",
    "Write rate of a moving partition. Only for those with the greatest write rate x followers: at most metrics.top_n "
    "per cluster and 20 per leading broker. Absent: unknown.",
)
PARTITION_REMAINING = _gauge(
    "headroom_partition_remaining_bytes",
    _PARTITION,
    "bytes",
    "Bytes that the out-of-sync replicas of such a partition still have to copy. Absent: unknown.",
)
ALERTS = _gauge(
    "headroom_alerts",
    ("cluster", "kind", "severity", "state"),
    "alerts",
    "Active alerts by state: pending or firing. Absent: none.",
)
ALERT_EVENTS = MetricSpec(
    "headroom_alert_events_total",
    MetricType.COUNTER,
    ("cluster", "kind", "state"),
    "events",
    "State changes of alerts since the start: pending, firing (first and repeated announcements), resolved.",
)
TICK_AGE = _gauge(
    "headroom_tick_age_seconds",
    _CLUSTER,
    "seconds",
    "Age of the last evaluated tick at the scrape. Absent: none since the start.",
)
TICK_TIMESTAMP = _gauge(
    "headroom_tick_timestamp_seconds",
    _CLUSTER,
    "seconds since 1970",
    "Time of the last evaluated tick. Absent: none since the start.",
)
DECISION = MetricSpec(
    "headroom_decision_seconds",
    MetricType.HISTOGRAM,
    _CLUSTER,
    "seconds",
    "Time from a tick to its published verdict, including collection.",
    (0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 7.5, 10.0, 15.0, 30.0, 60.0),
)
BATCH = MetricSpec(
    "headroom_batch_seconds",
    MetricType.HISTOGRAM,
    (),
    "seconds",
    "Duration of one micro-batch of the alert path, which contains one or more ticks.",
    (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0),
)
ROWS = MetricSpec(
    "headroom_rows_total",
    MetricType.COUNTER,
    _CLUSTER,
    "rows",
    "Verdicts since the start: one per tick, broker and role, as in gold/throttle_headroom.",
)
COLLECT = MetricSpec(
    "headroom_collect_seconds",
    MetricType.HISTOGRAM,
    _CLUSTER,
    "seconds",
    "Time of the collector to read the brokers and to write a tick.",
    (0.1, 0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 5.0, 10.0, 30.0, 60.0),
)
UNANSWERED_BROKERS = _gauge(
    "headroom_unanswered_brokers",
    _CLUSTER,
    "brokers",
    "Brokers without a complete response to the collector in the last evaluated tick.",
)
COLLECTOR_ERRORS = MetricSpec(
    "headroom_collector_errors_total",
    MetricType.COUNTER,
    _CLUSTER,
    "errors",
    "Missing broker responses since the start: the sum of unanswered brokers over all evaluated ticks.",
)
SKIPPED_TICKS = MetricSpec(
    "headroom_skipped_ticks_total",
    MetricType.COUNTER,
    _CLUSTER,
    "ticks",
    "Ticks that the collector skipped since the start to keep its interval.",
)
QUARANTINED = _gauge(
    "headroom_quarantined_messages",
    (),
    "messages",
    "Rows of silver/quarantine: records of the ticks topic that are unreadable or implausible. It falls when old days "
    "are dropped. Absent: no such table yet, or it cannot be read.",
)
UNDELIVERED = _gauge(
    "headroom_undelivered_events",
    ("receiver",),
    "events",
    "Events not yet delivered to a receiver, except those that wait for the end of a silence. Absent: no such receiver "
    "is configured.",
)
LAST_DELIVERY = _gauge(
    "headroom_last_delivery_timestamp_seconds",
    ("receiver",),
    "seconds since 1970",
    "Time of the last event delivered to a receiver. Absent: none since the start.",
)
BUILD_INFO = _gauge("headroom_build_info", ("version",), "1", "1, with the running version of Headroom as a label.")

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
    MIGRATION_PARTITIONS,
    MIGRATION_LEFT,
    MIGRATION_LOST,
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
    BROKER_LOAD,
    BROKER_LOAD_MEAN,
    BROKER_LOAD_LOWER,
    BROKER_LOAD_UPPER,
    BROKER_LOAD_LIMIT,
    BROKER_LOAD_IN_BAND,
    BROKER_LOAD_SCORE,
    BROKER_LOAD_PROMISED,
    PROPOSAL_ACTIONS,
    PROPOSAL_GAIN,
    PROPOSAL_COPIED_BYTES,
    PROPOSAL_DURATION,
    SLOW_ROUNDS,
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
