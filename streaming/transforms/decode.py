"""Kafka records to messages: known by their key, parsed by kind, the malformed told apart with the reason.

A record is parsed once, for the one table that it goes to. What it is stands in its key (cluster, tick, kind, seq, how
many rows), so that duplicates are found, and kinds are told apart, without a look at the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from schemas.bounds import BOUNDS, MOST_IN_ARRAY, TICK_OFF_S
from schemas.tick_messages import (
    ALERT_KINDS,
    COLUMNAR,
    ENVELOPE,
    KINDS,
    REQUIRED,
    ROWS,
    TICK_END,
    VERSION,
    array_columns,
    column_types,
    message_ddl,
    samples,
    scalar_columns,
)

MESSAGE_KEYS = ["cluster", "tick_ms", "kind", "seq"]

# The alert kinds in one schema, so that one pass over a batch reads them all: a field that a kind has not is null.
_LANE_DDL = f"{ENVELOPE}, rows ARRAY<STRUCT<{ROWS['brokers']}, {ROWS['moves']}>>, {TICK_END}"
_LANE_COLUMNS = [
    *(f"m.{name}" for name in (*MESSAGE_KEYS, "rows", "first_offset", "lane_messages", "rate_window_ms")),
    *("m.messages AS sent_messages", "m.ranges"),
    *("m.skipped_ticks", "m.ended_ms - m.started_ms AS collect_ms", "cardinality(m.unanswered) AS unanswered_brokers"),
]
NOT_A_MESSAGE = "the value is not a JSON object of a tick message"
_KEY, _VALUE = "CAST(key AS STRING)", "CAST(value AS STRING)"
_HEAD_DDL = f"{ENVELOPE}, _bad STRING"
_OUT_OF_RANGE = "a number is none that a broker can mean"
_TOO_LONG = f"an array has more than {MOST_IN_ARRAY} values"
# The beginning of a tick that came before a batch is read again; one has some hundred messages in the lane, and some
# of other clusters may stand between them.
_MOST_OF_LANE = 10_000
# And in each other partition, those of other collectors that lie between included: all of it is read at once.
_MOST_OF_HISTORY = 1_000_000
# Of each type that a required column has, a value that one does not have, or hardly ever.
_SELDOM = {"STRING": "''", "INT": "-1", "BIGINT": "-1L", "ARRAY<INT>": "array(-1)"}


def lane_messages(records: DataFrame) -> DataFrame:
    """Return the valid alert-lane messages, one row per message, each message once.

    Args:
        records: Kafka records (key, value, topic, partition, offset, timestamp).

    Returns:
        The envelope's names, ``rows`` (of brokers or of moves; null for tick_end), ``record_offset`` and ``record_ms``
        (place and time of its record); of tick_end ``first_offset``, ``lane_messages``, ``rate_window_ms``,
        ``sent_messages``, ``ranges``, ``skipped_ticks``, ``collect_ms`` (how long it took to collect the tick) and
        ``unanswered_brokers`` (how many did not tell all), null where they are not told.
    """
    kinds = ", ".join(f"'{kind}'" for kind in ALERT_KINDS)
    parsed = records.selectExpr(
        "offset AS record_offset", "unix_millis(timestamp) AS record_ms", f"from_json({_VALUE}, '{_LANE_DDL}') AS m"
    )
    valid = parsed.where(
        f"""m.version = {VERSION} AND m.kind IN ({kinds})
        AND m.cluster IS NOT NULL AND m.tick_ms IS NOT NULL AND m.seq IS NOT NULL
        AND (m.rows IS NOT NULL OR m.lane_messages IS NOT NULL)
        -- A row that lacks what its verdict needs would pass for an idle one: its tick is not whole without it.
        AND NOT coalesce(CASE {_lane_lacks("brokers")} {_lane_lacks("moves")}
            WHEN m.kind = 'tick_end' THEN {_bad_end("m", "record_offset")} END, false)"""
    )
    return valid.selectExpr(*_LANE_COLUMNS, "record_offset", "record_ms").dropDuplicates(MESSAGE_KEYS)


def _lane_lacks(kind: str) -> str:
    bad = _any((_long_row(kind), _bad_row(kind)))
    return f"WHEN m.kind = '{kind}' THEN exists(m.rows, {_lacks(kind)}) OR exists(m.rows, r -> {bad})"


def _bad_end(end: str, offset: str) -> str:
    """Return the condition that a tick_end has a number that it cannot have, or begins where it cannot."""
    begins = f"{end}.first_offset NOT BETWEEN {offset} - {_MOST_OF_LANE} AND {offset} - {end}.lane_messages"
    length = f"r.end_offset - r.first_offset NOT BETWEEN 0 AND {_MOST_OF_HISTORY}"
    bad_range = _any((_outside("r", ("first_offset", "end_offset")), "r.partition < 0", length))
    ranges = f"exists({end}.ranges, r -> {bad_range})"
    return _any((_outside(end, scalar_columns("tick_end")), ranges, begins))


def _bad_row(kind: str) -> str:
    """Return the condition that row ``r`` of a kind has a number that no broker can mean."""
    bad = [_outside("r", scalar_columns(kind))]
    for name, (is_array, columns) in samples(kind).items():
        bad.append(f"exists(r.{name}, x -> {_outside('x', columns)})" if is_array else _outside(f"r.{name}", columns))
    return _any(bad)


def _long_row(kind: str) -> str:
    """Return the condition that row ``r`` of a kind has an array that is longer than a partition can mean."""
    return _any(f"size(r.{name}) > {MOST_IN_ARRAY}" for name in array_columns(kind))


def _outside(struct: str, columns: Iterable[str]) -> str:
    """Return the condition that one of these columns of a struct is out of bounds; null is not."""
    bounds = {f"{struct}.{column}": BOUNDS[column] for column in columns if column in BOUNDS}
    return _any(f"{name} NOT BETWEEN {least} AND {most}" for name, (least, most) in bounds.items())


def _any(conditions: Iterable[str]) -> str:
    """Return the condition that one of these is true; what is null, or of none, is not."""
    joined = " OR ".join(conditions)
    return f"coalesce({joined}, false)" if joined else "false"


def _lacks(kind: str) -> str:
    return f"r -> r IS NULL OR {' OR '.join(f'r.{column} IS NULL' for column in REQUIRED[kind])}"


def with_headers(records: DataFrame, clusters: Collection[str] = ()) -> DataFrame:
    """Return the records with what they say they are, and why a record must be rejected for that alone.

    Args:
        records: Kafka records.
        clusters: names of the clusters whose ticks are believed; none: of all.

    Returns:
        The records with ``head`` (the envelope: from the key or, where the key is just the kind, from the value), its
        ``kind`` once more, by which records that are kept in memory are found, and ``reason`` (null: nothing is wrong
        so far).
    """
    # from_json makes nulls of what it cannot read, so that each rule looks at what a valid head must have.
    head = f"""CASE WHEN {_KEY} LIKE '{{%' THEN from_json({_KEY}, '{_HEAD_DDL}')
        ELSE from_json({_VALUE}, '{_HEAD_DDL}', map('columnNameOfCorruptRecord', '_bad')) END"""
    kinds = ", ".join(f"'{kind}'" for kind in KINDS)
    reason = f"""CASE
        WHEN value IS NULL THEN 'the record has no value'
        WHEN head IS NULL OR head._bad IS NOT NULL THEN '{NOT_A_MESSAGE}'
        WHEN head.version IS NULL THEN 'version is missing'
        WHEN head.version != {VERSION}
            THEN concat('version ', head.version, ' is unknown; this Headroom reads {VERSION}')
        WHEN head.kind IS NULL THEN 'kind is missing'
        WHEN head.kind NOT IN ({kinds}) THEN concat('kind ', head.kind, ' is unknown')
        WHEN key IS NULL OR NOT ({_KEY} LIKE '{{%' OR {_KEY} = head.kind)
            THEN 'the key does not name the kind of the message'
        WHEN head.cluster IS NULL OR head.cluster = '' THEN 'cluster is missing'
        {_unknown_cluster(clusters)}
        WHEN head.tick_ms IS NULL OR head.tick_ms <= 0 THEN 'tick_ms is missing or not positive'
        WHEN head.tick_ms NOT BETWEEN unix_millis(timestamp) - {TICK_OFF_S * 1000}
                AND unix_millis(timestamp) + {TICK_OFF_S * 1000}
            THEN 'tick_ms is more than {TICK_OFF_S} s off the time of its record'
        WHEN head.seq IS NULL THEN 'seq is missing'
        END"""
    known = records.withColumn("head", F.expr(head)).withColumn("kind", F.col("head.kind"))
    return known.withColumn("reason", F.expr(reason))


def _unknown_cluster(clusters: Collection[str]) -> str:
    if not clusters:
        return ""
    names = ", ".join(map(_literal, sorted(clusters)))
    return f"WHEN head.cluster NOT IN ({names}) THEN 'no configuration names this cluster'"


def _literal(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace("'", "\\'")
    return f"'{escaped}'"


def with_message(records: DataFrame, kind: str) -> DataFrame:
    """Return the records of a kind with ``message`` and ``rows``, and in ``reason`` why each must be rejected.

    Args:
        records: of ``with_headers``, none of them rejected.
        kind: kind of message.

    Returns:
        The records with ``message`` (the columns of the message), ``rows`` (an array of structs; null for tick_end)
        and ``reason`` (null: nothing is wrong).
    """
    parsed = records.where(F.col("kind") == kind).withColumn("message", F.expr(_parse(kind)))
    if kind in COLUMNAR:
        parsed = parsed.withColumn("columns", F.expr(columns_of_message(kind)))
    rows = parsed.withColumn("rows", F.expr(rows_of_message(kind))).drop("columns")
    return rows.withColumn("reason", F.expr(f"CASE {_value_reasons(kind)} END"))


def message_rows(records: DataFrame, kind: str) -> DataFrame:
    """Return the rows of the messages of a kind, with ``cluster`` and ``tick_ms``.

    Args:
        records: of ``with_headers``, none of them rejected.
        kind: kind of message.

    Returns:
        The columns of ``schemas.tick_messages.ROWS``; a message that must be rejected gives one row of nulls.
    """
    # Not a filter on the reason: the optimizer would parse the message once for it and once more for the rows.
    return with_message(records, kind).selectExpr(
        "head.cluster AS cluster", "head.tick_ms AS tick_ms", "inline_outer(CASE WHEN reason IS NULL THEN rows END)"
    )


def _parse(kind: str) -> str:
    return f"from_json({_VALUE}, '{message_ddl(kind)}')"


def columns_of_message(kind: str) -> str:
    """Return ``columns`` of a parsed ``message`` as a struct; one that was left out is null in every row."""
    columns = []
    for name, of in column_types(kind).items():
        null = f"array_repeat(CAST(NULL AS {of}), size(message.columns.{REQUIRED[kind][0]}))"
        columns.append(f"'{name}', coalesce(message.columns.{name}, {null})")
    return f"named_struct({', '.join(columns)})"


def rows_of_message(kind: str) -> str:
    """Return the rows of a parsed ``message``, an array of structs, made from ``columns`` where it is columnar."""
    if kind == "tick_end":
        return "CAST(NULL AS ARRAY<STRUCT<x INT>>)"
    if kind not in COLUMNAR:
        return "message.rows"
    # The fields get the names of the struct's: to give them names by a cast would make every row once more.
    return f"arrays_zip({', '.join(f'columns.{name}' for name in column_types(kind))})"


def _value_reasons(kind: str) -> str:
    same = " AND ".join(f"message.{name} <=> head.{name}" for name in MESSAGE_KEYS)
    rules = [
        ("message IS NULL OR message.version IS NULL", NOT_A_MESSAGE),
        (f"NOT ({same})", "the key and the value name different messages"),
    ]
    if kind == "tick_end":
        where = "message.lane_messages IS NULL OR message.first_offset IS NULL"
        rules.append((where, "tick_end does not say where its tick begins"))
        rules.append((_bad_end("message", "offset"), _OUT_OF_RANGE))
    else:
        rules.append(
            ("message.columns IS NULL" if kind in COLUMNAR else "rows IS NULL", "rows are missing or cut short")
        )
        lacks = f"a row lacks {', '.join(REQUIRED[kind])}, or has it in another type"
        rules.append((_columns_lack(kind) if kind in COLUMNAR else f"exists(rows, {_lacks(kind)})", lacks))
        if kind in COLUMNAR:
            rules.append((_columns_differ(kind), "the columns differ in length"))
        rules.append(("head.row_count != size(rows)", "row_count is not the number of rows"))
        if array_columns(kind):
            long = _columns_long(kind) if kind in COLUMNAR else f"exists(rows, r -> {_long_row(kind)})"
            rules.append((long, _TOO_LONG))
        rules.append(
            (_columns_outside(kind) if kind in COLUMNAR else f"exists(rows, r -> {_bad_row(kind)})", _OUT_OF_RANGE)
        )
    return "\n".join(f"WHEN {rule} THEN '{reason}'" for rule, reason in rules)


def _columns_lack(kind: str) -> str:
    types = column_types(kind)
    columns = {f"message.columns.{name}": _SELDOM[types[name]] for name in REQUIRED[kind]}
    missing = " OR ".join(f"{column} IS NULL" for column in columns)
    # To call a function for every value takes as long as to parse them all; array_contains does not, and gives null,
    # not false, where it finds but a null.
    lacking = " OR ".join(
        f"(coalesce(array_contains({column}, {seldom}), true) AND exists({column}, x -> x IS NULL))"
        for column, seldom in columns.items()
    )
    return f"{missing} OR {lacking}"


def _columns_differ(kind: str) -> str:
    first = f"size(message.columns.{REQUIRED[kind][0]})"
    return " OR ".join(f"size(message.columns.{name}) != {first}" for name in column_types(kind))


def _columns_outside(kind: str) -> str:
    """Return the condition that a number of a columnar message is out of bounds, without a look at each by itself."""
    bounded = {f"message.columns.{name}": BOUNDS[name] for name in column_types(kind) if name in BOUNDS}
    return _any(f"array_min({name}) < {least} OR array_max({name}) > {most}" for name, (least, most) in bounded.items())


def _columns_long(kind: str) -> str:
    """Return the condition that an array in a column of a columnar message is too long."""
    return _any(f"exists(message.columns.{name}, x -> size(x) > {MOST_IN_ARRAY})" for name in array_columns(kind))
