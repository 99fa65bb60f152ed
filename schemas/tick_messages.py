"""The tick messages: what the collector writes to ``headroom.ticks`` and Spark reads.

Every message is one JSON object in UTF-8. It starts with the envelope (``version``, ``cluster``, ``tick_ms``, ``kind``,
``seq``, ``row_count``) and, but for ``tick_end``, carries many rows: kinds of few rows in ``rows``, an object each;
kinds with rows for every partition in ``columns``, an array each, which is a third of the bytes and of the parsing. A
column that is null in every row of a message may be left out.

The record's key is the envelope alone, so that a reader knows a message without parsing it; a key that is just the
kind will do. ``seq`` numbers the messages of a tick from 0; with cluster and tick it names a message for ever, so a
second delivery is known as one.

Counters and positions carry an earlier sample of themselves (``prev_*`` with the time ``prev_read_ms``), taken about
one rate window before, so that a rate needs no state: not in Spark, and not over a restart of Spark. A ``prev_*`` of
null says that there is no earlier sample: the broker restarted, or was not read before.

Lanes: partition 0 of the topic is the alert lane and carries the kinds ``brokers``, ``moves`` and ``tick_end``, which
are few; the other partitions carry history. ``tick_end`` is written after every other message of its tick was
acknowledged, and names the lane's offset at which its tick begins.
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

ENVELOPE = "version INT, cluster STRING, tick_ms BIGINT, kind STRING, seq INT, row_count INT"

ROWS: dict[str, str] = {
    # One row per broker that the cluster lists, or that a watched partition names. error: why it did not answer, or,
    # of one that did, what could not be read of it.
    "brokers": (
        "broker INT, host STRING, port INT, alive BOOLEAN, answered BOOLEAN, error STRING, "
        # Rates in force; null with throttles_known = true says that none is set, with false that it is unknown.
        "throttles_known BOOLEAN, leader_throttle_bytes_per_s BIGINT, follower_throttle_bytes_per_s BIGINT, "
        # broker, default or none: which entity the rate in force comes from.
        "leader_throttle_source STRING, follower_throttle_source STRING, "
        # LeaderReplication and FollowerReplication byte-rate: what counts against the quota; null: no such MBean now.
        "leader_quota_bytes_per_s DOUBLE, follower_quota_bytes_per_s DOUBLE, "
        # What the broker is told of Kafka's own balancing of leaders; null: unknown, or a key that it does not have, as
        # those of Kafka 4 have no leader.imbalance.per.broker.percentage. The first two are null also of a broker that
        # is no controller in KRaft mode, the last one if it is not set explicitly.
        "auto_leader_rebalance BOOLEAN, leader_imbalance_check_s BIGINT, leader_imbalance_percentage INT, "
        # A replication quota is a mean over quota_window_num samples of quota_window_size_s seconds each. Then how much
        # a replica's fetch takes of one partition and in all, by how many threads for each broker fetched from, and how
        # long one waits after an error or while there is no partition that it may fetch. null: unknown.
        "quota_window_num INT, quota_window_size_s INT, replica_fetch_max_bytes BIGINT, "
        "replica_fetch_response_max_bytes BIGINT, num_replica_fetchers INT, replica_fetch_backoff_ms INT, "
        # The throttle of moves between log directories, replica.alter.log.dirs.io.max.bytes.per.second; null: none, or,
        # with a source of null, unknown.
        "log_dirs_throttle_bytes_per_s BIGINT, log_dirs_throttle_source STRING"
    ),
    # One row per partition that moves, or that a throttled replica list names: all that its verdict needs. And one
    # without logs, rates and lists per partition that lacks a replica in the ISR: who lacks which is all of it.
    "moves": (
        "topic STRING, partition INT, leader INT, leader_epoch INT, replicas ARRAY<INT>, isr ARRAY<INT>, "
        "adding ARRAY<INT>, removing ARRAY<INT>, offline ARRAY<INT>, compacted BOOLEAN, "
        # Throttled replica lists with '*' spelled out as the replicas; null: they could not be read.
        "leader_listed ARRAY<INT>, follower_listed ARRAY<INT>, "
        # The last switch seen while the partition was watched; null: none.
        "previous_leader INT, switch_tick_ms BIGINT, "
        # One per replica whose broker answered; lag_offsets is the gauge (null: -1, gone), lag_source whom it fetches.
        # unchanged_since_ms: the earliest reading since which the log's end has been the same as now, further back than
        # a rate window; of a log first read now, now. Readings that failed neither count nor end it.
        f"logs ARRAY<STRUCT<{_LOG_SAMPLE}, lag_offsets BIGINT, prev_lag_offsets BIGINT, lag_source INT, "
        "unchanged_since_ms BIGINT>>, "
        # The topic's counters on the partition's leader; null: not read.
        f"topic_counters STRUCT<{_TOPIC_SAMPLE}>, "
        # The last samples under the previous leader, kept for one rate window after a switch; null otherwise.
        f"before_log STRUCT<{_LOG_SAMPLE}>, before_topic_counters STRUCT<{_TOPIC_SAMPLE}>, "
        # Whether remote.storage.enable is true: segments that are deleted locally then do not raise the log start; and
        # whether compression.type is another than producer: the log may grow by other bytes than BytesInPerSec counts.
        # null: unknown.
        "remote_storage BOOLEAN, recompressed BOOLEAN, "
        # Replicas out of the ISR whose brokers have told of their logs for ten seconds or longer without one of it,
        # though the leader's was read: Kafka calls not all replicas offline whose log directory has failed. null: none.
        "without_log ARRAY<INT>"
    ),
    # One row per partition of the cluster.
    "leaders": (
        "topic STRING, partition INT, leader INT, leader_epoch INT, replicas ARRAY<INT>, isr ARRAY<INT>, "
        # How long before the tick this was read; very many partitions are not read every tick.
        "adding ARRAY<INT>, removing ARRAY<INT>, metadata_age_ms BIGINT, "
        # min.insync.replicas of its topic, of a partition that lacks a replica in the ISR; null: it lacks none, or
        # unknown.
        "min_insync_replicas INT"
    ),
    # One row per topic with a throttled replica list, as Kafka stores it: 'partition:broker,...' or '*'.
    "topic_throttles": "topic STRING, leader_throttled_replicas STRING, follower_throttled_replicas STRING",
    # One row per meter of a broker; count_total null: a gauge that gives bytes_per_s itself.
    "meters": (
        "broker INT, meter STRING, topic STRING, fetcher STRING, source_broker INT, read_ms BIGINT, "
        "count_total BIGINT, prev_read_ms BIGINT, prev_count_total BIGINT, gauge_value DOUBLE"
    ),
    # One row per follower replica that fetches; lag_offsets null: the gauge said -1.
    "lags": "broker INT, topic STRING, partition INT, source_broker INT, fetcher STRING, lag_offsets BIGINT",
    # One row per log that was read: of every leader, and of every replica of a watched partition. preferred: the
    # preferred leader, of a log whose broker leads in its place; else null.
    "logs": f"topic STRING, partition INT, is_leader BOOLEAN, preferred INT, {_LOG_SAMPLE}",
}

# Kinds whose rows travel as columns; their types are plain, or arrays of plain ones.
COLUMNAR: tuple[str, ...] = ("leaders", "meters", "lags", "logs")

# What each row must have; a message with a row that lacks one is rejected whole.
REQUIRED: dict[str, tuple[str, ...]] = {
    "brokers": ("broker", "alive", "throttles_known"),
    "moves": ("topic", "partition", "replicas", "isr", "adding", "removing", "logs"),
    "leaders": ("topic", "partition", "replicas", "isr"),
    "topic_throttles": ("topic",),
    "meters": ("broker", "meter", "read_ms"),
    "lags": ("broker", "topic", "partition"),
    "logs": ("topic", "partition", "broker", "read_ms"),
}

TICK_END = (
    "interval_ms BIGINT, started_ms BIGINT, ended_ms BIGINT, "
    # How late this tick began against the pace, and how many ticks were left out before it to keep the pace.
    "lateness_ms BIGINT, skipped_ticks INT, rate_window_ms BIGINT, "
    # Messages sent per kind, and brokers whose rows are missing with the reason.
    "messages MAP<STRING, INT>, unanswered ARRAY<STRUCT<broker INT, reason STRING>>, "
    # Where this tick begins in the alert lane, and how many messages it has there before tick_end.
    "first_offset BIGINT, lane_messages INT, "
    # The greatest of the leaders' metadata_age_ms.
    "metadata_age_ms BIGINT, "
    # Where the messages that are not of the alert kinds lie: in each partition from the first up to, not including, the
    # end; others may lie between them. null: not told.
    "ranges ARRAY<STRUCT<partition INT, first_offset BIGINT, end_offset BIGINT>>, "
    # Which collector wrote the tick: its machine, its process there, and when that was started; null: not told.
    "collector_host STRING, collector_pid BIGINT, collector_started_ms BIGINT"
)

ALERT_KINDS: tuple[str, ...] = ("brokers", "moves", "tick_end")
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
    """Return the columns of a kind of ``COLUMNAR`` and their types, in order."""
    return {column.split(" ")[0]: column.split(" ")[1] for column in ROWS[kind].split(", ")}


def row_columns(kind: str) -> list[str]:
    """Return the names of the columns of a kind's rows, in order."""
    return [column.split()[0] for column in _columns(kind)]


def _columns(kind: str) -> list[str]:
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
    """Return the names of the columns of a kind's rows, or of ``tick_end`` itself, that hold one value each."""
    return [column.split()[0] for column in _columns(kind) if "<" not in column]


def array_columns(kind: str) -> list[str]:
    """Return the names of the columns of a kind's rows that hold arrays."""
    return [column.split()[0] for column in _columns(kind) if column.split()[1].startswith("ARRAY<")]


def samples(kind: str) -> dict[str, tuple[bool, list[str]]]:
    """Return the columns of a kind's rows that are structs: whether as an array, and the names of their fields."""
    found = {}
    for column in _columns(kind):
        name, _, of = column.partition(" ")
        if "STRUCT<" in of:
            fields = of[of.index("STRUCT<") + len("STRUCT<") :].rstrip(">").split(", ")
            found[name] = (of.startswith("ARRAY"), [field.split()[0] for field in fields])
    return found
