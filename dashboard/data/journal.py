"""Runs of the journal, the newest ones, and their steps, read again only when it has grown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Any, NamedTuple, TypeVar

from headroom.dashboard.data.kept import keep
from headroom.dashboard.data.open_tables import OpenTables
from headroom.planning.reassignments.run.journal import options_of_text
from headroom.schemas.tables import ACTION_JOURNAL
from headroom.streaming.delta.query import sql_text

T = TypeVar("T")
# Runs of one answer; those before them are asked for by a moment.
MOST_RUNS = 1000
# Answers that are kept: those of now, and of moments that clients look at.
_KEPT = 32
# Most steps of an answer that is kept: as many as a page shows. A list of replicas has any length.
_KEPT_STEPS = 200
_NEWEST_SQL = """SELECT run_id, min(at_ms) AS began_ms FROM data WHERE {condition}
    GROUP BY run_id ORDER BY began_ms DESC, run_id LIMIT {most}"""
# By the last row about the run as a whole; only a run of a plan has one. Another command has ended with its steps. What
# later takes a run back has rows in it too, so that its first row alone says which command began it, and who.
_RUNS_SQL = """SELECT run_id, first_value(command ORDER BY first_seq) AS command,
        first_value("by" ORDER BY first_seq) AS "by", min(began_ms) AS began_ms,
        max(last_ms) AS last_ms, sum(steps) AS steps, sum(failed) AS failed,
        CASE last_value(state ORDER BY last_seq) FILTER (WHERE step = 'run')
            WHEN 'done' THEN 'done'
            WHEN 'intended' THEN 'not ended'
            WHEN 'undone' THEN 'ended early'
            WHEN 'failed' THEN 'ended early'
            ELSE CASE
                WHEN bool_or(state = 'intended') THEN 'not ended'
                WHEN bool_or(state = 'failed') THEN 'ended early'
                ELSE 'done' END
            END AS state
    FROM (SELECT run_id, step, first_value(command ORDER BY seq) AS command,
            first_value("by" ORDER BY seq) AS "by", min(seq) AS first_seq, min(at_ms) AS began_ms,
            max(at_ms) AS last_ms, max(seq) AS last_seq, count(*) AS steps,
            sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed, last_value(state ORDER BY seq) AS state
        FROM data WHERE {condition} GROUP BY run_id, step, subject)
    GROUP BY run_id ORDER BY began_ms DESC, run_id"""
_STEPS_SQL = "SELECT * FROM data WHERE {condition} ORDER BY {order}at_ms, run_id, seq LIMIT {most} OFFSET {first}"
_COUNT_SQL = "SELECT count(*) AS steps, array_agg(DISTINCT command) AS commands FROM data WHERE {condition}"
# What a run sets back in the end is intended too; it is what was there before its first rate.
_RATES_SQL = """SELECT DISTINCT subject, "after" FROM (
        SELECT subject, state, "after", first_value("before") OVER (PARTITION BY subject ORDER BY seq) AS first_before
        FROM data WHERE {condition} AND step = 'rate')
    WHERE state IN ('intended', 'done') AND ("after" IS DISTINCT FROM first_before)"""
_PROGRESS_SQL = """SELECT
        first_value("after" ORDER BY seq) FILTER (WHERE step = 'run' AND state = 'intended') AS options,
        count(DISTINCT CASE WHEN step = 'finish' AND state = 'done' THEN subject END) AS finished
    FROM data WHERE {condition}"""


class RunProgress(NamedTuple):
    """How far a run of a plan is, by the journal.

    Attributes:
        finished: partitions whose reassignment has ended at their target; none that was cancelled.
        partitions: partitions of its plan; None if the journal does not have them, as the next one.
        batches: batches of its plan.
    """

    finished: int
    partitions: int | None
    batches: int | None


class StepCount(NamedTuple):
    """Steps of the journal in short.

    Attributes:
        steps: number of the steps.
        commands: commands that took them.
    """

    steps: int
    commands: frozenset[str]


class NewestRuns(NamedTuple):
    """The newest runs of a cluster up to a moment.

    Attributes:
        rows: a row for each run, the one that began last first.
        before_ms: moment at which those before them are the newest ones, epoch milliseconds; None if there are none.
    """

    rows: Sequence[Mapping[str, Any]]
    before_ms: int | None


_NO_STEP = StepCount(0, frozenset())


class JournalReader:
    """Reads runs and steps. Threads may share it.

    Args:
        tables: the tables of the store.
    """

    def __init__(self, tables: OpenTables) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._known: dict[Hashable, tuple[int, Any]] = {}

    def newest(self, cluster: str, at_ms: int) -> NewestRuns:
        """Return the newest runs of a cluster up to a moment, at most ``MOST_RUNS``.

        Args:
            cluster: name of the cluster.
            at_ms: the moment, epoch milliseconds.

        Raises:
            HeadroomError: the journal exists but cannot be read.
        """
        return self._kept(("newest", cluster, at_ms), lambda: self._read(cluster, at_ms))

    def count(self, condition: str) -> StepCount:
        """Return how many steps there are, and of which commands.

        Args:
            condition: SQL condition on the rows of the journal.

        Raises:
            HeadroomError: the journal exists but cannot be read.
        """

        def read() -> StepCount:
            rows = self._tables.rows(ACTION_JOURNAL, _COUNT_SQL.format(condition=condition))
            return StepCount(rows[0]["steps"], frozenset(rows[0]["commands"] or ())) if rows else _NO_STEP

        return self._kept(("count", condition), read)

    def progress(self, cluster: str, run_id: str) -> RunProgress:
        """Return how far a run of a plan on a cluster is.

        Raises:
            HeadroomError: the journal exists but cannot be read.
        """
        condition = f'"cluster" = {sql_text(cluster)} AND run_id = {sql_text(run_id)}'

        def read() -> RunProgress:
            rows = self._tables.rows(ACTION_JOURNAL, _PROGRESS_SQL.format(condition=condition)) or [{}]
            options = options_of_text(rows[0].get("options"))
            sizes = [value if isinstance(value := options.get(key), int) else None for key in ("partitions", "batches")]
            return RunProgress(rows[0].get("finished") or 0, *sizes)

        return self._kept(("progress", condition), read)

    def rates(self, condition: str) -> list[tuple[str, str | None]]:
        """Return subject and value of each rate that was set, or was to be, by steps of a condition on one run.

        What was there before it, and is set back in the end, is none of them.

        Raises:
            HeadroomError: the journal exists but cannot be read.
        """

        def read() -> list[tuple[str, str | None]]:
            rows = self._tables.rows(ACTION_JOURNAL, _RATES_SQL.format(condition=condition)) or ()
            return [(row["subject"], row["after"]) for row in rows]

        return self._kept(("rates", condition), read)

    def steps(self, condition: str, sort: str | None, first: int, most: int) -> list[dict[str, Any]]:
        """Return some steps.

        Args:
            condition: SQL condition on the rows of the journal.
            sort: column of the table that they are sorted by, with a minus before it: the greatest first; missing
                values are last, and the same ones in the order of time. None: that order alone.
            first: number of the first one that is returned, from 0.
            most: most of them.

        Raises:
            HeadroomError: the journal exists but cannot be read.
        """
        key = (sort or "").removeprefix("-")
        order = f'"{key}" {"ASC" if sort == key else "DESC"} NULLS LAST, ' if key in ACTION_JOURNAL.names() else ""
        sql = _STEPS_SQL.format(condition=condition, order=order, most=most, first=first)

        def read() -> list[dict[str, Any]]:
            return self._tables.rows(ACTION_JOURNAL, sql) or []

        return self._kept(("steps", sql), read) if most <= _KEPT_STEPS else read()

    def _kept(self, key: Hashable, read: Callable[[], T]) -> T:
        """Return what was read, unless the journal has grown since."""
        # Before it is read: what is appended meanwhile is read next time.
        version = self._tables.version(ACTION_JOURNAL)
        with self._lock:
            known = self._known.get(key)
        if version is not None and known is not None and known[0] == version:
            found: T = known[1]
            return found
        found = read()
        if version is not None:
            with self._lock:
                keep(self._known, key, (version, found), _KEPT)
        return found

    def _read(self, cluster: str, at_ms: int) -> NewestRuns:
        condition = f'"cluster" = {sql_text(cluster)} AND at_ms <= {at_ms}'
        # Two narrow columns of all steps, and then the steps of these runs alone.
        sql = _NEWEST_SQL.format(condition=condition, most=MOST_RUNS + 1)
        began = self._tables.rows(ACTION_JOURNAL, sql) or []
        if not began:
            return NewestRuns((), None)
        kept, is_all = began[:MOST_RUNS], len(began) <= MOST_RUNS
        if not is_all:
            names = ", ".join(sql_text(row["run_id"]) for row in kept)
            condition = f"{condition} AND at_ms >= {kept[-1]['began_ms']} AND run_id IN ({names})"
        rows = self._tables.rows(ACTION_JOURNAL, _RUNS_SQL.format(condition=condition)) or []
        # Of runs that began in the same millisecond as the last one here, some may be there too; if they are more
        # than an answer has, the same ones would be.
        return NewestRuns(rows, None if is_all else min(began[MOST_RUNS]["began_ms"], at_ms - 1))
