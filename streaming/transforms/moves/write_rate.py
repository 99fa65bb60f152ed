"""The write rate of a partition, from samples that carry their own earlier sample.

Two ways, the better first. (1) What the leader's log grew by in bytes: exact for this very partition, unless retention
deleted a segment (the log's start moved), the log was cut, the topic is compacted, or its older segments go to remote
storage (a segment deleted locally moves no gauge). (2) What its log end offset grew by, times the bytes per message
that the topic's BytesInPerSec and MessagesInPerSec show on the leader: a mean over the topic's partitions there. These
count what producers sent; where the broker compresses it in another way, the mean over the log itself comes first. For
one rate window after a leader switch the rate from before it holds, for the new leader's own readings reach back over
the switch. A counter or offset that fell gives no rate. To a partition without a leader nothing can be written.
"""

from __future__ import annotations

from pyspark.sql import DataFrame

from schemas.tick_messages import row_columns
from streaming.transforms.steps import named, with_columns


def _log_size_rate(log: str) -> str:
    return f"""CASE WHEN NOT coalesce(compacted, true) AND NOT coalesce(remote_storage, false)
        AND {log}.read_ms > {log}.prev_read_ms
        AND {log}.log_start_offset = {log}.prev_log_start_offset AND {log}.log_end_offset >= {log}.prev_log_end_offset
        AND {log}.size_bytes >= {log}.prev_size_bytes
        THEN ({log}.size_bytes - {log}.prev_size_bytes) * 1000D / ({log}.read_ms - {log}.prev_read_ms) END"""


def end_offset_rate(log: str, counters: str) -> str:
    """Return the rate of the second way, as an expression; null where it is not known.

    Args:
        log: name of a struct with the end of the log and its earlier sample.
        counters: name of one with what the topic counted on its leader, and the earlier sample; it may be null.
    """
    grown = f"({log}.log_end_offset - {log}.prev_log_end_offset)"
    bytes_in = f"({counters}.bytes_in - {counters}.prev_bytes_in)"
    messages = f"({counters}.messages_in - {counters}.prev_messages_in)"
    return f"""CASE WHEN {log}.read_ms > {log}.prev_read_ms AND {grown} = 0 THEN 0D
        WHEN {log}.read_ms > {log}.prev_read_ms AND {grown} > 0 AND {bytes_in} >= 0 AND {messages} > 0
        THEN {grown} * 1000D / ({log}.read_ms - {log}.prev_read_ms) * {bytes_in} / {messages} END"""


def _own_mean_rate(log: str) -> str:
    """Return the rate by the mean size of the log's own records, where that is better than what producers sent."""
    grown = f"({log}.log_end_offset - {log}.prev_log_end_offset)"
    return f"""CASE WHEN recompressed AND NOT coalesce(compacted, true) AND NOT coalesce(remote_storage, false)
        AND {log}.read_ms > {log}.prev_read_ms AND {grown} >= 0 AND {log}.log_end_offset > {log}.log_start_offset
        THEN {grown} * 1000D / ({log}.read_ms - {log}.prev_read_ms)
            * {log}.size_bytes / ({log}.log_end_offset - {log}.log_start_offset) END"""


def _by_offsets(log: str, counters: str) -> str:
    return f"coalesce({_own_mean_rate(log)}, {end_offset_rate(log, counters)})"


# A rate takes two readings of the leader's log, or, where bytes are counted by topic, of its leader's counters.
_FIRST_READING = """leader_log IS NOT NULL AND (leader_log.prev_read_ms IS NULL
    OR (topic_counters IS NOT NULL AND topic_counters.prev_read_ms IS NULL))"""


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
        The same rows with ``leader_log``, ``write_bytes_per_s`` (null: unknown; if ``first_reading``, for want of a
        second one), ``method`` (log_size, end_offset, before_switch or no_leader) and ``window_ms``.
    """
    before = f"coalesce({_log_size_rate('before_log')}, {_by_offsets('before_log', 'before_topic_counters')})"
    own = moves.selectExpr("cluster", "tick_ms", *row_columns("moves"), *named({"leader_log": _LEADER_LOG}))
    ways = {
        "_before": before,
        "_log_size": _log_size_rate("leader_log"),
        "_end_offset": _by_offsets("leader_log", "topic_counters"),
    }
    rates = {"write_bytes_per_s": _RATE, "method": _METHOD, "window_ms": _WINDOW_MS}
    return with_columns(with_columns(own, {"first_reading": _FIRST_READING, **ways}), rates, without=list(ways))
