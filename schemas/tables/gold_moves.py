"""The gold tables about moves: throttles and their headroom, progress of copies, and write rates."""

from __future__ import annotations

from headroom.schemas.tables.table import PARTITION_COLUMNS, TICK_COLUMNS, Table, columns_of

_EVIDENCE = (
    "ARRAY<STRUCT<topic STRING, partition INT, write_bytes_per_s DOUBLE, followers INT, in_sync_followers INT, "
    "leader INT, previous_leader INT, switch_tick_ms BIGINT, moving BOOLEAN, "
    "replicas ARRAY<INT>, target ARRAY<INT>, stalled BOOLEAN, remaining_bytes BIGINT>>"
)

THROTTLE_HEADROOM = Table(
    "gold/throttle_headroom",
    "tick, broker, role",
    ("cluster", "tick_ms", "broker", "role"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
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
        (
            "eta_s",
            "DOUBLE",
            "expected time until they are in sync at the rates in force, seconds; null: never, or unknown",
        ),
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
    columns_of(
        *TICK_COLUMNS,
        *PARTITION_COLUMNS,
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
        ("replicas", "ARRAY<INT>", "current replicas of the partition, adding and removing ones included"),
        ("removing", "ARRAY<INT>", "replicas of these that the reassignment removes"),
        ("leader_log_bytes", "BIGINT", "size of the leader's log on its disks, bytes; null: unknown"),
    ),
)

PARTITION_WRITE_RATE = Table(
    "gold/partition_write_rate",
    "tick, topic, partition in a reassignment or a throttled replica list",
    ("cluster", "tick_ms", "topic", "partition"),
    ("date",),
    columns_of(
        *TICK_COLUMNS,
        *PARTITION_COLUMNS,
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
