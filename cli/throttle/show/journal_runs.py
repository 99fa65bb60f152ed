"""Runs that set a throttle and have not taken it back, from the table ``actions/journal``."""

from __future__ import annotations

from collections.abc import Mapping

from schemas.config import Settings
from streaming.delta.query_table import query

_JOURNAL = "actions/journal"
# A step that was intended may have been taken before a crash.
_IN_FORCE = ("intended", "done")


def runs_by_subject(settings: Settings) -> Mapping[str, str]:
    """Return the id of the newest run that set each rate or list and has not taken it back; empty without a journal.

    The keys are subjects as in the journal: ``broker 2 as leader`` and ``topic orders as follower``.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    cluster = settings.cluster.name.replace("'", "''")
    rows = query(settings.store.path, _JOURNAL, _SQL.format(cluster=cluster)) or []
    # Rows are in the order of time. The last one of a run says how far its step has come; put last, it is the newest.
    states: dict[tuple[str, str], str] = {}
    for row in rows:
        key = (row["subject"], row["run_id"])
        states.pop(key, None)
        states[key] = row["state"]
    return {subject: run_id for (subject, run_id), state in states.items() if state in _IN_FORCE}


_SQL = """SELECT subject, run_id, state, at_ms FROM data
    WHERE "cluster" = '{cluster}' AND step IN ('rate', 'list') ORDER BY at_ms, seq"""
