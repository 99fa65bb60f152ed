"""The Delta tables: columns with their units and meaning, grain, keys and partitioning."""

from __future__ import annotations

from dataclasses import dataclass

_SKIP_BY = ("cluster", "tick_ms", "timestamp")


@dataclass(frozen=True)
class Column:
    """One column: its name, Spark type, and meaning with the unit and what null says."""

    name: str
    type: str
    meaning: str


@dataclass(frozen=True)
class Table:
    """One Delta table.

    Attributes:
        path: below ``store.path``.
        grain: what one row stands for.
        keys: columns that name a row for ever.
        partition_by: columns of the folder layout.
        columns: in the order of the table.
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
        """The columns whose least and greatest values in a file tell a query whether it needs the file."""
        return tuple(name for name in self.names() if name in _SKIP_BY)


def _columns(*rows: tuple[str, str, str]) -> tuple[Column, ...]:
    return tuple(Column(*row) for row in rows)


_TICK = (
    ("cluster", "STRING", "name of the watched cluster"),
    ("tick_ms", "BIGINT", "time of the tick, epoch milliseconds UTC"),
    ("date", "DATE", "day of tick_ms in UTC; the folder"),
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
    "one record of the ticks topic, untouched",
    ("topic", "partition", "offset"),
    ("date",),
    _columns(
        ("key", "BINARY", "the record's key: the message's envelope, or just its kind"),
        ("value", "BINARY", "the record's value: the message"),
        ("topic", "STRING", "topic the record was read from"),
        ("partition", "INT", "its partition"),
        ("offset", "BIGINT", "its offset"),
        ("timestamp", "TIMESTAMP", "the record's own time"),
        ("date", "DATE", "day of timestamp in UTC; the folder"),
    ),
)

MESSAGES = Table(
    "silver/messages",
    "one message that was decoded",
    ("cluster", "tick_ms", "kind", "seq"),
    ("date",),
    _columns(
        *_TICK,
        ("kind", "STRING", "kind of the message"),
        ("seq", "INT", "its number within the tick"),
        ("rows", "INT", "rows it carried; null for tick_end"),
        (
            "metadata_age_ms",
            "BIGINT",
            "of tick_end: how long before the tick its oldest metadata was read, ms; null: not told, or no tick_end",
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
        ("broker", "INT", "the follower"),
        *_PARTITION,
        ("source_broker", "INT", "the broker it fetches from"),
        ("fetcher", "STRING", "client id of the fetcher thread"),
        ("lag_offsets", "BIGINT", "FetcherLagMetrics ConsumerLag, offsets; null: the gauge said -1"),
    ),
)

BYTES_PER_SEC = Table(
    "silver/bytes_per_sec",
    "tick, broker, meter, topic or fetcher",
    ("cluster", "tick_ms", "broker", "meter", "topic", "fetcher", "source_broker"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "the broker that has the meter"),
        ("meter", "STRING", "type and name of the MBean, e.g. FetcherStats.BytesPerSec"),
        ("topic", "STRING", "topic of the meter; null: all of the broker"),
        ("fetcher", "STRING", "client id of the fetcher thread; null: not of a fetcher"),
        ("source_broker", "INT", "broker the fetcher fetches from; null: not of a fetcher"),
        ("count_total", "BIGINT", "the meter's Count (bytes; messages for MessagesInPerSec); null: a gauge"),
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
        ("broker", "INT", "the broker that holds the log"),
        *_PARTITION,
        ("is_leader", "BOOLEAN", "whether the broker led the partition"),
        ("log_end_offset", "BIGINT", "log end offset"),
        ("log_start_offset", "BIGINT", "log start offset; null: read for watched partitions only"),
        ("size_bytes", "BIGINT", "size of the log, bytes; null: read for watched partitions only"),
        ("offsets_per_s", "DOUBLE", "growth of the log end offset over window_ms; null: no earlier sample, or it fell"),
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
        ("leader", "INT", "leading broker; null: none"),
        ("preferred_leader", "INT", "first of replicas"),
        ("replicas", "ARRAY<INT>", "replicas in order, adding and removing ones included"),
        ("isr", "ARRAY<INT>", "in-sync replicas"),
        ("adding", "ARRAY<INT>", "replicas that the reassignment adds"),
        ("removing", "ARRAY<INT>", "replicas that the reassignment removes"),
        ("leader_epoch", "INT", "leader epoch; null: not told"),
        (
            "metadata_age_ms",
            "BIGINT",
            "how long before the tick this was read, ms: 0 but where there are very many partitions; null: not told",
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
        ("known", "BOOLEAN", "whether the values could be read"),
        ("leader_throttle_bytes_per_s", "BIGINT", "leader.replication.throttled.rate in force, bytes/s; null: none"),
        (
            "follower_throttle_bytes_per_s",
            "BIGINT",
            "follower.replication.throttled.rate in force, bytes/s; null: none",
        ),
        ("leader_throttle_source", "STRING", "broker, default or none: the entity that sets it; null for a topic"),
        ("follower_throttle_source", "STRING", "broker, default or none: the entity that sets it; null for a topic"),
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
        ("topic", "STRING", "topic the record was read from"),
        ("partition", "INT", "its partition"),
        ("offset", "BIGINT", "its offset"),
        ("timestamp", "TIMESTAMP", "the record's own time"),
        ("date", "DATE", "day of timestamp in UTC; the folder"),
        ("cluster", "STRING", "cluster that the record names; null: unreadable"),
        ("tick_ms", "BIGINT", "tick that the record names; null: unreadable"),
        ("payload", "STRING", "the value as text"),
        ("reason", "STRING", "why it was rejected"),
    ),
)

THROTTLE_HEADROOM = Table(
    "gold/throttle_headroom",
    "tick, broker, role",
    ("cluster", "tick_ms", "broker", "role"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "the broker"),
        ("role", "STRING", "leader (what it sends) or follower (what it receives)"),
        ("throttle_bytes_per_s", "DOUBLE", "rate in force for the role, bytes/s; null: none, or unknown (no_data)"),
        (
            "in_sync_bytes_per_s",
            "DOUBLE",
            "traffic of in-sync followers that counts against it, bytes/s; null: unknown",
        ),
        ("required_bytes_per_s", "DOUBLE", "traffic of all followers that counts against it, bytes/s; null: unknown"),
        ("headroom_bytes_per_s", "DOUBLE", "throttle - required, bytes/s; null: no throttle, or unknown"),
        ("verdict", "STRING", "idle, catching_up, slow, losing, starved, unthrottled or no_data"),
        ("reason", "STRING", "for no_data: what is unknown; else null"),
        (
            "quota_bytes_per_s",
            "DOUBLE",
            "what the broker itself measures against the quota, bytes/s; null: no such gauge",
        ),
        ("moving_replicas", "INT", "replicas out of sync that the role serves or receives"),
        ("remaining_bytes", "BIGINT", "bytes these still have to copy; null: unknown"),
        ("eta_s", "DOUBLE", "seconds until they are in sync at this throttle; null: never, or unknown"),
        ("stalled_replicas", "INT", "adding replicas that copy nothing, though it is or was their turn"),
        ("rate_window_ms", "BIGINT", "window of the rates, ms"),
        (
            "partitions",
            _EVIDENCE,
            "the partitions that count, greatest traffic first, at most 20, those that move before others",
        ),
        ("alive", "BOOLEAN", "the broker is registered with the cluster"),
        ("throttle_source", "STRING", "broker or default: where the rate is set; none: it is not; null: unknown"),
        ("free_replicas", "INT", "those of moving_replicas that no throttled replica list of the role names"),
        ("moving_partitions", "INT", "partitions in a reassignment that it leads, or follows"),
        ("resting_listed_partitions", "INT", "partitions that a list of the role names, and that do not move"),
        (
            "planned_partitions",
            "INT",
            "as leader: partitions under-replicated as planned, for none but adding replicas are out of sync",
        ),
        ("lost_replicas", "INT", "as follower: its replicas, but for adding ones, that are out of the ISR"),
        ("lost_moving_replicas", "INT", "those of lost_replicas whose partition moves"),
        (
            "lost",
            "ARRAY<STRUCT<topic STRING, partition INT, leader INT, moving BOOLEAN>>",
            "lost_replicas by name, those that move first, at most 20",
        ),
        (
            "stall",
            "STRING",
            "why its stalled replicas copy nothing: offline, no_leader, not_fetching or unknown; null: none is stalled",
        ),
        (
            "takeover",
            "STRUCT<bytes_per_s DOUBLE, topic STRING, partition INT, leader INT>",
            "as follower: what it would send more, at worst, if it came to lead one more moving partition that it has "
            "in sync and that lists it, and that partition; null: there is none, or its write rate is unknown",
        ),
        (
            "lost_leaving_replicas",
            "INT",
            "those of lost_replicas that the running move removes, so that it takes their place",
        ),
        ("waiting_replicas", "INT", "adding replicas that copied nothing over the window, for they wait their turn"),
        ("down_replicas", "INT", "as leader: adding replicas on brokers that are down"),
        (
            "known_in_sync_bytes_per_s",
            "DOUBLE",
            "in_sync_bytes_per_s as far as it is known, bytes/s: the least that it can be",
        ),
        (
            "known_required_bytes_per_s",
            "DOUBLE",
            "required_bytes_per_s as far as it is known, bytes/s: the least that it can be",
        ),
        (
            "moving_bytes_per_s",
            "DOUBLE",
            "as leader: what moving partitions send to all their followers; as follower: what new replicas receive; "
            "with or without lists, bytes/s; null: unknown",
        ),
        ("counting_partitions", "INT", "how many partitions count, of which partitions names at most 20"),
        ("limited_partitions", "INT", "moving partitions with replicas out of sync that a list of the role names"),
        ("free_partitions", "INT", "moving partitions with replicas out of sync that no list of the role names"),
        (
            "peers",
            "ARRAY<STRUCT<broker INT, replicas INT, remaining_bytes BIGINT, write_bytes_per_s DOUBLE, "
            "largest_remaining_bytes BIGINT, leaving_bytes_per_s DOUBLE, leading_bytes_per_s DOUBLE>>",
            "the brokers at the other end of the copies that a list of the role limits (of a leader its destinations, "
            "of a destination its leaders): replicas, what they still have to copy, what is written to them, what the "
            "one with most has to copy, what the leader sends no more once they are in sync, and what the destination "
            "fetches no more then because it leads; null: unknown",
        ),
        (
            "stalls",
            "ARRAY<STRUCT<cause STRING, leader INT, replicas INT, partitions ARRAY<STRING>>>",
            "as follower: stalled_replicas by cause (as stall) and leader (null: none), with three names of each",
        ),
        (
            "switches",
            "ARRAY<STRUCT<previous_leader INT, partitions INT, bytes_per_s DOUBLE, switch_tick_ms BIGINT, "
            "names ARRAY<STRING>>>",
            "as leader: listed partitions that it came to lead within the last rate window, by previous leader: how "
            "many, what it sends for them (as far as it is known), the last such tick, and three names",
        ),
        (
            "moves",
            "ARRAY<STRUCT<topic STRING, partition INT, target ARRAY<INT>>>",
            "partitions in a reassignment by name, with their replicas once it is done, at most 20",
        ),
        (
            "resting_topics",
            "ARRAY<STRING>",
            "topics whose list of the role has entries of partitions that do not move, by name, at most 50",
        ),
        ("resting_topic_count", "INT", "how many topics these are"),
        ("quota_window_num", "INT", "replication.quota.window.num of the broker; null: not told"),
        ("quota_window_size_s", "INT", "replication.quota.window.size.seconds of the broker; null: not told"),
        ("replica_fetch_max_bytes", "BIGINT", "replica.fetch.max.bytes of the broker; null: not told"),
        (
            "replica_fetch_response_max_bytes",
            "BIGINT",
            "replica.fetch.response.max.bytes of the broker; null: not told",
        ),
        ("num_replica_fetchers", "INT", "num.replica.fetchers of the broker; null: not told"),
        ("replica_fetch_backoff_ms", "INT", "replica.fetch.backoff.ms of the broker; null: not told"),
        (
            "log_dirs_throttle_bytes_per_s",
            "BIGINT",
            "replica.alter.log.dirs.io.max.bytes.per.second of the broker; null: none, or not told",
        ),
        (
            "log_dirs_throttle_source",
            "STRING",
            "broker or default: where that is set; none: it is not; null: not told",
        ),
        ("eta_low_s", "DOUBLE", "eta_s at the earliest, by what is not known; null: never, or unknown"),
        ("eta_high_s", "DOUBLE", "eta_s at the latest; null: never, or unknown"),
        ("lost_leaderless_replicas", "INT", "those of lost_replicas whose partition has no leader"),
        ("lost_leaderless_moving_replicas", "INT", "those of lost_leaderless_replicas whose partition moves"),
        (
            "down_required_bytes_per_s",
            "DOUBLE",
            "as leader: what required_bytes_per_s would have more if its followers on brokers that are down were up, "
            "as far as it is known, bytes/s",
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
        ("adding_replica", "INT", "the broker that receives the replica"),
        ("leader", "INT", "the broker it copies from; null: no leader"),
        ("lag_offsets", "BIGINT", "offsets behind the leader's log end; null: unknown"),
        ("lag_gauge_offsets", "BIGINT", "FetcherLagMetrics of the replica; null: -1 or gone"),
        ("remaining_bytes", "BIGINT", "bytes behind the leader's log end; null: unknown"),
        ("write_bytes_per_s", "DOUBLE", "write rate of the partition, bytes/s; null: unknown"),
        (
            "catch_up_bytes_per_s",
            "DOUBLE",
            "fall of remaining_bytes over the window, bytes/s; negative: it grows; null: unknown",
        ),
        ("eta_s", "DOUBLE", "seconds until in sync; null: never, or unknown"),
        ("state", "STRING", "in_sync, catching_up, never or no_data: what eta_s says, or why it says nothing"),
        ("frozen", "BOOLEAN", "the lag gauge stands still or is gone while the real lag does not"),
        ("in_sync", "BOOLEAN", "the replica is in the ISR"),
        ("throttled", "BOOLEAN", "a rate and a list limit the copy at its leader or destination"),
        ("rate_window_ms", "BIGINT", "window of the rates, ms"),
        ("eta_low_s", "DOUBLE", "eta_s at the earliest, by what is not known; null: never, or unknown"),
        ("eta_high_s", "DOUBLE", "eta_s at the latest; null: never, or unknown"),
    ),
)

PARTITION_WRITE_RATE = Table(
    "gold/partition_write_rate",
    "tick, topic, partition that moves or is listed",
    ("cluster", "tick_ms", "topic", "partition"),
    ("date",),
    _columns(
        *_TICK,
        *_PARTITION,
        ("leader", "INT", "leading broker; null: none"),
        ("write_bytes_per_s", "DOUBLE", "bytes appended per second; null: unknown"),
        (
            "method",
            "STRING",
            "log_size, end_offset, before_switch or no_leader (nothing can be written); null: unknown",
        ),
        ("window_ms", "BIGINT", "window of the rate, ms; null: unknown"),
    ),
)

LEADER_IMBALANCE = Table(
    "gold/leader_imbalance",
    "tick, broker that is preferred to lead a partition",
    ("cluster", "tick_ms", "broker"),
    ("date",),
    _columns(
        *_TICK,
        ("broker", "INT", "the broker"),
        ("alive", "BOOLEAN", "the broker is registered with the cluster"),
        ("preferred_partitions", "INT", "partitions that prefer it: it is the first of their replicas"),
        ("non_preferred_partitions", "INT", "those of them that another broker leads, as Kafka counts"),
        (
            "electable_now",
            "INT",
            "those of these that an election would give back: it is alive and in sync, none moves",
        ),
        ("waiting_for_move", "INT", "those of these that move: their replicas are in the final order already"),
        ("unavailable", "INT", "those of these that it cannot lead: it is down, or out of sync"),
        ("leaderless", "INT", "partitions that prefer it and that nobody leads; in preferred_partitions alone"),
        ("leader_partitions", "INT", "partitions that it leads, whomever they prefer"),
        ("imbalance_ratio", "DOUBLE", "non_preferred_partitions / preferred_partitions, 0 to 1"),
        (
            "threshold_ratio",
            "DOUBLE",
            "what a share has to exceed to be told, 0 to 1: leader.imbalance.per.broker.percentage or the setting",
        ),
        ("threshold_source", "STRING", "broker: it has the key; setting: alerts.leader_imbalance_percentage"),
        ("write_bytes_per_s", "DOUBLE", "written to the partitions that it leads, bytes/s; null: unknown"),
        (
            "preferred_write_bytes_per_s",
            "DOUBLE",
            "what would be if every preferred leader led, bytes/s: from the growth of logs; null: unknown",
        ),
        ("read_bytes_per_s", "DOUBLE", "consumers read of it, bytes/s; null: unknown"),
        (
            "preferred_read_bytes_per_s",
            "DOUBLE",
            "what would be if every preferred leader led, bytes/s: a leader's reads divided like its writes; "
            "null: unknown",
        ),
        ("auto_leader_rebalance", "BOOLEAN", "auto.leader.rebalance.enable of the broker; null: not told"),
        ("check_interval_s", "BIGINT", "leader.imbalance.check.interval.seconds of the broker; null: not told"),
        ("metadata_age_ms", "BIGINT", "how long before the tick its oldest partition was read, ms; null: not told"),
        ("rate_window_ms", "BIGINT", "window of the rates, ms; null: unknown"),
    ),
)

ELECTION_PLAN = Table(
    "gold/election_plan",
    "tick at which a broker was out of balance and elections were planned: anew as leaders change, else every minute",
    ("cluster", "tick_ms"),
    ("date",),
    _columns(
        *_TICK,
        ("batches", "INT", "batches of preferred elections; 0: nothing can be elected now"),
        ("elections", "INT", "partitions in all batches"),
        ("write_bytes_per_s", "DOUBLE", "what is written to them, bytes/s; null: a rate is unknown"),
        (
            "first_batch",
            "ARRAY<STRUCT<topic STRING, partition INT>>",
            "partitions of the first batch, in order",
        ),
        ("first_batch_write_bytes_per_s", "DOUBLE", "what is written to them, bytes/s; null: a rate is unknown"),
        (
            "outlooks",
            "ARRAY<STRUCT<broker INT, first_batch_ratio DOUBLE, last_batch_ratio DOUBLE>>",
            "imbalance of every preferred broker once the first batch is done, and once all are, 0 to 1",
        ),
        (
            "left_out",
            "ARRAY<STRUCT<reason STRING, partitions INT>>",
            "partitions that their preferred broker does not lead and that are in no batch, by reason",
        ),
        (
            "raise_first",
            "ARRAY<STRUCT<broker INT, role STRING, throttle_bytes_per_s DOUBLE, required_bytes_per_s DOUBLE>>",
            "throttles to raise before the rest can be elected: rate in force, and what it has to exceed",
        ),
    ),
)

ALERT_EVENTS = Table(
    "alerts/events",
    "one change of one alert's state",
    ("alert_id", "state", "tick_ms"),
    (),
    _columns(
        ("alert_id", "STRING", "names the alert from pending to resolved"),
        ("kind", "STRING", "what it is about, as docs/alerts.md lists it: throttle_below_leader_write, ..."),
        ("severity", "STRING", "critical, warning or info"),
        ("state", "STRING", "pending, firing or resolved"),
        ("cluster", "STRING", "name of the watched cluster"),
        ("subject", "STRING", "what it is about, e.g. broker 2 as leader"),
        ("summary", "STRING", "one sentence for a person"),
        ("evidence", "STRING", "JSON: the numbers behind it"),
        ("recommendation", "STRING", "JSON: what puts it right; action none where nothing is known"),
        ("tick_ms", "BIGINT", "tick that changed the state, epoch milliseconds UTC"),
        ("event_ms", "BIGINT", "when the event was written, epoch milliseconds UTC"),
    ),
)

ALERT_DELIVERIES = Table(
    "alerts/deliveries",
    "one step in the delivery of one event to one receiver",
    ("receiver", "event_key", "attempt", "state"),
    (),
    _columns(
        ("receiver", "STRING", "who is told: log, slack, slack_webhook, alertmanager or webhook"),
        ("event_key", "STRING", "which event of alerts/events: alert_id/tick_ms/state"),
        ("alert_id", "STRING", "names the alert from pending to resolved"),
        ("cluster", "STRING", "name of the watched cluster"),
        (
            "state",
            "STRING",
            "sending: about to be sent; delivered: the receiver has it; failed: it is tried again; "
            "dropped: it is not, for its alert was resolved long ago; "
            "silenced: it is not told, for a silence, a maintenance window or an acknowledgement",
        ),
        ("attempt", "BIGINT", "number of the attempt, from 1; 0: none was made"),
        ("answer", "STRING", "what the receiver said, or why it got nothing, in short; empty while sending"),
        ("reference", "STRING", "JSON: what later messages on the alert need, such as a message to reply to; or empty"),
        ("delivery_ms", "BIGINT", "when the step was taken, epoch milliseconds UTC"),
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
            "names the acknowledgement or silence; the end of a silence has that of the silence",
        ),
        ("action", "STRING", "ack: an alert is known; silence: receivers are not told; unsilence: that silence ends"),
        ("cluster", "STRING", "of an ack the alert's cluster; of a silence the one that it covers; null: all"),
        ("kind", "STRING", "of an ack the alert's kind; of a silence the one that it covers; null: all"),
        (
            "subject",
            "STRING",
            "of an ack the alert's subject; of a silence those that it covers, * standing for any text; null: all",
        ),
        ("alert_id", "STRING", "of an ack the alert; else null"),
        ("severity", "STRING", "of an ack the alert's severity then, above which it does not hold; else null"),
        ("starts_ms", "BIGINT", "of a silence when it begins, epoch milliseconds UTC; else null"),
        ("ends_ms", "BIGINT", "of a silence when it is to end, epoch milliseconds UTC; else null"),
        ("by", "STRING", "who says so"),
        ("note", "STRING", "why; or empty"),
        ("mark_ms", "BIGINT", "when it was said, epoch milliseconds UTC"),
    ),
)

# Those that jobs write, and maintenance looks after. Marks are not among them: commands write them, and on a path or S3
# Spark and another library that commit to one table may lose a row.
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
# Those that are written without Spark where the store is a disk, and so must be looked after without it as well.
PROMPT_TABLES: tuple[Table, ...] = (LEADER_IMBALANCE, ALERT_EVENTS, ALERT_DELIVERIES)
