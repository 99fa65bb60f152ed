"""The Delta tables: columns with their units and meaning, grain, keys and partitioning."""

from __future__ import annotations

from dataclasses import dataclass

_SKIP_BY = ("cluster", "tick_ms", "timestamp")


@dataclass(frozen=True)
class Column:
    """One column: name, Spark type, and meaning with its unit and the meaning of null."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One Delta table.

    Attributes:
        path: path below ``store.path``.
        grain: content of one row.
        keys: columns that identify a row.
        partition_by: columns of the folder layout.
        columns: columns in the order of the table.
    """

    path: str
    grain: str
    keys: tuple[str, ...]
    partition_by: tuple[str, ...]
    columns: tuple[Column, ...]

    def ddl(self) -> str:
        """Return the Spark DDL of the columns."""
        return ", ".join(f"{c.name} {c.type}" for c in self.columns)

    def names(self) -> list[str]:
        """Return the column names in order."""
        return [c.name for c in self.columns]

    @property
    def skip_by(self) -> tuple[str, ...]:
        """Columns with minimum and maximum statistics per file, by which a query skips files."""
        return tuple(name for name in self.names() if name in _SKIP_BY)


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


_TICK = (
    ("cluster", "STRING", "name of the watched cluster"),
    ("tick_ms", "BIGINT", "time of the tick, epoch milliseconds UTC"),
    ("date", "DATE", "day of tick_ms in UTC; folder of the row"),
)
_PARTITION = (
    ("topic", "STRING", "topic"),
    ("partition", "INT", "partition"),
)
_EVIDENCE = (
    "ARRAY<STRUCT<topic STRING, partition INT, write_bytes_per_s DOUBLE, followers INT, in_sync_followers INT, "
    "leader INT, previous_leader INT, switch_tick_ms BIGINT, moving BOOLEAN, "
    "replicas ARRAY<INT>, target ARRAY<INT>, stalled BOOLEAN, remaining_bytes BIGINT>>"
)

BRONZE_TICKS = Table(
    "bronze/ticks",
    "one unchanged record of the ticks topic",
    ("topic", "partition", "offset"),
    ("date",),
    _columns(
        ("key", "BINARY", "key of the record: the message's envelope, or its kind alone"),
        ("value", "BINARY", "value of the record: the message"),
        ("topic", "STRING", "topic of the record"),
        ("partition", "INT", "partition of the record"),
        ("offset", "BIGINT", "offset of the record"),
        ("timestamp", "TIMESTAMP", "timestamp of the record"),
        ("date", "DATE", "day of timestamp in UTC; folder of the row"),
    ),
)

MESSAGES = Table(
    "silver/messages",
    "one decoded message",
    ("cluster", "tick_ms", "kind", "seq"),
    ("date",),
    _columns(
        *_TICK,
        ("kind", "STRING", "kind of the message"),
        ("seq", "INT", "number of the message within the tick"),
        ("rows", "INT", "rows in the message; null for tick_end"),
        (
            "metadata_age_ms",
            "BIGINT",
            "age of the oldest metadata at the tick, ms, from tick_end; null: not reported, or another kind",
        ),
    ),
)

FETCHER_LAG = Table(
    "silver/fetcher_lag",
    "tick, follower broker, topic, partition, source broker",
    ("cluster", "tick_ms", "broker", "topic", "partition", "source_broker"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "broker of the follower replica"),
        *_PARTITION,
        ("source_broker", "INT", "broker it fetches from"),
        ("fetcher", "STRING", "client id of the fetcher thread"),
        ("lag_offsets", "BIGINT", "lag in offsets (FetcherLagMetrics ConsumerLag); null: the gauge was -1"),
    ),
)

BYTES_PER_SEC = Table(
    "silver/bytes_per_sec",
    "tick, broker, meter, topic or fetcher",
    ("cluster", "tick_ms", "broker", "meter", "topic", "fetcher", "source_broker"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "broker of the meter"),
        ("meter", "STRING", "type and name of the MBean, e.g. FetcherStats.BytesPerSec"),
        ("topic", "STRING", "topic of the meter; null: whole broker"),
        ("fetcher", "STRING", "client id of the fetcher thread; null: not a fetcher's meter"),
        ("source_broker", "INT", "broker the fetcher fetches from; null: not a fetcher's meter"),
        ("count_total", "BIGINT", "Count of the meter (bytes; messages for MessagesInPerSec); null: a gauge"),
        ("bytes_per_s", "DOUBLE", "rate over window_ms, per second; null: no earlier sample, or the counter fell"),
        ("window_ms", "BIGINT", "time between the two samples, ms; null: a gauge or no earlier sample"),
    ),
)

LOG_END_OFFSETS = Table(
    "silver/log_end_offsets",
    "tick, broker, topic, partition",
    ("cluster", "tick_ms", "broker", "topic", "partition"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "broker with the log"),
        *_PARTITION,
        ("is_leader", "BOOLEAN", "true if the broker led the partition"),
        ("log_end_offset", "BIGINT", "log end offset"),
        (
            "log_start_offset",
            "BIGINT",
            "log start offset; null: partition neither in a reassignment nor in a throttled replica list",
        ),
        (
            "size_bytes",
            "BIGINT",
            "size of the log, bytes; null: partition neither in a reassignment nor in a throttled replica list",
        ),
        (
            "offsets_per_s",
            "DOUBLE",
            "growth of the log end offset over window_ms, per second; null: no earlier sample, or it fell",
        ),
        ("window_ms", "BIGINT", "time between the two samples, ms; null: no earlier sample"),
    ),
)

LEADER_DISTRIBUTION = Table(
    "silver/leader_distribution",
    "tick, topic, partition",
    ("cluster", "tick_ms", "topic", "partition"),
    ("date",),
    _columns(
        *_TICK,
        *_PARTITION,
        ("leader", "INT", "broker id of the leader; null: no leader"),
        ("preferred_leader", "INT", "broker id of the preferred leader: the first of replicas"),
        ("replicas", "ARRAY<INT>", "replicas in order, including adding and removing ones"),
        ("isr", "ARRAY<INT>", "in-sync replicas"),
        ("adding", "ARRAY<INT>", "replicas that the reassignment adds"),
        ("removing", "ARRAY<INT>", "replicas that the reassignment removes"),
        ("leader_epoch", "INT", "leader epoch; null: not reported"),
        (
            "metadata_age_ms",
            "BIGINT",
            "age of this metadata at the tick, ms; above 0 only in clusters with very many partitions; null: not "
            "reported",
        ),
    ),
)

THROTTLES = Table(
    "silver/throttles",
    "tick, broker or topic",
    ("cluster", "tick_ms", "entity", "broker", "topic"),
    ("date",),
    _columns(
        *_TICK,
        ("entity", "STRING", "broker or topic"),
        ("broker", "INT", "broker; null for a topic"),
        ("topic", "STRING", "topic; null for a broker"),
        ("known", "BOOLEAN", "true if the values could be read"),
        ("leader_throttle_bytes_per_s", "BIGINT", "leader.replication.throttled.rate in force, bytes/s; null: none"),
        (
            "follower_throttle_bytes_per_s",
            "BIGINT",
            "follower.replication.throttled.rate in force, bytes/s; null: none",
        ),
        ("leader_throttle_source", "STRING", "entity that sets the rate: broker, default or none; null for a topic"),
        ("follower_throttle_source", "STRING", "entity that sets the rate: broker, default or none; null for a topic"),
        ("leader_throttled_replicas", "STRING", "leader.replication.throttled.replicas of the topic; null: none"),
        ("follower_throttled_replicas", "STRING", "follower.replication.throttled.replicas of the topic; null: none"),
    ),
)

QUARANTINE = Table(
    "silver/quarantine",
    "one rejected record",
    ("topic", "partition", "offset"),
    ("date",),
    _columns(
        ("topic", "STRING", "topic of the record"),
        ("partition", "INT", "partition of the record"),
        ("offset", "BIGINT", "offset of the record"),
        ("timestamp", "TIMESTAMP", "timestamp of the record"),
        ("date", "DATE", "day of timestamp in UTC; folder of the row"),
        ("cluster", "STRING", "cluster named in the record; null: unreadable"),
        ("tick_ms", "BIGINT", "tick named in the record; null: unreadable"),
        ("payload", "STRING", "value of the record as text"),
        ("reason", "STRING", "reason of the rejection"),
    ),
)

THROTTLE_HEADROOM = Table(
    "gold/throttle_headroom",
    "tick, broker, role",
    ("cluster", "tick_ms", "broker", "role"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "broker"),
        ("role", "STRING", "leader (traffic that it sends) or follower (traffic that it receives)"),
        (
            "throttle_bytes_per_s",
            "DOUBLE",
            "throttle rate in force for the role, bytes/s; null: none, or unknown (no_data)",
        ),
        (
            "in_sync_bytes_per_s",
            "DOUBLE",
            "traffic of in-sync followers that counts against the throttle, bytes/s; null: unknown",
        ),
        (
            "required_bytes_per_s",
            "DOUBLE",
            "traffic of all followers that counts against the throttle, bytes/s; null: unknown",
        ),
        ("headroom_bytes_per_s", "DOUBLE", "throttle - required, bytes/s; null: no throttle, or unknown"),
        ("verdict", "STRING", "idle, catching_up, slow, losing, starved, unthrottled or no_data"),
        ("reason", "STRING", "unknown input of the verdict no_data; null for other verdicts"),
        (
            "quota_bytes_per_s",
            "DOUBLE",
            "traffic measured by the broker against its quota, bytes/s; null: no such gauge",
        ),
        ("moving_replicas", "INT", "out-of-sync replicas that the role serves or receives"),
        ("remaining_bytes", "BIGINT", "bytes that these still have to copy; null: unknown"),
        ("eta_s", "DOUBLE", "expected time until they are in sync at this throttle, seconds; null: never, or unknown"),
        ("stalled_replicas", "INT", "adding replicas without progress, although it is or was their turn"),
        ("rate_window_ms", "BIGINT", "time over which the rates were measured, ms"),
        (
            "partitions",
            _EVIDENCE,
            "evidence: partitions that count, moving ones first, then by traffic in descending order, at most 20",
        ),
        ("alive", "BOOLEAN", "true if the broker is registered with the cluster"),
        ("throttle_source", "STRING", "entity that sets the rate: broker or default; none: no rate; null: unknown"),
        ("free_replicas", "INT", "replicas of moving_replicas that are in no throttled replica list of the role"),
        ("moving_partitions", "INT", "partitions in a reassignment that it leads, or follows"),
        ("resting_listed_partitions", "INT", "partitions in a list of the role that are in no reassignment"),
        (
            "planned_partitions",
            "INT",
            "as leader: partitions whose only out-of-sync replicas are adding ones (planned under-replication)",
        ),
        ("lost_replicas", "INT", "as follower: its out-of-sync replicas, except adding ones"),
        ("lost_moving_replicas", "INT", "replicas of lost_replicas whose partition is in a reassignment"),
        (
            "lost",
            "ARRAY<STRUCT<topic STRING, partition INT, leader INT, moving BOOLEAN>>",
            "replicas of lost_replicas by name, those in a reassignment first, at most 20",
        ),
        (
            "stall",
            "STRING",
            "cause of its stalled replicas: offline, no_leader, not_fetching or unknown; null: no stalled replica",
        ),
        (
            "takeover",
            "STRUCT<bytes_per_s DOUBLE, topic STRING, partition INT, leader INT>",
            "as follower: largest traffic that it would additionally send as the new leader of one moving "
            "partition (in sync here, and in the leader list for this broker), with that partition; null: no such "
            "partition, or its write rate is unknown",
        ),
        (
            "lost_leaving_replicas",
            "INT",
            "replicas of lost_replicas that the running reassignment removes",
        ),
        (
            "waiting_replicas",
            "INT",
            "adding replicas without progress over the window because they wait for their turn",
        ),
        ("down_replicas", "INT", "as leader: adding replicas on brokers that are down"),
        (
            "known_in_sync_bytes_per_s",
            "DOUBLE",
            "known part of in_sync_bytes_per_s, bytes/s: its minimum",
        ),
        (
            "known_required_bytes_per_s",
            "DOUBLE",
            "known part of required_bytes_per_s, bytes/s: its minimum",
        ),
        (
            "moving_bytes_per_s",
            "DOUBLE",
            "as leader: traffic of moving partitions to all their followers; as follower: traffic of moving "
            "partitions to its out-of-sync replicas; with or without lists, bytes/s; null: unknown",
        ),
        (
            "counting_partitions",
            "INT",
            "number of partitions that count; the column partitions lists at most 20 of them",
        ),
        ("limited_partitions", "INT", "moving partitions with out-of-sync replicas in a list of the role"),
        ("free_partitions", "INT", "moving partitions with out-of-sync replicas in no list of the role"),
        (
            "peers",
            "ARRAY<STRUCT<broker INT, replicas INT, remaining_bytes BIGINT, write_bytes_per_s DOUBLE, "
            "largest_remaining_bytes BIGINT, leaving_bytes_per_s DOUBLE, leading_bytes_per_s DOUBLE>>",
            "brokers at the other end of the copies that a list of the role throttles (of a leader its "
            "destinations, of a destination its leaders), each with: number of replicas, bytes that they still "
            "have to copy, write rate of their partitions, bytes that the largest has to copy, traffic that the "
            "leader stops sending once they are in sync, and traffic that the destination stops fetching then "
            "because it leads; null in a field: unknown",
        ),
        (
            "stalls",
            "ARRAY<STRUCT<cause STRING, leader INT, replicas INT, partitions ARRAY<STRING>>>",
            "as follower: stalled_replicas by cause (as in stall) and leader (null: no leader), with three "
            "partitions each",
        ),
        (
            "switches",
            "ARRAY<STRUCT<previous_leader INT, partitions INT, bytes_per_s DOUBLE, switch_tick_ms BIGINT, "
            "names ARRAY<STRING>>>",
            "as leader: listed partitions that it came to lead within the last rate window, by previous leader: "
            "number, traffic that it sends for them (as far as known), last such tick, and three partitions",
        ),
        (
            "moves",
            "ARRAY<STRUCT<topic STRING, partition INT, target ARRAY<INT>>>",
            "partitions in a reassignment with their final replicas, by name, at most 20",
        ),
        (
            "resting_topics",
            "ARRAY<STRING>",
            "topics with entries of partitions in no reassignment in their list of the role, by name, at most 50",
        ),
        ("resting_topic_count", "INT", "number of these topics"),
        ("quota_window_num", "INT", "replication.quota.window.num of the broker; null: not reported"),
        ("quota_window_size_s", "INT", "replication.quota.window.size.seconds of the broker; null: not reported"),
        ("replica_fetch_max_bytes", "BIGINT", "replica.fetch.max.bytes of the broker; null: not reported"),
        (
            "replica_fetch_response_max_bytes",
            "BIGINT",
            "replica.fetch.response.max.bytes of the broker; null: not reported",
        ),
        ("num_replica_fetchers", "INT", "num.replica.fetchers of the broker; null: not reported"),
        ("replica_fetch_backoff_ms", "INT", "replica.fetch.backoff.ms of the broker; null: not reported"),
        (
            "log_dirs_throttle_bytes_per_s",
            "BIGINT",
            "replica.alter.log.dirs.io.max.bytes.per.second of the broker; null: none, or not reported",
        ),
        (
            "log_dirs_throttle_source",
            "STRING",
            "entity that sets that rate: broker or default; none: no rate; null: not reported",
        ),
        ("eta_low_s", "DOUBLE", "earliest eta_s, given what brokers do not report, seconds; null: never, or unknown"),
        ("eta_high_s", "DOUBLE", "latest eta_s, seconds; null: never, or unknown"),
        ("lost_leaderless_replicas", "INT", "replicas of lost_replicas whose partition has no leader"),
        (
            "lost_leaderless_moving_replicas",
            "INT",
            "replicas of lost_leaderless_replicas whose partition is in a reassignment",
        ),
        (
            "down_required_bytes_per_s",
            "DOUBLE",
            "as leader: known increase of required_bytes_per_s if its followers on brokers that are down came "
            "back, bytes/s",
        ),
    ),
)

REASSIGNMENT_PROGRESS = Table(
    "gold/reassignment_progress",
    "tick, topic, partition, adding replica",
    ("cluster", "tick_ms", "topic", "partition", "adding_replica"),
    ("date",),
    _columns(
        *_TICK,
        *_PARTITION,
        ("adding_replica", "INT", "broker that receives the replica"),
        ("leader", "INT", "broker it copies from; null: no leader"),
        ("lag_offsets", "BIGINT", "offsets behind the leader's log end; null: unknown"),
        ("lag_gauge_offsets", "BIGINT", "FetcherLagMetrics of the replica, offsets; null: -1 or no gauge"),
        ("remaining_bytes", "BIGINT", "bytes behind the leader's log end; null: unknown"),
        ("write_bytes_per_s", "DOUBLE", "write rate of the partition, bytes/s; null: unknown"),
        (
            "catch_up_bytes_per_s",
            "DOUBLE",
            "decrease of remaining_bytes over the window, bytes/s; negative: it grows; null: unknown",
        ),
        ("eta_s", "DOUBLE", "expected time until in sync, seconds; null: never, or unknown"),
        ("state", "STRING", "state of the copy, and meaning of a null eta_s: in_sync, catching_up, never or no_data"),
        ("frozen", "BOOLEAN", "true if the lag gauge is missing or does not change while the real lag does"),
        ("in_sync", "BOOLEAN", "true if the replica is in the ISR"),
        ("throttled", "BOOLEAN", "true if a rate and a list limit the copy at its leader or destination"),
        ("rate_window_ms", "BIGINT", "time over which the rates were measured, ms"),
        ("eta_low_s", "DOUBLE", "earliest eta_s, given what brokers do not report, seconds; null: never, or unknown"),
        ("eta_high_s", "DOUBLE", "latest eta_s, seconds; null: never, or unknown"),
    ),
)

PARTITION_WRITE_RATE = Table(
    "gold/partition_write_rate",
    "tick, topic, partition in a reassignment or a throttled replica list",
    ("cluster", "tick_ms", "topic", "partition"),
    ("date",),
    _columns(
        *_TICK,
        *_PARTITION,
        ("leader", "INT", "broker id of the leader; null: no leader"),
        ("write_bytes_per_s", "DOUBLE", "bytes appended per second; null: unknown"),
        (
            "method",
            "STRING",
            "source of the rate: log_size, end_offset, before_switch or no_leader (nothing can be written); null: "
            "unknown",
        ),
        ("window_ms", "BIGINT", "time over which the rate was measured, ms; null: unknown"),
    ),
)

LEADER_IMBALANCE = Table(
    "gold/leader_imbalance",
    "tick, broker that is the preferred leader of a partition",
    ("cluster", "tick_ms", "broker"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "broker"),
        ("alive", "BOOLEAN", "true if the broker is registered with the cluster"),
        ("preferred_partitions", "INT", "partitions whose preferred leader it is (first of their replicas)"),
        ("non_preferred_partitions", "INT", "partitions of these that another broker leads, by Kafka's count"),
        (
            "electable_now",
            "INT",
            "partitions of non_preferred_partitions that an election would return: it is alive and in sync, and "
            "the partition is in no reassignment",
        ),
        (
            "waiting_for_move",
            "INT",
            "partitions of non_preferred_partitions in a reassignment, whose replicas already have their final order",
        ),
        (
            "unavailable",
            "INT",
            "partitions of non_preferred_partitions that it cannot lead, because it is down or out of sync",
        ),
        ("leaderless", "INT", "partitions of preferred_partitions without a leader; they count in no other column"),
        ("leader_partitions", "INT", "partitions that it leads, preferred or not"),
        ("imbalance_ratio", "DOUBLE", "non_preferred_partitions / preferred_partitions, 0 to 1"),
        (
            "threshold_ratio",
            "DOUBLE",
            "threshold above which an imbalance is reported, 0 to 1: leader.imbalance.per.broker.percentage or "
            "the setting",
        ),
        (
            "threshold_source",
            "STRING",
            "source of the threshold: broker (its own configuration) or setting (alerts.leader_imbalance_percentage)",
        ),
        ("write_bytes_per_s", "DOUBLE", "write rate of the partitions that it leads, bytes/s; null: unknown"),
        (
            "preferred_write_bytes_per_s",
            "DOUBLE",
            "write rate if every preferred leader led, bytes/s, from the growth of logs; null: unknown",
        ),
        ("read_bytes_per_s", "DOUBLE", "read rate of its consumers, bytes/s; null: unknown"),
        (
            "preferred_read_bytes_per_s",
            "DOUBLE",
            "read rate if every preferred leader led, bytes/s, with a leader's reads distributed like its writes; "
            "null: unknown",
        ),
        ("auto_leader_rebalance", "BOOLEAN", "auto.leader.rebalance.enable of the broker; null: not reported"),
        ("check_interval_s", "BIGINT", "leader.imbalance.check.interval.seconds of the broker; null: not reported"),
        ("metadata_age_ms", "BIGINT", "age of its oldest partition metadata at the tick, ms; null: not reported"),
        ("rate_window_ms", "BIGINT", "time over which the rates were measured, ms; null: unknown"),
    ),
)

ELECTION_PLAN = Table(
    "gold/election_plan",
    "tick with a plan of elections, made while a broker is out of balance: when leaders change, otherwise every minute",
    ("cluster", "tick_ms"),
    ("date",),
    _columns(
        *_TICK,
        ("batches", "INT", "batches of preferred leader elections; 0: no election is possible now"),
        ("elections", "INT", "partitions in all batches"),
        ("write_bytes_per_s", "DOUBLE", "write rate of these partitions, bytes/s; null: a rate is unknown"),
        (
            "first_batch",
            "ARRAY<STRUCT<topic STRING, partition INT>>",
            "partitions of the first batch, in order",
        ),
        ("first_batch_write_bytes_per_s", "DOUBLE", "write rate of these partitions, bytes/s; null: a rate is unknown"),
        (
            "outlooks",
            "ARRAY<STRUCT<broker INT, first_batch_ratio DOUBLE, last_batch_ratio DOUBLE>>",
            "imbalance of every preferred broker after the first and after the last batch, 0 to 1",
        ),
        (
            "left_out",
            "ARRAY<STRUCT<reason STRING, partitions INT>>",
            "number of partitions that their preferred broker does not lead and that are in no batch, by reason",
        ),
        (
            "raise_first",
            "ARRAY<STRUCT<broker INT, role STRING, throttle_bytes_per_s DOUBLE, required_bytes_per_s DOUBLE>>",
            "throttles to raise before the other partitions can be elected: rate in force, and rate to exceed",
        ),
    ),
)

ALERT_EVENTS = Table(
    "alerts/events",
    "one state change of one alert",
    ("alert_id", "state", "tick_ms"),
    (),
    _columns(
        ("alert_id", "STRING", "id of the alert, the same from pending to resolved"),
        ("kind", "STRING", "kind of the alert, as listed in docs/alerts.md: throttle_below_leader_write, ..."),
        ("severity", "STRING", "critical, warning or info"),
        ("state", "STRING", "pending, firing or resolved"),
        ("cluster", "STRING", "name of the watched cluster"),
        ("subject", "STRING", "subject of the alert, e.g. broker 2 as leader"),
        ("summary", "STRING", "summary in one sentence"),
        ("evidence", "STRING", "numbers of the finding, as JSON"),
        ("recommendation", "STRING", "recommended action, as JSON; action none if no action is known"),
        ("tick_ms", "BIGINT", "tick that changed the state, epoch milliseconds UTC"),
        ("event_ms", "BIGINT", "time of writing, epoch milliseconds UTC"),
    ),
)

ALERT_DELIVERIES = Table(
    "alerts/deliveries",
    "one step in the delivery of one event to one receiver",
    ("receiver", "event_key", "attempt", "state"),
    (),
    _columns(
        ("receiver", "STRING", "receiver: log, slack, slack_webhook, alertmanager or webhook"),
        ("event_key", "STRING", "event of alerts/events: alert_id/tick_ms/state"),
        ("alert_id", "STRING", "id of the alert, the same from pending to resolved"),
        ("cluster", "STRING", "name of the watched cluster"),
        (
            "state",
            "STRING",
            "sending: attempt started; delivered: accepted by the receiver; failed: will be retried; dropped: not "
            "retried, the alert resolved too long ago; silenced: suppressed by a silence, a maintenance window or "
            "an acknowledgement",
        ),
        ("attempt", "BIGINT", "number of the attempt, from 1; 0: no attempt"),
        ("answer", "STRING", "response of the receiver, or cause of the failure, shortened; empty while sending"),
        (
            "reference",
            "STRING",
            "data for later messages on the alert, such as the message to reply to, as JSON; or empty",
        ),
        ("delivery_ms", "BIGINT", "time of the step, epoch milliseconds UTC"),
    ),
)

ALERT_MARKS = Table(
    "alerts/marks",
    "one acknowledgement, silence, or end of a silence",
    ("mark_id", "action"),
    (),
    _columns(
        (
            "mark_id",
            "STRING",
            "id of the acknowledgement or silence; the end of a silence has the id of that silence",
        ),
        (
            "action",
            "STRING",
            "ack: acknowledgement of an alert; silence: receivers are not notified; unsilence: end of that silence",
        ),
        ("cluster", "STRING", "ack: cluster of the alert; silence: matching cluster; null: all"),
        ("kind", "STRING", "ack: kind of the alert; silence: matching kind; null: all"),
        (
            "subject",
            "STRING",
            "ack: subject of the alert; silence: matching subjects, with * for any text; null: all",
        ),
        ("alert_id", "STRING", "id of the acknowledged alert; null for silences"),
        ("severity", "STRING", "ack: severity at that time, above which it does not apply; null for silences"),
        ("starts_ms", "BIGINT", "start of the silence, epoch milliseconds UTC; null for acknowledgements"),
        ("ends_ms", "BIGINT", "planned end of the silence, epoch milliseconds UTC; null for acknowledgements"),
        ("by", "STRING", "author"),
        ("note", "STRING", "reason; or empty"),
        ("mark_ms", "BIGINT", "time of writing, epoch milliseconds UTC"),
    ),
)

# Tables that jobs write and maintenance compacts. alerts/marks is missing: commands write it with another library, and
# on a path or S3 concurrent commits by Spark and that library could lose rows.
TABLES: tuple[Table, ...] = (
    BRONZE_TICKS,
    MESSAGES,
    FETCHER_LAG,
    BYTES_PER_SEC,
    LOG_END_OFFSETS,
    LEADER_DISTRIBUTION,
    THROTTLES,
    QUARANTINE,
    THROTTLE_HEADROOM,
    REASSIGNMENT_PROGRESS,
    PARTITION_WRITE_RATE,
    LEADER_IMBALANCE,
    ELECTION_PLAN,
    ALERT_EVENTS,
    ALERT_DELIVERIES,
)
# Tables written without Spark if the store is a local disk; they must then be maintained without Spark too.
PROMPT_TABLES: tuple[Table, ...] = (LEADER_IMBALANCE, ALERT_EVENTS, ALERT_DELIVERIES)
