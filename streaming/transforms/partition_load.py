"""Load of every partition by hour, from the readings of one tick in every 5 minutes.

The first tick of each 5 minutes is an *edge*. The growth of the leader's log end offset from one edge to the next,
times the mean size of the topic's messages, is a write rate (``streaming.transforms.moves.write_rate``, method 2). It
belongs to the partition, whoever led. While a partition is in a reassignment or a throttled replica list, the mean of
its rates in ``gold/partition_write_rate`` takes precedence, because these come from bytes.

Reads and requests are counted per topic and broker, at the intervals of ``collect.load_interval_s``. Their growth over
the hour, summed over brokers and divided evenly among the topic's partitions, are the rates of a partition.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.transforms.gold import as_table
from headroom.streaming.transforms.moves.write_rate import end_offset_rate
from headroom.streaming.transforms.silver import (
    BYTES_IN,
    BYTES_OUT,
    FETCH_REQUESTS,
    MESSAGES_IN,
    PRODUCE_REQUESTS,
    of_meter,
)
from headroom.streaming.transforms.steps import aggregate_by, literal, named_expressions, with_columns
from headroom.streaming.transforms.tick_status import TICK

HOUR_MS, BUCKET_MS = 3_600_000, 300_000
# Edges that follow each other are 5 minutes apart, more or less a few ticks. One missing reading is bridged. After a
# longer gap it is unknown when the records were written, and a few seconds are no mean of 5 minutes.
_LEAST_MS, _MOST_MS = BUCKET_MS // 2, BUCKET_MS * 5 // 2
_PARTITION = ("topic", "partition")
# Sizes are read every 5 minutes by default; the last ones of an hour are in its last quarter.
_SIZES_MS = HOUR_MS // 4

_BUCKET_MS = f"tick_ms - tick_ms % {BUCKET_MS}"
# A tick in the ledger of messages.
_TICK = {
    "bucket_ms": f"min({_BUCKET_MS})",
    # Messages, without duplicates.
    "messages": "count(DISTINCT seq)",
    "ended": "bool_or(kind = 'tick_end')",
}
# 5 minutes of a cluster.
_BUCKET = {
    "messages": "sum(messages)",
    # The first tick that has ended, and its number of messages; null if there is none.
    "edge_ms": "min(CASE WHEN ended THEN tick_ms END)",
    "edge_messages": "min_by(messages, CASE WHEN ended THEN tick_ms END)",
}
# Counters of a topic on a broker at an edge, and the rates over the rate window before it.
_COUNTERS = {
    "bytes_in": of_meter(BYTES_IN, "count_total"),
    "messages_in": of_meter(MESSAGES_IN, "count_total"),
    "bytes_in_per_s": of_meter(BYTES_IN, "bytes_per_s"),
    "messages_in_per_s": of_meter(MESSAGES_IN, "bytes_per_s"),
}
# A reading of a leader's log at an edge; in the order of time, because the tick comes first.
_READING = f"struct(tick_ms, broker, log_end_offset, size_bytes, {', '.join(_COUNTERS)})"
# Counters of a topic on a broker that are read apart from the ticks.
_READ_APART = {
    "read": BYTES_OUT,
    "produced": PRODUCE_REQUESTS,
    "fetched": FETCH_REQUESTS,
}
# Growth of each in one reading, and the milliseconds that it took; null where the counter fell.
_GROWTH = {name: of_meter(meter, "bytes_per_s * window_ms / 1000") for name, meter in _READ_APART.items()} | {
    f"{name}_ms": of_meter(meter, "CASE WHEN bytes_per_s IS NOT NULL THEN window_ms END")
    for name, meter in _READ_APART.items()
}
# Rates in gold of a partition in 5 minutes.
_WATCHED = {
    "rate": "avg(write_bytes_per_s)",
    "span_ms": "max(tick_ms) - min(tick_ms)",
}
# Mean size of messages in the rate window before an edge, as counters that grew from 0.
_WINDOW = """named_struct('bytes_in', {0}.bytes_in_per_s, 'prev_bytes_in', 0D,
    'messages_in', {0}.messages_in_per_s, 'prev_messages_in', 0D)"""
# From reading x to reading y: times and log ends, and the counters from which the mean size of messages follows. Those
# of two brokers, after a leader switch, cannot be compared.
_INTERVAL = f"""named_struct('prev_read_ms', x.tick_ms, 'read_ms', y.tick_ms,
    'prev_log_end_offset', x.log_end_offset, 'log_end_offset', y.log_end_offset,
    'counters', CASE WHEN x.broker = y.broker THEN named_struct('bytes_in', y.bytes_in, 'prev_bytes_in', x.bytes_in,
        'messages_in', y.messages_in, 'prev_messages_in', x.messages_in) END,
    'window', {_WINDOW.format("y")}, 'prev_window', {_WINDOW.format("x")})"""
_INTERVALS = f"""filter(
    zip_with(slice(readings, 1, size(readings) - 1), slice(readings, 2, size(readings) - 1), (x, y) -> {_INTERVAL}),
    i -> i.read_ms - i.prev_read_ms BETWEEN {_LEAST_MS} AND {_MOST_MS})"""
_WATCHED_AT = f"element_at(watched, i.prev_read_ms - i.prev_read_ms % {BUCKET_MS})"
# Rates in gold count where they cover half of the interval.
_WATCHED_RATE = f"CASE WHEN {_WATCHED_AT}.span_ms * 2 >= i.read_ms - i.prev_read_ms THEN {_WATCHED_AT}.rate END"
_RATES = f"""filter(
    transform(intervals, i -> named_struct('s', (i.read_ms - i.prev_read_ms) / 1000D, 'rate', coalesce({_WATCHED_RATE},
        {end_offset_rate("i", "i.counters")}, {end_offset_rate("i", "i.window")},
        {end_offset_rate("i", "i.prev_window")}))),
    i -> i.rate IS NOT NULL)"""
# The place of the 95th percentile among the sorted rates, from 0.
_PLACE = "0.95D * (size(sorted) - 1)"
_P95 = f"""get(sorted, CAST(floor({_PLACE}) AS INT)) + ({_PLACE} - floor({_PLACE}))
    * (get(sorted, CAST(ceil({_PLACE}) AS INT)) - get(sorted, CAST(floor({_PLACE}) AS INT)))"""
# Seconds for which the counters of topics were seen; null if none was.
_SEEN = {f"{name}_s": f"max({name}_ms) / 1000" for name in _READ_APART}
_LOAD = {
    "mean_write_bytes_per_s": "CASE WHEN seconds > 0 THEN aggregate(rates, 0D, (sum, i) -> sum + i.rate * i.s) "
    "/ seconds END",
    "p95_write_bytes_per_s": _P95,
    "peak_write_bytes_per_s": "array_max(sorted)",
    "size_bytes": "coalesce(aggregate(readings, CAST(NULL AS BIGINT), (last, r) -> coalesce(r.size_bytes, last)), "
    "described_bytes)",
    # The last interval of an hour may end some seconds after the hour.
    "observed_ratio": f"least(seconds * 1000 / {HOUR_MS}, 1D)",
    # A topic that nobody used has no counter; but if no topic has one, none was read.
    "mean_read_bytes_per_s": "coalesce(read, 0D) / read_s / topic_partitions",
    "mean_requests_per_s": "(coalesce(produced, 0D) / produced_s + coalesce(fetched, 0D) / fetched_s) "
    "/ topic_partitions",
}


@dataclass(frozen=True)
class LoadHour:
    """One hour of a cluster, as far as silver has it.

    Attributes:
        cluster: name of the cluster.
        hour_ms: start of the hour, epoch milliseconds.
        edges_ms: ticks whose readings are used, epoch milliseconds, in order.
        messages: number of messages that silver has of the hour, and of the edge that closes it.
        closed: whether there is such an edge, in the first 5 minutes of the next hour.
    """

    cluster: str
    hour_ms: int
    edges_ms: tuple[int, ...]
    messages: int
    closed: bool


@dataclass(frozen=True)
class LoadInputs:
    """Tables that the load is computed from.

    Attributes:
        logs: ``silver/log_end_offsets``.
        meters: ``silver/bytes_per_sec``.
        write_rates: ``gold/partition_write_rate``.
        sizes: ``silver/replica_sizes``.
    """

    logs: DataFrame
    meters: DataFrame
    write_rates: DataFrame
    sizes: DataFrame


def buckets(messages: DataFrame) -> DataFrame:
    """Return the 5 minutes that have ticks.

    Args:
        messages: rows of ``silver/messages``.

    Returns:
        One row per cluster and 5 minutes: ``cluster``, ``bucket_ms`` (their start, epoch milliseconds), ``messages``,
        and of the first tick that has ended ``edge_ms`` and ``edge_messages`` (null if none has).
    """
    return aggregate_by(aggregate_by(messages, TICK, _TICK), ("cluster", "bucket_ms"), _BUCKET)


def partition_load(
    inputs: LoadInputs, hour: LoadHour, cache: Callable[[DataFrame], DataFrame] = lambda frame: frame
) -> DataFrame:
    """Return the rows of ``gold/partition_load`` for one hour of a cluster.

    Args:
        inputs: tables.
        hour: the hour.
        cache: keeps the rows of a frame that is used twice, and returns it.

    Returns:
        One row per partition whose leader's log was read at an edge. Without two such readings its rates are null.
    """
    watched = _watched_rates(_in_hour(inputs.write_rates, hour))
    readings = _readings(_at_edges(inputs.logs, hour), _at_edges(inputs.meters, hour))
    # In steps, so that each array is made once.
    intervals = with_columns(readings.join(watched, list(_PARTITION), "left"), {"intervals": _INTERVALS})
    rates = with_columns(intervals, {"rates": _RATES}, ["intervals", "watched"])
    sums = {
        "sorted": "array_sort(rates.rate)",
        "seconds": "aggregate(rates.s, 0D, (sum, s) -> sum + s)",
        "broker": "element_at(readings, -1).broker",
        "topic_partitions": "count(*) OVER (PARTITION BY topic)",
    }
    constants = {
        "cluster": literal(hour.cluster),
        "hour_ms": f"{hour.hour_ms}L",
        "hour_messages": f"{hour.messages}L",
    }
    growth = cache(_growth(_in_hour(inputs.meters, hour)))
    every = (
        with_columns(rates, sums)
        .join(_described_sizes(inputs.sizes, hour), [*_PARTITION, "broker"], "left")
        .join(aggregate_by(growth, ("topic",), {name: f"sum({name})" for name in _READ_APART}), "topic", "left")
        # The time for which the broker that was seen longest was seen. One row.
        .crossJoin(F.broadcast(growth.agg(*map(F.expr, named_expressions(_SEEN)))))
    )
    rows = every.selectExpr(*_PARTITION, *named_expressions(constants | _LOAD))
    return as_table(rows, PARTITION_LOAD, time="hour_ms")


def _in_hour(table: DataFrame, hour: LoadHour) -> DataFrame:
    """Return the rows of ticks from the first edge up to, not including, the last one."""
    first_ms, last_ms = hour.edges_ms[0], hour.edges_ms[-1]
    days = f"date BETWEEN to_date(timestamp_millis({first_ms})) AND to_date(timestamp_millis({last_ms}))"
    ticks = f"cluster = {literal(hour.cluster)} AND tick_ms >= {first_ms} AND tick_ms < {last_ms}"
    return table.where(f"{days} AND {ticks}")


def _at_edges(table: DataFrame, hour: LoadHour) -> DataFrame:
    """Return the rows of the ticks at the edges; other files and pages of the table are not read."""
    days = ", ".join(f"to_date(timestamp_millis({edge}))" for edge in (hour.edges_ms[0], hour.edges_ms[-1]))
    edges = ", ".join(map(str, hour.edges_ms))
    return table.where(f"date IN ({days}) AND cluster = {literal(hour.cluster)} AND tick_ms IN ({edges})")


def _readings(logs: DataFrame, meters: DataFrame) -> DataFrame:
    """Return one row per partition with ``readings`` of its leader's log, in the order of time, without duplicates."""
    at = ("tick_ms", "broker", "topic")
    of_topics = meters.where(f"topic IS NOT NULL AND meter IN ('{BYTES_IN}', '{MESSAGES_IN}')")
    read = logs.where("is_leader").join(aggregate_by(of_topics, at, _COUNTERS), list(at), "left")
    return aggregate_by(read, _PARTITION, {"readings": f"array_sort(collect_set({_READING}))"})


def _growth(meters: DataFrame) -> DataFrame:
    """Return one row per topic and broker with the growth of its counters, and the milliseconds for which it was seen.

    Args:
        meters: rows of ``silver/bytes_per_sec`` in the hour.
    """
    names = ", ".join(f"'{meter}'" for meter in _READ_APART.values())
    own = meters.where(f"topic IS NOT NULL AND meter IN ({names})")
    # One reading at a time, so that one that was delivered twice counts once.
    of_readings = aggregate_by(own, ("tick_ms", "broker", "topic"), _GROWTH)
    return aggregate_by(of_readings, ("broker", "topic"), {name: f"sum({name})" for name in _GROWTH})


def _described_sizes(sizes: DataFrame, hour: LoadHour) -> DataFrame:
    """Return the last size of each replica in the last quarter of the hour: ``described_bytes``."""
    last = _in_hour(sizes, hour).where(f"NOT is_future AND tick_ms >= {hour.edges_ms[-1] - _SIZES_MS}")
    return aggregate_by(last, (*_PARTITION, "broker"), {"described_bytes": "max_by(size_bytes, tick_ms)"})


def _watched_rates(write_rates: DataFrame) -> DataFrame:
    """Return one row per partition with rates: ``watched``, from each 5 minutes to the mean and the span of its rates.

    Args:
        write_rates: rows of ``gold/partition_write_rate``.
    """
    known = with_columns(write_rates.where("write_bytes_per_s IS NOT NULL"), {"bucket_ms": _BUCKET_MS})
    by_bucket = aggregate_by(known, (*_PARTITION, "bucket_ms"), _WATCHED)
    entries = f"collect_list(struct(bucket_ms, struct({', '.join(_WATCHED)})))"
    return aggregate_by(by_bucket, _PARTITION, {"watched": f"map_from_entries({entries})"})
