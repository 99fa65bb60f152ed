"""Runs of the journal, the newest ones, read again only when it has grown."""

from __future__ import annotations

import threading
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from headroom.dashboard.data.open_tables import OpenTables
from headroom.schemas.tables import ACTION_JOURNAL
from headroom.streaming.delta.query import sql_text

# Runs of one answer; those before them are asked for by a moment.
MOST_RUNS = 1000
# Answers that are kept: those of now, and of moments that clients look at.
_KEPT = 16
_NEWEST_SQL = """SELECT run_id, min(at_ms) AS began_ms FROM data WHERE {condition}
    GROUP BY run_id ORDER BY began_ms DESC, run_id LIMIT {most}"""
# By the last row about the run as a whole; only a run of a plan has one. Another command has ended with its steps.
_RUNS_SQL = """SELECT run_id, min(command) AS command, min("by") AS "by", min(began_ms) AS began_ms,
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
    FROM (SELECT run_id, step, min(command) AS command, min("by") AS "by", min(at_ms) AS began_ms,
            max(at_ms) AS last_ms, max(seq) AS last_seq, count(*) AS steps,
            sum(CASE WHEN state = 'failed' THEN 1 ELSE 0 END) AS failed, last_value(state ORDER BY seq) AS state
        FROM data WHERE {condition} GROUP BY run_id, step, subject)
    GROUP BY run_id ORDER BY began_ms DESC, run_id"""


class NewestRuns(NamedTuple):
    """The newest runs of a cluster up to a moment.

    Attributes:
        rows: a row for each run, the one that began last first.
        before_ms: moment at which those before them are the newest ones, epoch milliseconds; None if there are none.
    """

    rows: Sequence[Mapping[str, Any]]
    before_ms: int | None


class JournalReader:
    """Reads runs. Threads may share it.

    Args:
        tables: the tables of the store.
    """

    def __init__(self, tables: OpenTables) -> None:
        self._tables = tables
        self._lock = threading.Lock()
        self._known: dict[tuple[str, int], tuple[int, NewestRuns]] = {}

    def newest(self, cluster: str, at_ms: int) -> NewestRuns:
        """Return the newest runs of a cluster up to a moment, at most ``MOST_RUNS``.

        Args:
            cluster: name of the cluster.
            at_ms: the moment, epoch milliseconds.

        Raises:
            HeadroomError: the journal exists but cannot be read.
        """
        key = cluster, at_ms
        # Before it is read: what is appended meanwhile is read next time.
        version = self._tables.version(ACTION_JOURNAL)
        with self._lock:
            known = self._known.get(key)
        if version is not None and known is not None and known[0] == version:
            return known[1]
        runs = self._read(cluster, at_ms)
        if version is not None:
            with self._lock:
                self._known.pop(key, None)
                self._known[key] = version, runs
                while len(self._known) > _KEPT:
                    del self._known[next(iter(self._known))]
        return runs

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
