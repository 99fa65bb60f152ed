"""The silver tables: decoded rows of every kind of message, and rejected messages."""

from __future__ import annotations

from headroom.schemas.tables.table import PARTITION_COLUMNS, TICK_COLUMNS, Table, columns_of

MESSAGES = Table(
    "silver/messages",
    "one decoded message",
    ("cluster", "tick_ms", "kind", "seq"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
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
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker of the follower replica"),
        *PARTITION_COLUMNS,
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
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker of the meter"),
        ("meter", "STRING", "type and name of the MBean, e.g. FetcherStats.BytesPerSec"),
        ("topic", "STRING", "topic of the meter; null: whole broker"),
        ("fetcher", "STRING", "client id of the fetcher thread; null: not a fetcher's meter"),
        ("source_broker", "INT", "broker the fetcher fetches from; null: not a fetcher's meter"),
        (
            "count_total",
            "BIGINT",
            "Count of the meter (bytes; messages for MessagesInPerSec; requests for TotalProduceRequestsPerSec and "
            "TotalFetchRequestsPerSec); null: a gauge",
        ),
        (
            "bytes_per_s",
            "DOUBLE",
            "rate over window_ms, per second; null: no earlier sample, or the counter fell. A gauge's own value: ms "
            "for RequestMetrics and LogFlushStats, 0 to 1 for KafkaRequestHandlerPool, bytes for LogDirs",
        ),
        ("window_ms", "BIGINT", "time between the two samples, ms; null: a gauge or no earlier sample"),
    ),
)

LOG_END_OFFSETS = Table(
    "silver/log_end_offsets",
    "tick, broker, topic, partition",
    ("cluster", "tick_ms", "broker", "topic", "partition"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker with the log"),
        *PARTITION_COLUMNS,
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
    columns_of(
        *TICK_COLUMNS,
        *PARTITION_COLUMNS,
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
    columns_of(
        *TICK_COLUMNS,
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

BROKER_PERFORMANCE = Table(
    "silver/broker_performance",
    "tick, broker whose requests and times were read since the tick before",
    ("cluster", "tick_ms", "broker"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker"),
        ("rack", "STRING", "broker.rack; null: none"),
        ("read_ms", "BIGINT", "time of the reading, epoch milliseconds"),
        ("window_ms", "BIGINT", "time between the two readings of the counters, ms; null: no earlier reading"),
        (
            "bytes_in_per_s",
            "DOUBLE",
            "bytes received from producers and leaders over window_ms, bytes/s; null: no earlier reading, or a counter "
            "fell, as of the next 3",
        ),
        (
            "produce_requests_per_s",
            "DOUBLE",
            "produce requests over window_ms, per second; a request counts once for each of its partitions",
        ),
        (
            "fetch_requests_per_s",
            "DOUBLE",
            "fetch requests of consumers and followers over window_ms, per second, counted in the same way",
        ),
        (
            "handler_idle_ratio",
            "DOUBLE",
            "share of window_ms that the request handlers were idle, mean over their threads, 0 to 1",
        ),
        ("produce_p99_ms", "DOUBLE", "99th percentile of the total times of produce requests, ms; null: not reported"),
        (
            "follower_fetch_p99_ms",
            "DOUBLE",
            "99th percentile of the total times of followers' fetches, ms, with the wait for new records; null: not "
            "reported",
        ),
        ("log_flush_p999_ms", "DOUBLE", "99.9th percentile of log flush times, ms; null: not reported"),
    ),
)

LOG_DIRS = Table(
    "silver/log_dirs",
    "tick, broker, log directory",
    ("cluster", "tick_ms", "broker", "log_dir"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker"),
        ("log_dir", "STRING", "path of the log directory"),
        ("read_ms", "BIGINT", "time of the reading, epoch milliseconds"),
        ("total_bytes", "BIGINT", "size of its volume, bytes; null: not reported (before Kafka 3.3), or offline"),
        ("usable_bytes", "BIGINT", "free bytes of its volume; null: not reported, or offline"),
        ("offline", "BOOLEAN", "true if the broker cannot use it"),
        ("cordoned", "BOOLEAN", "true if it takes no new replicas (KIP-1066)"),
    ),
)

REPLICA_SIZES = Table(
    "silver/replica_sizes",
    "tick, broker, topic, partition, log directory",
    ("cluster", "tick_ms", "broker", "topic", "partition", "log_dir"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        ("broker", "INT", "broker of the replica"),
        *PARTITION_COLUMNS,
        ("log_dir", "STRING", "path of the log directory"),
        ("read_ms", "BIGINT", "time of the reading, epoch milliseconds"),
        ("size_bytes", "BIGINT", "bytes of the log's segments; null: impossible value"),
        ("lag_offsets", "BIGINT", "offsets behind the high watermark; of a future log: behind the current log"),
        ("is_future", "BOOLEAN", "true for the copy of a log that moves to this directory"),
    ),
)

QUARANTINE = Table(
    "silver/quarantine",
    "one rejected record",
    ("topic", "partition", "offset"),
    ("date",),
    columns_of(
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

MIGRATION_OFFSETS = Table(
    "silver/migration_offsets",
    "tick, topic, partition, side of a migration",
    ("cluster", "tick_ms", "topic", "partition", "side"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        *PARTITION_COLUMNS,
        ("side", "STRING", "cluster of the log: origin or target"),
        ("migration", "STRING", "name of the migration"),
        ("read_ms", "BIGINT", "time of the reading, epoch milliseconds UTC; null: not read"),
        ("topic_id", "STRING", "id of the topic; null: not read, or before Kafka 2.8"),
        ("leader_epoch", "INT", "epoch of the leader; null: unknown"),
        ("log_start_offset", "BIGINT", "log start offset; null: unknown"),
        ("log_end_offset", "BIGINT", "high watermark; null: unknown"),
        ("stable_offset", "BIGINT", "last stable offset; null: unknown"),
        ("leader_end_offset", "BIGINT", "log end of the leader for its newest epoch; null: unknown, or the target"),
        ("newest_ms", "BIGINT", "greatest timestamp in the log, epoch milliseconds; null: unknown, or an empty log"),
        ("offsets_per_s", "DOUBLE", "growth of log_end_offset over window_ms, offsets/s; null: unknown, or it fell"),
        ("window_ms", "BIGINT", "time between the two samples, ms; null: no earlier sample"),
        ("error", "STRING", "why the side was not read; null: it was"),
        (
            "size_bytes",
            "BIGINT",
            "size of the leader's log, bytes, up to some seconds before read_ms; null: unknown, the target, or clients "
            "write to the target",
        ),
    ),
)

MIGRATION_SYNCS = Table(
    "silver/migration_syncs",
    "kept offset sync of MirrorMaker",
    ("cluster", "sync_topic_id", "topic", "partition", "sync_offset", "origin_offset", "target_offset"),
    ("date",),
    columns_of(
        ("cluster", "STRING", "name of the watched cluster, the target"),
        ("tick_ms", "BIGINT", "time of the first tick that had it, epoch milliseconds UTC"),
        ("date", "DATE", "day of written_ms in UTC; folder of the row"),
        ("topic", "STRING", "topic on the origin"),
        ("partition", "INT", "partition"),
        ("migration", "STRING", "name of the migration"),
        ("sync_topic_id", "STRING", "id of the topic of the syncs"),
        ("sync_leader_epoch", "INT", "epoch of the leader of that topic that the sync was read from"),
        ("sync_offset", "BIGINT", "offset of the sync in that topic"),
        (
            "after_offset",
            "BIGINT",
            "sync_offset of the kept sync of the partition before this one; null: earlier ones do not count, because a "
            "log went back, or a sync may have been missed",
        ),
        ("origin_offset", "BIGINT", "offset of a record on the origin"),
        ("target_offset", "BIGINT", "offset of its copy on the target"),
        ("written_ms", "BIGINT", "when MirrorMaker wrote the sync, epoch milliseconds UTC"),
        ("origin_cluster_id", "STRING", "id of the origin"),
        ("target_cluster_id", "STRING", "id of the target"),
        ("origin_topic_id", "STRING", "id of the topic on the origin"),
        ("target_topic_id", "STRING", "id of the mirrored topic on the target"),
    ),
)
