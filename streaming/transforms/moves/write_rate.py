"""Write rate of each partition, from samples that carry their own earlier sample.

Kafka has no byte counter per partition. Two methods replace it, the better one first:

1. ``log_size``: growth of the leader's log in bytes. It is exact for the partition. It does not apply if retention has
   deleted a segment (the log start has moved), the log was truncated, the topic is compacted, or the topic has remote
   storage (a segment that is deleted locally moves no gauge).
2. ``end_offset``: growth of the leader's log end offset, times the topic's mean bytes per message on that broker
   (BytesInPerSec / MessagesInPerSec). Those meters count bytes as producers sent them. If the broker recompresses, the
   mean size of the log's own records comes first.

After a leader switch the rate from before the switch is used, as long as the new leader's readings reach back over it,
or over the backlog that producers send then. A counter or offset that fell gives no rate. A partition without a leader
has the rate 0.

Of migrations, ``planning/migration/log_size.py`` computes the rate on the origin alike; a test holds the two equal.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from headroom.schemas.tick_messages import row_columns
from headroom.streaming.transforms.steps import named_expressions, with_columns


def _log_size_rate(log: str) -> str:
    """Return the rate of method 1, bytes per second, as an expression; null if the method does not apply."""
    return f"""CASE WHEN NOT coalesce(compacted, true) AND NOT coalesce(remote_storage, false)
        AND {log}.read_ms > {log}.prev_read_ms
        AND {log}.log_start_offset = {log}.prev_log_start_offset AND {log}.log_end_offset >= {log}.prev_log_end_offset
        AND {log}.size_bytes >= {log}.prev_size_bytes
        THEN ({log}.size_bytes - {log}.prev_size_bytes) * 1000D / ({log}.read_ms - {log}.prev_read_ms) END"""


def end_offset_rate(log: str, counters: str) -> str:
    """Return the rate of method 2, bytes per second, as an expression; null if it is unknown.

    Args:
        log: name of a struct with the log end offset and its earlier sample.
        counters: name of a struct with the topic's byte and message counters on the leader, and their earlier samples.
            The struct may be null.
    """
    grown = f"({log}.log_end_offset - {log}.prev_log_end_offset)"
    bytes_in = f"({counters}.bytes_in - {counters}.prev_bytes_in)"
    messages = f"({counters}.messages_in - {counters}.prev_messages_in)"
    return f"""CASE WHEN {log}.read_ms > {log}.prev_read_ms AND {grown} = 0 THEN 0D
        WHEN {log}.read_ms > {log}.prev_read_ms AND {grown} > 0 AND {bytes_in} >= 0 AND {messages} > 0
        THEN {grown} * 1000D / ({log}.read_ms - {log}.prev_read_ms) * {bytes_in} / {messages} END"""


def _mean_record_rate(log: str) -> str:
    """Return the rate by the mean size of the log's own records, bytes per second, if the broker recompresses.

    Null for compacted topics and topics with remote storage: their local log has other records than producers sent.
    """
    grown = f"({log}.log_end_offset - {log}.prev_log_end_offset)"
    return f"""CASE WHEN recompressed AND NOT coalesce(compacted, true) AND NOT coalesce(remote_storage, false)
        AND {log}.read_ms > {log}.prev_read_ms AND {grown} >= 0 AND {log}.log_end_offset > {log}.log_start_offset
        THEN {grown} * 1000D / ({log}.read_ms - {log}.prev_read_ms)
            * {log}.size_bytes / ({log}.log_end_offset - {log}.log_start_offset) END"""


def _offset_rate(log: str, counters: str) -> str:
    return f"coalesce({_mean_record_rate(log)}, {end_offset_rate(log, counters)})"


# A rate needs two readings of the leader's log, and two of the topic's counters on the leader if it has them.
_FIRST_READING = """leader_log IS NOT NULL AND (leader_log.prev_read_ms IS NULL
    OR (topic_counters IS NOT NULL AND topic_counters.prev_read_ms IS NULL))"""

# The sample of the log on the leader, with its earlier sample.
_LEADER_LOG = "get(filter(logs, x -> x.broker = leader), 0)"
_RATE = "CASE WHEN leader IS NULL THEN 0D ELSE coalesce(_before, _log_size, _end_offset) END"
_METHOD = """CASE WHEN leader IS NULL THEN 'no_leader' WHEN _before IS NOT NULL THEN 'before_switch'
    WHEN _log_size IS NOT NULL THEN 'log_size' WHEN _end_offset IS NOT NULL THEN 'end_offset' END"""
_WINDOW_MS = """CASE WHEN leader IS NULL THEN NULL
    WHEN _before IS NOT NULL THEN before_log.read_ms - before_log.prev_read_ms
    WHEN coalesce(_log_size, _end_offset) IS NOT NULL THEN leader_log.read_ms - leader_log.prev_read_ms END"""


def with_write_rate(moves: DataFrame) -> DataFrame:
    """Return the rows of ``moves`` with their write rate and ``leader_log``.

    Args:
        moves: one row per partition that moves or is listed, with the columns of the message kind ``moves``.

    Returns:
        The same rows with ``leader_log``, ``first_reading``, ``write_bytes_per_s`` (null if it is unknown), ``method``
        (log_size, end_offset, before_switch or no_leader) and ``window_ms``.
    """
    with_log = moves.selectExpr(
        "cluster", "tick_ms", *row_columns("moves"), *named_expressions({"leader_log": _LEADER_LOG})
    )
    # Rates by each method, bytes per second; null if the method does not apply.
    by_method = {
        # Of the earlier leader; the collector sends its samples while those of the new one reach back over the switch.
        "_before": f"coalesce({_log_size_rate('before_log')}, {_offset_rate('before_log', 'before_topic_counters')})",
        "_log_size": _log_size_rate("leader_log"),
        "_end_offset": _offset_rate("leader_log", "topic_counters"),
    }
    with_methods = with_columns(with_log, {"first_reading": _FIRST_READING, **by_method})
    rates = {
        # Bytes per second that producers add to the partition.
        "write_bytes_per_s": _RATE,
        # Method of the rate: log_size, end_offset, before_switch or no_leader.
        "method": _METHOD,
        # Time between the two readings of the rate, milliseconds.
        "window_ms": _WINDOW_MS,
    }
    return with_columns(with_methods, rates, without=list(by_method))
