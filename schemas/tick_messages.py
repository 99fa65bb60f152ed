"""Tick messages, which the collector writes to ``headroom.ticks`` and Spark reads.

Every message is one JSON object in UTF-8. It starts with the envelope (``version``, ``cluster``, ``tick_ms``, ``kind``,
``seq``, ``row_count``). Except for ``tick_end``, it contains many rows. Kinds with few rows use ``rows``, one object
per row. Kinds with rows for every partition use ``columns``, one array per column, which needs a third of the bytes and
of the parsing time. A column that is null in every row of a message may be omitted.

The record's key is the envelope alone, so a reader can identify a message without parsing its value; a key with just
the kind is accepted too. ``seq`` numbers the messages of a tick from 0. Cluster, tick and ``seq`` identify a message,
so duplicates are recognized.

Counters and positions include an earlier sample of themselves (``prev_*``, taken at ``prev_read_ms``) from about one
rate window before. Rates therefore need no state in Spark and survive its restart. A null ``prev_*`` means that there
is no earlier sample: the broker restarted, or was not read before.

Partition 0 of the topic is the alert partition. It carries the kinds ``brokers``, ``moves``, ``migrations`` and
``tick_end``, which have few messages; the other partitions carry history. ``tick_end`` is written after every other
message of its tick was acknowledged. It contains the offset of the tick's first message in the alert partition.

Readers of before ``migrations`` ignore that kind there, and quarantine it and ``migration_syncs`` in silver. So its
messages do not count in ``lane_messages``, by which they know that a tick is complete, but in ``messages`` alone.
"""

from __future__ import annotations

VERSION = 2
ALERT_PARTITION = 0

_LOG_SAMPLE = (
    "broker INT, read_ms BIGINT, log_end_offset BIGINT, log_start_offset BIGINT, size_bytes BIGINT, "
    "prev_read_ms BIGINT, prev_log_end_offset BIGINT, prev_log_start_offset BIGINT, prev_size_bytes BIGINT"
)
_TOPIC_SAMPLE = (
    "read_ms BIGINT, bytes_in BIGINT, messages_in BIGINT, "
    "prev_read_ms BIGINT, prev_bytes_in BIGINT, prev_messages_in BIGINT"
)

_MIGRATION_LOG = (
    "read_ms BIGINT, topic_id STRING, leader_epoch INT, log_start_offset BIGINT, log_end_offset BIGINT, "
    "stable_offset BIGINT, leader_end_offset BIGINT, newest_ms BIGINT, prev_read_ms BIGINT, "
    "prev_log_end_offset BIGINT, newest_offset BIGINT"
)
_MIGRATION_GROUP = (
    "group STRING, active BOOLEAN, read_ms BIGINT, origin_offset BIGINT, target_offset BIGINT, "
    "prev_read_ms BIGINT, prev_origin_offset BIGINT, prev_target_offset BIGINT, target_active BOOLEAN"
)

ENVELOPE = "version INT, cluster STRING, tick_ms BIGINT, kind STRING, seq INT, row_count INT"

ROWS: dict[str, str] = {
    # One row per broker that the cluster lists or a watched partition refers to. error: why it did not answer, or which
    # part of its answer could not be read.
    "brokers": (
        "broker INT, host STRING, port INT, alive BOOLEAN, answered BOOLEAN, error STRING, "
        # Rates in force. null means no rate if throttles_known is true, otherwise unknown.
        "throttles_known BOOLEAN, leader_throttle_bytes_per_s BIGINT, follower_throttle_bytes_per_s BIGINT, "
        # broker, default or none: which entity the rate in force comes from.
        "leader_throttle_source STRING, follower_throttle_source STRING, "
        # LeaderReplication and FollowerReplication byte-rate: what counts against the quota; null: no such MBean now.
        "leader_quota_bytes_per_s DOUBLE, follower_quota_bytes_per_s DOUBLE, "
        # Settings of Kafka's own leader balancing. null: unknown, or a key that the version does not have, such as
        # leader.imbalance.per.broker.percentage in Kafka 4. In KRaft mode the first two are null also for brokers that
        # are no controllers. The last one is null also if it is not set explicitly.
        "auto_leader_rebalance BOOLEAN, leader_imbalance_check_s BIGINT, leader_imbalance_percentage INT, "
        # A replication quota is a mean over quota_window_num samples of quota_window_size_s seconds each. Then: limits
        # of a replica's fetch per partition and in total, threads per source broker, and the wait of a thread after an
        # error or without a partition to fetch. null: unknown.
        "quota_window_num INT, quota_window_size_s INT, replica_fetch_max_bytes BIGINT, "
        "replica_fetch_response_max_bytes BIGINT, num_replica_fetchers INT, replica_fetch_backoff_ms INT, "
        # The throttle of moves between log directories, replica.alter.log.dirs.io.max.bytes.per.second. null: none, or
        # unknown if the source is null too.
        "log_dirs_throttle_bytes_per_s BIGINT, log_dirs_throttle_source STRING, "
        # broker.rack; null: none.
        "rack STRING"
    ),
    # One row per partition that is in a reassignment or in a throttled replica list, with all inputs of its verdict.
    # Also one row per other under-replicated partition, without logs, rates and lists.
    "moves": (
        "topic STRING, partition INT, leader INT, leader_epoch INT, replicas ARRAY<INT>, isr ARRAY<INT>, "
        "adding ARRAY<INT>, removing ARRAY<INT>, offline ARRAY<INT>, compacted BOOLEAN, "
        # Throttled replica lists with '*' expanded to the replicas; null: they could not be read.
        "leader_listed ARRAY<INT>, follower_listed ARRAY<INT>, "
        # The last leader switch observed while the partition was watched; null: none.
        "previous_leader INT, switch_tick_ms BIGINT, "
        # One per replica whose broker answered. lag_offsets is the gauge (null: -1 or missing), lag_source is its
        # source broker. unchanged_since_ms: the earliest reading with the same log end as now, which may be older than
        # a rate window; for a log read for the first time, now. Failed readings are ignored.
        f"logs ARRAY<STRUCT<{_LOG_SAMPLE}, lag_offsets BIGINT, prev_lag_offsets BIGINT, lag_source INT, "
        "unchanged_since_ms BIGINT>>, "
        # The topic's counters on the partition's leader; null: not read.
        f"topic_counters STRUCT<{_TOPIC_SAMPLE}>, "
        # The last samples under the previous leader, kept until readings of a rate window begin after the switch and
        # after the backlog of producers; null otherwise.
        f"before_log STRUCT<{_LOG_SAMPLE}>, before_topic_counters STRUCT<{_TOPIC_SAMPLE}>, "
        # remote_storage: remote.storage.enable is true, so locally deleted segments do not raise the log start offset.
        # recompressed: compression.type is not producer, so the log may grow by other bytes than BytesInPerSec counts.
        # null: unknown.
        "remote_storage BOOLEAN, recompressed BOOLEAN, "
        # Out-of-sync replicas without a log: for at least ten seconds their brokers reported logs, but none of this
        # partition, while the leader's was read. Kafka does not list every replica on a failed log directory as
        # offline. null: none.
        "without_log ARRAY<INT>"
    ),
    # One row per partition of the agreement topic headroom.migrations: what was agreed, and both clusters. Sent only
    # with ``[migration.origin]``. null: it could not be read.
    "migrations": (
        "topic STRING, partition INT, migration STRING, number BIGINT, status STRING, method STRING, "
        "end_offset BIGINT, target_base_offset BIGINT, ignore_origin BOOLEAN, origin_end BIGINT, shielded BOOLEAN, "
        "origin_cluster_id STRING, target_cluster_id STRING, origin_topic_id STRING, target_topic_id STRING, "
        # The reading that the end offset follows from.
        "origin_position BIGINT, origin_offsets_per_s DOUBLE, origin_read_ms BIGINT, "
        # Names of the routers that have to agree, those that have not yet, and the acks of those that produce.
        "routers ARRAY<STRING>, missing_routers ARRAY<STRING>, acks ARRAY<STRING>, "
        # Each side as it was read, and why it was not. leader_end_offset: log end of the leader for its newest epoch.
        # newest_offset: offset of the record with newest_ms.
        f"origin STRUCT<{_MIGRATION_LOG}>, target STRUCT<{_MIGRATION_LOG}>, "
        # earlier_target_end: log end of the target that was read before the origin's.
        "origin_error STRING, target_error STRING, earlier_target_end BIGINT, "
        # Settings of the topic on the origin.
        "cleanup_policy STRING, retention_ms BIGINT, retention_bytes BIGINT, min_insync_replicas INT, "
        "unclean_elections BOOLEAN, remote_storage BOOLEAN, "
        # Log of the leader on the origin, with its size; log_end_offset: high watermark. Read less often than the rest,
        # and null once clients write to the target. prev_size_bytes: null if another broker led.
        f"origin_size STRUCT<{_LOG_SAMPLE}>, "
        # By leader epoch of the origin: offset after the last record that is known to be acknowledged, and where the
        # epoch ends in the log of the present leader. unreported_end: greatest log end that was seen of its leader, if
        # no router has reported as much of that epoch.
        "epochs ARRAY<STRUCT<leader_epoch INT, acknowledged_end BIGINT, epoch_end BIGINT, unreported_end BIGINT>>, "
        # MirrorMaker's newest offset sync, and why it is not known; null: it is, or there is none to look for.
        "sync_origin_offset BIGINT, sync_target_offset BIGINT, sync_error STRING, "
        # Committed offsets on both clusters; null: groups could not be listed. active: on the origin; target_active: on
        # the target.
        f"groups ARRAY<STRUCT<{_MIGRATION_GROUP}>>, "
        # alerts.slip_ratio of the collector, so that the same messages give the same rows.
        "slip_ratio DOUBLE, "
        # Name of the topic on the target, as it was read last; null: not read yet, or not there.
        "target_topic STRING, "
        # When the origin was seen at its end; null: not yet, or by an earlier Headroom.
        "sealed_ms BIGINT, "
        # Greatest timestamp in the origin's log as it got to its end offset; null: not there yet, or not seen.
        "end_newest_ms BIGINT, "
        # Whether a router of the migration has dropped some of what earlier leaders had acknowledged to it.
        "incomplete_reports BOOLEAN, "
        # Leader of the partition on the target, and its followers that can fetch, if the leader's throttled list names
        # it; 0: it does not; null: the list could not be read, none leads, or the partition is not there.
        "target_leader INT, throttled_followers INT, "
        # End offset with which the target was in use, while a nearer one is agreed; null: none is.
        "reopened_end BIGINT"
    ),
    # One row per partition of the cluster.
    "leaders": (
        "topic STRING, partition INT, leader INT, leader_epoch INT, replicas ARRAY<INT>, isr ARRAY<INT>, "
        # metadata_age_ms: age of this metadata at the tick, because large clusters are not read completely every tick.
        "adding ARRAY<INT>, removing ARRAY<INT>, metadata_age_ms BIGINT, "
        # min.insync.replicas of the topic of an under-replicated partition; null: not under-replicated, or unknown.
        "min_insync_replicas INT"
    ),
    # One row per topic with a throttled replica list, as Kafka stores it: 'partition:broker,...' or '*'.
    "topic_throttles": "topic STRING, leader_throttled_replicas STRING, follower_throttled_replicas STRING",
    # One row per meter of a broker; count_total null: a gauge with bytes_per_s itself, or with a value in another unit:
    # milliseconds of RequestMetrics and LogFlushStats, 0 to 1 of KafkaRequestHandlerPool, bytes of LogDirs (the logs in
    # all directories, and free and all bytes of the volumes of those online). Requests and BytesOutPerSec of topics are
    # only in the tick after they were read; the latest values of the broker as a whole are in every tick.
    "meters": (
        "broker INT, meter STRING, topic STRING, fetcher STRING, source_broker INT, read_ms BIGINT, "
        "count_total BIGINT, prev_read_ms BIGINT, prev_count_total BIGINT, gauge_value DOUBLE"
    ),
    # One row per fetching follower replica; lag_offsets null: the gauge was -1.
    "lags": "broker INT, topic STRING, partition INT, source_broker INT, fetcher STRING, lag_offsets BIGINT",
    # One row per log that was read: the log of every leader, and of every replica of a watched partition. preferred:
    # the preferred leader, if another broker leads in its place; otherwise null.
    "logs": f"topic STRING, partition INT, is_leader BOOLEAN, preferred INT, {_LOG_SAMPLE}",
    # One row per broker whose requests and times were read since the last tick, every collect.load_interval_s.
    # bytes_in: from producers and leaders. Requests count once per partition; followers' fetches count too.
    # handler_idle_ns: idle time of the request handlers, a mean over their threads. Percentiles are of all times since
    # the broker started, but favour the last 5 minutes; null: not reported, or not a number.
    "broker_performance": (
        "broker INT, rack STRING, read_ms BIGINT, prev_read_ms BIGINT, bytes_in BIGINT, prev_bytes_in BIGINT, "
        "produce_requests BIGINT, prev_produce_requests BIGINT, fetch_requests BIGINT, prev_fetch_requests BIGINT, "
        "handler_idle_ns BIGINT, prev_handler_idle_ns BIGINT, produce_p99_ms DOUBLE, follower_fetch_p99_ms DOUBLE, "
        "log_flush_p999_ms DOUBLE"
    ),
    # One row per log directory of a broker that described them since the last tick, every collect.log_dirs_interval_s.
    # Bytes of the whole volume; null: not reported (before Kafka 3.3), or offline.
    "log_dirs": (
        "broker INT, read_ms BIGINT, log_dir STRING, total_bytes BIGINT, usable_bytes BIGINT, offline BOOLEAN, "
        "cordoned BOOLEAN"
    ),
    # One row per log in these directories. is_future: copy of a log that moves to this directory.
    "replica_sizes": (
        "broker INT, topic STRING, partition INT, read_ms BIGINT, log_dir STRING, size_bytes BIGINT, "
        "lag_offsets BIGINT, is_future BOOLEAN"
    ),
    # One row per offset sync of MirrorMaker that is to be kept, of mirrored partitions of the kind migrations, once it
    # is read. A row is sent again until its tick is written, and after a restart. sync_offset: offset in the topic of
    # the syncs. after_offset: that of a kept sync before it, if none in between went back or can have been missed;
    # null: earlier syncs do not count. written_ms: timestamp of the sync. The ids are those of the reading.
    "migration_syncs": (
        "topic STRING, partition INT, migration STRING, sync_topic_id STRING, sync_leader_epoch INT, "
        "sync_offset BIGINT, after_offset BIGINT, origin_offset BIGINT, target_offset BIGINT, written_ms BIGINT, "
        "origin_cluster_id STRING, target_cluster_id STRING, origin_topic_id STRING, target_topic_id STRING"
    ),
}

# Kinds whose rows are sent as columns; the types are scalars or arrays of scalars.
COLUMNAR: tuple[str, ...] = ("leaders", "meters", "lags", "logs", "replica_sizes", "migration_syncs")

# Required columns of each row; a message with one missing in any row is rejected as a whole.
REQUIRED: dict[str, tuple[str, ...]] = {
    "brokers": ("broker", "alive", "throttles_known"),
    "moves": ("topic", "partition", "replicas", "isr", "adding", "removing", "logs"),
    "migrations": ("topic", "partition", "migration", "status", "method"),
    "migration_syncs": (
        *("topic", "partition", "sync_topic_id", "sync_leader_epoch", "sync_offset", "origin_offset", "target_offset"),
        *("written_ms", "origin_cluster_id", "target_cluster_id", "origin_topic_id", "target_topic_id"),
    ),
    "leaders": ("topic", "partition", "replicas", "isr"),
    "topic_throttles": ("topic",),
    "meters": ("broker", "meter", "read_ms"),
    "lags": ("broker", "topic", "partition"),
    "logs": ("topic", "partition", "broker", "read_ms"),
    "broker_performance": ("broker", "read_ms"),
    "log_dirs": ("broker", "read_ms", "log_dir"),
    "replica_sizes": ("broker", "topic", "partition", "log_dir"),
}

TICK_END = (
    "interval_ms BIGINT, started_ms BIGINT, ended_ms BIGINT, "
    # Delay of this tick against its schedule, and number of ticks skipped before it to return to the schedule.
    "lateness_ms BIGINT, skipped_ticks INT, rate_window_ms BIGINT, "
    # Messages sent per kind, and brokers whose rows are missing, with the reason. Kinds without a message are left out,
    # but migrations: 0 if the agreement topic was read to its end and has none; left out if it could not be read.
    "messages MAP<STRING, INT>, unanswered ARRAY<STRUCT<broker INT, reason STRING>>, "
    # First offset of this tick in the alert partition, and number of its messages there before tick_end.
    "first_offset BIGINT, lane_messages INT, "
    # Maximum of the leaders' metadata_age_ms.
    "metadata_age_ms BIGINT, "
    # Offset ranges of the messages of the other kinds, per partition: first inclusive, end exclusive. Messages of other
    # ticks may lie in between. null: not reported.
    "ranges ARRAY<STRUCT<partition INT, first_offset BIGINT, end_offset BIGINT>>, "
    # The collector that wrote the tick: host, process id and start time; null: not reported.
    "collector_host STRING, collector_pid BIGINT, collector_started_ms BIGINT"
)

ALERT_KINDS: tuple[str, ...] = ("brokers", "moves", "migrations", "tick_end")
# Kinds of the alert partition that ``lane_messages`` counts: those that every reader knows.
COUNTED_KINDS: tuple[str, ...] = ("brokers", "moves")
KINDS: tuple[str, ...] = (*ROWS, "tick_end")


def message_ddl(kind: str) -> str:
    """Return the Spark DDL of the whole message of a kind.

    Raises:
        KeyError: the kind is unknown.
    """
    if kind == "tick_end":
        return f"{ENVELOPE}, {TICK_END}"
    if kind in COLUMNAR:
        arrays = ", ".join(f"{name} ARRAY<{of}>" for name, of in column_types(kind).items())
        return f"{ENVELOPE}, columns STRUCT<{arrays}>"
    return f"{ENVELOPE}, rows ARRAY<STRUCT<{ROWS[kind]}>>"


def column_types(kind: str) -> dict[str, str]:
    """Return the columns of a kind of ``COLUMNAR`` with their types, in order."""
    return {column.split(" ")[0]: column.split(" ")[1] for column in ROWS[kind].split(", ")}


def row_columns(kind: str) -> list[str]:
    """Return the column names of a kind's rows, in order."""
    return [column.split()[0] for column in typed_columns(kind)]


def typed_columns(kind: str) -> list[str]:
    """Return the columns of a kind's rows, or of ``tick_end`` itself, each with its type."""
    columns, depth = [""], 0
    for letter in ROWS.get(kind, TICK_END):
        depth += {"<": 1, ">": -1}.get(letter, 0)
        if letter == "," and not depth:
            columns.append("")
        else:
            columns[-1] += letter
    return [column.strip() for column in columns]


def scalar_columns(kind: str) -> list[str]:
    """Return the names of columns with scalar values in a kind's rows, or in ``tick_end`` itself."""
    return [column.split()[0] for column in typed_columns(kind) if "<" not in column]


def array_columns(kind: str) -> list[str]:
    """Return the names of array columns in a kind's rows."""
    return [column.split()[0] for column in typed_columns(kind) if column.split()[1].startswith("ARRAY<")]


def broker_lists(kind: str) -> list[str]:
    """Return the names of the columns in a kind's rows that are lists of broker ids."""
    return [name for name, of in (column.split(" ", 1) for column in typed_columns(kind)) if of == "ARRAY<INT>"]


def samples(kind: str) -> dict[str, tuple[bool, list[str]]]:
    """Return the struct columns of a kind's rows: name to a pair of whether it is an array and its field names."""
    structs = {}
    for column in typed_columns(kind):
        name, _, of = column.partition(" ")
        if "STRUCT<" in of:
            fields = of[of.index("STRUCT<") + len("STRUCT<") :].rstrip(">").split(", ")
            structs[name] = (of.startswith("ARRAY"), [field.split()[0] for field in fields])
    return structs
