"""Health: how old each table is, and whether the processes that write them run."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from headroom.dashboard.address import Address
from headroom.dashboard.data.tick_end import AHEAD_MS, tick_end
from headroom.dashboard.site import Site
from headroom.dashboard.views.blocks import Block, DataColumn, DataTable, Facts, Kind, Row, Term, Tone
from headroom.operations.evaluation import fresh_ms
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import (
    ACTION_JOURNAL,
    ALERT_DELIVERIES,
    ALERT_EVENTS,
    ALERT_MARKS,
    BROKER_LOAD,
    BYTES_PER_SEC,
    ELECTION_PLAN,
    FETCHER_LAG,
    LEADER_IMBALANCE,
    MESSAGES,
    MIGRATION_GROUPS,
    MIGRATION_OFFSETS,
    MIGRATION_PROGRESS,
    PARTITION_WRITE_RATE,
    REASSIGNMENT_PROGRESS,
    REPLICATION_LAG,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.schemas.text.amounts import moment_text
from headroom.streaming.delta.query import sql_text

# Brokers that are named.
_MOST_NAMED = 10

_TABLES = (
    THROTTLE_HEADROOM,
    REASSIGNMENT_PROGRESS,
    PARTITION_WRITE_RATE,
    LEADER_IMBALANCE,
    ELECTION_PLAN,
    BROKER_LOAD,
    REPLICATION_LAG,
    MESSAGES,
    FETCHER_LAG,
    BYTES_PER_SEC,
    MIGRATION_PROGRESS,
    MIGRATION_GROUPS,
    MIGRATION_OFFSETS,
)
# Tables that follow no ticks, with the column of their time.
_TIMES = {ALERT_EVENTS: "tick_ms", ALERT_DELIVERIES: "delivery_ms", ALERT_MARKS: "mark_ms", ACTION_JOURNAL: "at_ms"}
_TONES = {"readable": Tone.GOOD, "old": Tone.WARNING, "no rows": Tone.QUIET, "unreadable": Tone.CRITICAL}
_COLUMNS = (
    DataColumn("table", "table"),
    DataColumn("state", "state", Kind.STATE, tones=_TONES),
    DataColumn("tick_ms", "newest tick", Kind.MOMENT, none="–"),
    DataColumn("age_s", "age", Kind.DURATION, none="–"),
    DataColumn("problem", "problem", none=""),
)


def health(site: Site, address: Address) -> Sequence[Block]:
    """Return the age of each table of the cluster of an address; of one that cannot be read, why."""
    at_ms = site.shown_ms(address)
    terms = [*_evaluation(site, address), *_collection(site, address, at_ms), Term("Store", site.tables.store_path)]
    stale_after_s = _stale_after_s(site, site.cluster(address))
    tables = (*_TABLES, *_TIMES)
    rows = [_row(site, address, table, at_ms, stale_after_s.get(table.path)) for table in tables]
    note = (
        "Tables of moves have rows only while something moves, those of migrations only while topics migrate; those of "
        "alerts and actions have the time of their newest row. The others follow the ticks by up to a minute."
    )
    return [Facts(terms), DataTable("tables", "Tables", _COLUMNS, rows, note=note)]


def _stale_after_s(site: Site, cluster: str) -> Mapping[str, float]:
    """Return the age from which a table is old, seconds, by its path; without those that do not follow every tick."""
    watched = site.watched(cluster)
    fresh_s = fresh_ms(watched.settings) / 1000
    from_silver = [REPLICATION_LAG, MESSAGES, FETCHER_LAG, BYTES_PER_SEC]
    if watched.migrates:
        from_silver.append(MIGRATION_OFFSETS)
    return {
        THROTTLE_HEADROOM.path: fresh_s,
        LEADER_IMBALANCE.path: watched.balances_stale_after_s(),
        BROKER_LOAD.path: watched.loads_stale_after_s(),
        **{table.path: watched.records_stale_after_s() for table in from_silver},
        **({MIGRATION_PROGRESS.path: fresh_s} if watched.migrates else {}),
    }


def _evaluation(site: Site, address: Address) -> list[Term]:
    try:
        view_time = site.view_time(address)
    except HeadroomError as error:
        return [Term("Evaluation", str(error), Tone.UNKNOWN)]
    evaluation = view_time.evaluation
    # Of a moment of then the table of verdicts has the age at that moment.
    name = "Evaluation now" if view_time.is_past else "Evaluation"
    terms = [Term(name, view_time.text, Tone.GOOD if evaluation.is_current else Tone.UNKNOWN)]
    if evaluation.ended is not None:
        terms.append(Term("Ended", str(evaluation.ended), Tone.WARNING))
    return terms


def _collection(site: Site, address: Address, at_ms: int) -> Iterator[Term]:
    """Yield what the collector says of its newest tick."""
    try:
        end = tick_end(site.tables, site.cluster(address), at_ms, AHEAD_MS if address.at is None else 0)
    except HeadroomError as error:
        yield Term("Collection", str(error), Tone.UNKNOWN)
        return
    if end is None:
        # It may follow a new watch by a minute.
        yield Term(
            "Collection", "what the collector says of a tick is not in bronze yet, or not any more", Tone.UNKNOWN
        )
        return
    said = [f"tick of {moment_text(end.tick_ms)}"]
    if end.collect_ms is not None:
        said.append(f"took {end.collect_ms:,} ms")
    if end.lateness_ms:
        said.append(f"began {end.lateness_ms:,} ms late")
    if end.collector is not None:
        said.append(f"by {end.collector}")
    yield Term("Collection", ", ".join(said))
    if end.skipped_ticks:
        text = f"{end.skipped_ticks:,} before it: the collector, or its machine, does not keep the interval"
        yield Term("Skipped ticks", text, Tone.WARNING)
    if end.unanswered:
        named = [f"broker {broker} ({reason})" for broker, reason in sorted(end.unanswered.items())]
        more = f"; and {len(named) - _MOST_NAMED:,} more" if len(named) > _MOST_NAMED else ""
        yield Term("Did not answer", "; ".join(named[:_MOST_NAMED]) + more, Tone.WARNING)


def _row(site: Site, address: Address, table: Table, at_ms: int, stale_after_s: float | None) -> Row:
    try:
        tick_ms = _newest_ms(site, site.cluster(address), site.at_ms(address), table)
    except HeadroomError as error:
        return {"table": table.path, "state": "unreadable", "tick_ms": None, "age_s": None, "problem": str(error)}
    age_s = None if tick_ms is None else max(0, at_ms - tick_ms) / 1000
    state = "no rows" if age_s is None else "readable"
    if age_s is not None and stale_after_s is not None and age_s > stale_after_s:
        state = "old"
    return {"table": table.path, "state": state, "tick_ms": tick_ms, "age_s": age_s, "problem": None}


def _newest_ms(site: Site, cluster: str, at_ms: int, table: Table) -> int | None:
    """Return the newest tick in a table up to a time, or row of one that follows no ticks; None if there is none."""
    if table not in _TIMES:
        return site.moments.tick_at(cluster, at_ms, table)
    name, column = sql_text(cluster), _TIMES[table]
    # A silence may be of all clusters.
    own = f'coalesce("cluster", {name}) = {name} AND {column} <= {at_ms}'
    rows = site.tables.rows(table, f"SELECT max({column}) AS newest_ms FROM data WHERE {own}")
    newest_ms: int | None = rows[0]["newest_ms"] if rows else None
    return newest_ms
