"""Kafka records to messages: identified by their key, parsed by kind, rejected with a reason if they are malformed.

A record is parsed once, for the one table that it goes to. Its key has the envelope (cluster, tick, kind, seq, number
of rows), so that duplicates and kinds are found without reading the value.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from typing import NamedTuple

from pyspark.sql import DataFrame
from pyspark.sql import functions as F

from headroom.schemas.bounds import BOUNDS, MOST_IN_ARRAY, TICK_OFF_S
from headroom.schemas.tick_messages import (
    ALERT_KINDS,
    COLUMNAR,
    ENVELOPE,
    KINDS,
    REQUIRED,
    ROWS,
    TICK_END,
    VERSION,
    array_columns,
    broker_lists,
    column_types,
    message_ddl,
    samples,
    scalar_columns,
)
from headroom.streaming.transforms.steps import literal

_PARSED = ("brokers", "moves")
# Kind whose messages are passed on as they are: its rules are in Python, and its columns would widen every row here.
MIGRATIONS = "migrations"
# Kinds with rows in the alert partition.
ROW_KINDS = (*_PARSED, MIGRATIONS)
MESSAGE_KEYS = ["cluster", "tick_ms", "kind", "seq"]

# The alert kinds in one schema, so that one pass over a batch reads them all. Fields of other kinds are null.
_ALERT_DDL = f"{ENVELOPE}, rows ARRAY<STRUCT<{ROWS['brokers']}, {ROWS['moves']}>>, {TICK_END}"
_ALERT_COLUMNS = [
    *(f"m.{name}" for name in (*MESSAGE_KEYS, "rows", "first_offset", "lane_messages", "rate_window_ms")),
    *("m.messages AS sent_messages", "m.ranges"),
    "CASE WHEN m.kind = 'migrations' AND is_wanted THEN value END AS payload",
    *("m.skipped_ticks", "m.ended_ms - m.started_ms AS collect_ms", "cardinality(m.unanswered) AS unanswered_brokers"),
]
NOT_A_MESSAGE = "the value is not a JSON object of a tick message"
_KEY, _VALUE = "CAST(key AS STRING)", "CAST(value AS STRING)"
# Otherwise the key is only the kind, and the envelope is in the value.
_IS_ENVELOPE = f"{_KEY} LIKE '{{%'"
# Kind in such a key; null if the key is only the kind.
_KEY_KIND = f"CASE WHEN {_IS_ENVELOPE} THEN get_json_object({_KEY}, '$.kind') END"
_HEADER_DDL = f"{ENVELOPE}, _bad STRING"
_OUT_OF_RANGE = "a number is none that a broker can mean"
_ROWS_MISSING = "rows are missing or cut short"
_WRONG_COUNT = "row_count is not the number of rows"
_TOO_LONG = f"an array has more than {MOST_IN_ARRAY} values"
_NO_BROKER = "a list of brokers has one that is missing or negative"
# The start of a tick that came before a batch is read again. A tick has some hundred messages in the alert partition,
# and messages of other clusters may lie between them.
_MOST_ALERT_OFFSETS = 10_000
# The same in each other partition, including messages of other collectors: all of it is read at once.
_MOST_HISTORY_OFFSETS = 1_000_000
# For each type of a required column, a value that hardly ever occurs in it.
_RARE = {"STRING": "''", "INT": "-1", "BIGINT": "-1L", "ARRAY<INT>": "array(-1)"}


class ValidationRule(NamedTuple):
    """Reason to reject a message.

    Attributes:
        condition: SQL condition of the messages that it rejects; null counts as false.
        reason: SQL expression of the text, such as a literal in quotes.
    """

    condition: str
    reason: str


def first_reason(rules: Iterable[ValidationRule]) -> str:
    """Return the expression of the reason of the first rule that rejects a message; null if none does.

    For example, of two rules::

        CASE WHEN value IS NULL THEN 'the record has no value'
        WHEN header.seq IS NULL THEN 'seq is missing' END
    """
    cases = "\n".join(f"WHEN {rule.condition} THEN {rule.reason}" for rule in rules)
    return f"CASE {cases} END"


def alert_messages(records: DataFrame, row_kinds: Collection[str] = ROW_KINDS) -> DataFrame:
    """Return the valid messages of the alert partition, one row per message, without duplicates.

    Args:
        records: Kafka records (key, value, topic, partition, offset, timestamp).
        row_kinds: kinds whose rows are needed. Of others only the keys are read, and ``rows`` is null.

    Returns:
        The columns of ``MESSAGE_KEYS``, ``rows`` (of brokers or of moves; null for tick_end), ``record_offset`` and
        ``record_ms`` (time of the record, epoch milliseconds). Of migrations, null for others: ``payload`` (the message
        as text). Of tick_end, null for others: ``first_offset``, ``lane_messages``, ``rate_window_ms``,
        ``sent_messages``, ``ranges``, ``skipped_ticks``, ``collect_ms`` (time that the collector took for the tick) and
        ``unanswered_brokers`` (number of brokers that did not report everything).
    """
    kinds = ", ".join(map(literal, ALERT_KINDS))
    unparsed = [literal(kind) for kind in _PARSED if kind not in row_kinds]
    is_unparsed = f"coalesce({_KEY_KIND} IN ({', '.join([*unparsed, literal(MIGRATIONS)])}), false)"
    parsed = records.selectExpr(
        "offset AS record_offset",
        "unix_millis(timestamp) AS record_ms",
        f"from_json(CASE WHEN {is_unparsed} THEN {_KEY} ELSE {_VALUE} END, '{_ALERT_DDL}') AS m",
        f"{is_unparsed} AS is_unparsed",
        f"{'true' if MIGRATIONS in row_kinds else 'false'} AS is_wanted",
        f"{_VALUE} AS value",
    )
    valid = parsed.where(
        f"""m.version = {VERSION} AND m.kind IN ({kinds})
        AND m.cluster IS NOT NULL AND m.tick_ms IS NOT NULL AND m.seq IS NOT NULL
        AND (m.rows IS NOT NULL OR m.lane_messages IS NOT NULL OR is_unparsed)
        -- A row without a value that its verdict needs would look idle. Without its message the tick is incomplete.
        AND NOT coalesce(CASE {_bad_alert_rows("brokers")} {_bad_alert_rows("moves")}
            WHEN m.kind = 'tick_end' THEN {_bad_end("m", "record_offset")} END, false)"""
    )
    return valid.selectExpr(*_ALERT_COLUMNS, "record_offset", "record_ms").dropDuplicates(MESSAGE_KEYS)


def _bad_alert_rows(kind: str) -> str:
    """Return the branch of a CASE that finds bad rows in alert messages of a kind."""
    bad = _any((_long_row(kind), _bad_lists(kind), _bad_row(kind)))
    return f"WHEN m.kind = '{kind}' THEN exists(m.rows, {_is_incomplete(kind)}) OR exists(m.rows, r -> {bad})"


def _bad_end(end: str, offset: str) -> str:
    """Return the condition that a tick_end has an impossible number or offset.

    Args:
        end: name of the struct.
        offset: expression for the offset of its record.
    """
    begins = f"{end}.first_offset NOT BETWEEN {offset} - {_MOST_ALERT_OFFSETS} AND {offset} - {end}.lane_messages"
    length = f"r.end_offset - r.first_offset NOT BETWEEN 0 AND {_MOST_HISTORY_OFFSETS}"
    bad_range = _any((_outside("r", ("first_offset", "end_offset")), "r.partition < 0", length))
    ranges = f"exists({end}.ranges, r -> {bad_range})"
    return _any((_outside(end, scalar_columns("tick_end")), ranges, begins))


def _bad_row(kind: str) -> str:
    """Return the condition that row ``r`` of a kind has a number out of bounds (``schemas.bounds``)."""
    bad = [_outside("r", scalar_columns(kind))]
    for name, (is_array, columns) in samples(kind).items():
        bad.append(f"exists(r.{name}, x -> {_outside('x', columns)})" if is_array else _outside(f"r.{name}", columns))
    return _any(bad)


def _long_row(kind: str) -> str:
    """Return the condition that row ``r`` of a kind has an array that is too long for a partition."""
    return _any(f"size(r.{name}) > {MOST_IN_ARRAY}" for name in array_columns(kind))


def _bad_lists(kind: str) -> str:
    """Return the condition that row ``r`` of a kind has a list of brokers with one that cannot be."""
    return _any(_lacks_broker(f"r.{name}") for name in broker_lists(kind))


def _lacks_broker(brokers: str) -> str:
    """Return the condition that a list of brokers has a null or -1; without a lambda, which would take longer."""
    # Null if the list has a null and no -1, or is null itself.
    return f"coalesce(array_contains({brokers}, -1), {brokers} IS NOT NULL)"


def _outside(struct: str, columns: Iterable[str]) -> str:
    """Return the condition that one of these columns of a struct is out of bounds; null is not."""
    bounds = {f"{struct}.{column}": BOUNDS[column] for column in columns if column in BOUNDS}
    return _any(f"{name} NOT BETWEEN {least} AND {most}" for name, (least, most) in bounds.items())


def _any(conditions: Iterable[str]) -> str:
    """Return the condition that one of these is true; null, and no condition at all, count as false."""
    joined = " OR ".join(conditions)
    return f"coalesce({joined}, false)" if joined else "false"


def _is_incomplete(kind: str) -> str:
    """Return a lambda that is true for a row of a kind without a required value."""
    return f"r -> r IS NULL OR {' OR '.join(f'r.{column} IS NULL' for column in REQUIRED[kind])}"


def with_headers(records: DataFrame, clusters: Collection[str] = ()) -> DataFrame:
    """Return the records with their headers, and the reason to reject those whose header is invalid.

    Args:
        records: Kafka records.
        clusters: names of the clusters whose ticks are trusted. Empty: all are.

    Returns:
        The records with ``header`` (the envelope: from the key or, if the key is only the kind, from the value),
        ``kind`` (of the header; cached records are filtered by it) and ``reason`` (null if the header is valid).
    """
    # from_json returns nulls for unreadable parts, so each rule checks one field that a valid header must have.
    header = f"""CASE WHEN {_IS_ENVELOPE} THEN from_json({_KEY}, '{_HEADER_DDL}')
        ELSE from_json({_VALUE}, '{_HEADER_DDL}', map('columnNameOfCorruptRecord', '_bad')) END"""
    identified = records.withColumn("header", F.expr(header)).withColumn("kind", F.col("header.kind"))
    return identified.withColumn("reason", F.expr(first_reason(_header_rules(clusters))))


def _header_rules(clusters: Collection[str]) -> list[ValidationRule]:
    """Return the rules for the header of a record, in the order of their precedence."""
    kinds = ", ".join(map(literal, KINDS))
    names = ", ".join(map(literal, sorted(clusters)))
    unknown_cluster = _rule(f"header.cluster NOT IN ({names})", "no configuration names this cluster")
    off_ms = TICK_OFF_S * 1000
    return [
        _rule("value IS NULL", "the record has no value"),
        _rule("header IS NULL OR header._bad IS NOT NULL", NOT_A_MESSAGE),
        _rule("header.version IS NULL", "version is missing"),
        ValidationRule(
            f"header.version != {VERSION}",
            f"concat('version ', header.version, ' is unknown; this Headroom reads {VERSION}')",
        ),
        _rule("header.kind IS NULL", "kind is missing"),
        ValidationRule(f"header.kind NOT IN ({kinds})", "concat('kind ', header.kind, ' is unknown')"),
        _rule(
            f"key IS NULL OR NOT ({_IS_ENVELOPE} OR {_KEY} = header.kind)",
            "the key does not name the kind of the message",
        ),
        _rule("header.cluster IS NULL OR header.cluster = ''", "cluster is missing"),
        *([unknown_cluster] if clusters else []),
        _rule("header.tick_ms IS NULL OR header.tick_ms <= 0", "tick_ms is missing or not positive"),
        _rule(
            f"header.tick_ms NOT BETWEEN unix_millis(timestamp) - {off_ms} AND unix_millis(timestamp) + {off_ms}",
            f"tick_ms is more than {TICK_OFF_S} s off the time of its record",
        ),
        _rule("header.seq IS NULL", "seq is missing"),
    ]


def _rule(condition: str, reason: str) -> ValidationRule:
    """Return a rule with a fixed text as its reason."""
    return ValidationRule(condition, literal(reason))


def with_message(records: DataFrame, kind: str) -> DataFrame:
    """Return the records of a kind with ``message``, ``rows`` and the reason to reject each invalid one.

    Args:
        records: records of ``with_headers`` that are not rejected.
        kind: kind of message.

    Returns:
        The records with ``message`` (the columns of the message), ``rows`` (an array of structs; null for tick_end)
        and ``reason`` (null if the message is valid).
    """
    message = f"from_json({_VALUE}, '{message_ddl(kind)}')"
    parsed = records.where(F.col("kind") == kind).withColumn("message", F.expr(message))
    if kind in COLUMNAR:
        parsed = parsed.withColumn("columns", F.expr(columns_of_message(kind)))
    rows = parsed.withColumn("rows", F.expr(rows_of_message(kind))).drop("columns")
    return rows.withColumn("reason", F.expr(first_reason(value_rules(kind))))


def message_rows(records: DataFrame, kind: str) -> DataFrame:
    """Return the rows of the messages of a kind, with ``cluster`` and ``tick_ms``.

    Args:
        records: records of ``with_headers`` that are not rejected.
        kind: kind of message.

    Returns:
        The columns of ``schemas.tick_messages.ROWS``. An invalid message has one row of nulls.
    """
    # Not a filter on the reason: the optimizer would parse each message twice, for the filter and for the rows.
    return with_message(records, kind).selectExpr(
        "header.cluster AS cluster", "header.tick_ms AS tick_ms", "inline_outer(CASE WHEN reason IS NULL THEN rows END)"
    )


def columns_of_message(kind: str) -> str:
    """Return ``columns`` of a parsed ``message`` as a struct; a column that was left out is null in every row."""
    columns = []
    for name, of in column_types(kind).items():
        null = f"array_repeat(CAST(NULL AS {of}), size(message.columns.{REQUIRED[kind][0]}))"
        columns.append(f"'{name}', coalesce(message.columns.{name}, {null})")
    return f"named_struct({', '.join(columns)})"


def rows_of_message(kind: str) -> str:
    """Return the rows of a parsed ``message``, an array of structs, built from ``columns`` if it is columnar."""
    if kind == "tick_end":
        return "CAST(NULL AS ARRAY<STRUCT<x INT>>)"
    if kind not in COLUMNAR:
        return "message.rows"
    # The fields take the names of the struct's. A cast that names them would copy every row.
    return f"arrays_zip({', '.join(f'columns.{name}' for name in column_types(kind))})"


def value_rules(kind: str) -> list[ValidationRule]:
    """Return the rules for a parsed message of a kind, in the order of their precedence."""
    same = " AND ".join(f"message.{name} <=> header.{name}" for name in MESSAGE_KEYS)
    rules = [
        _rule("message IS NULL OR message.version IS NULL", NOT_A_MESSAGE),
        _rule(f"NOT ({same})", "the key and the value name different messages"),
    ]
    if kind == "tick_end":
        return rules + _end_rules()
    return rules + (_columnar_rules(kind) if kind in COLUMNAR else _row_rules(kind))


def _end_rules() -> list[ValidationRule]:
    return [
        _rule(
            "message.lane_messages IS NULL OR message.first_offset IS NULL",
            "tick_end does not say where its tick begins",
        ),
        _rule(_bad_end("message", "offset"), _OUT_OF_RANGE),
    ]


def _row_rules(kind: str) -> list[ValidationRule]:
    """Return the rules for a message whose rows are an array of objects."""
    return [
        _rule("rows IS NULL", _ROWS_MISSING),
        _rule(f"exists(rows, {_is_incomplete(kind)})", _incomplete(kind)),
        _rule("header.row_count != size(rows)", _WRONG_COUNT),
        *([_rule(f"exists(rows, r -> {_long_row(kind)})", _TOO_LONG)] if array_columns(kind) else []),
        *([_rule(f"exists(rows, r -> {_bad_lists(kind)})", _NO_BROKER)] if broker_lists(kind) else []),
        _rule(f"exists(rows, r -> {_bad_row(kind)})", _OUT_OF_RANGE),
    ]


def _columnar_rules(kind: str) -> list[ValidationRule]:
    """Return the rules for a message with one array per column."""
    return [
        _rule("message.columns IS NULL", _ROWS_MISSING),
        _rule(_columns_incomplete(kind), _incomplete(kind)),
        _rule(_columns_differ(kind), "the columns differ in length"),
        _rule("header.row_count != size(rows)", _WRONG_COUNT),
        *([_rule(_columns_long(kind), _TOO_LONG)] if array_columns(kind) else []),
        *([_rule(_columns_lack_broker(kind), _NO_BROKER)] if broker_lists(kind) else []),
        _rule(_columns_outside(kind), _OUT_OF_RANGE),
    ]


def _incomplete(kind: str) -> str:
    return f"a row lacks {', '.join(REQUIRED[kind])}, or has it in another type"


def _columns_incomplete(kind: str) -> str:
    """Return the condition that a required column of a columnar message is missing or has a null."""
    types = column_types(kind)
    columns = {f"message.columns.{name}": _RARE[types[name]] for name in REQUIRED[kind]}
    missing = " OR ".join(f"{column} IS NULL" for column in columns)
    # A lambda per value takes as long as parsing them all. array_contains is fast, and returns null instead of false if
    # the array has a null. So the lambda runs only on arrays with a null, or with the rare value.
    has_null = " OR ".join(
        f"(coalesce(array_contains({column}, {rare}), true) AND exists({column}, x -> x IS NULL))"
        for column, rare in columns.items()
    )
    return f"{missing} OR {has_null}"


def _columns_differ(kind: str) -> str:
    """Return the condition that the columns of a columnar message have different lengths."""
    first = f"size(message.columns.{REQUIRED[kind][0]})"
    return " OR ".join(f"size(message.columns.{name}) != {first}" for name in column_types(kind))


def _columns_outside(kind: str) -> str:
    """Return the condition that a number of a columnar message is out of bounds, by the extremes of each column."""
    bounded = {f"message.columns.{name}": BOUNDS[name] for name in column_types(kind) if name in BOUNDS}
    return _any(f"array_min({name}) < {least} OR array_max({name}) > {most}" for name, (least, most) in bounded.items())


def _columns_long(kind: str) -> str:
    """Return the condition that an array in a column of a columnar message is too long."""
    # Arrays are looked at one by one only if all together are too long.
    return _any(
        f"(coalesce(size(flatten({column})), {MOST_IN_ARRAY + 1}) > {MOST_IN_ARRAY}"
        f" AND exists({column}, x -> size(x) > {MOST_IN_ARRAY}))"
        for column in (f"message.columns.{name}" for name in array_columns(kind))
    )


def _columns_lack_broker(kind: str) -> str:
    """Return the condition that a list of brokers in a column of a columnar message has one that cannot be."""
    return _any(_column_lacks_broker(f"message.columns.{name}") for name in broker_lists(kind))


def _column_lacks_broker(column: str) -> str:
    """Return the condition for one column of lists: without a lambda, unless a list is null."""
    # flatten is null if one of the lists is; then each is looked at.
    return f"""CASE WHEN flatten({column}) IS NULL THEN exists({column}, x -> {_lacks_broker("x")})
        ELSE {_lacks_broker(f"flatten({column})")} END"""
