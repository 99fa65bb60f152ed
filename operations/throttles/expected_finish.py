"""Expected finish of the running moves, from the newest tick of ``gold/reassignment_progress``."""

from __future__ import annotations

from dataclasses import dataclass

from headroom.operations.evaluation import is_recent
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import REASSIGNMENT_PROGRESS
from headroom.schemas.text.amounts import duration_range_text, duration_text
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.query_table import query


@dataclass(frozen=True)
class ExpectedFinish:
    """Prediction of the newest tick at the throttles in force.

    Attributes:
        tick_ms: time of the tick, in epoch milliseconds.
        replicas: number of adding replicas.
        in_sync: number of these that are in sync.
        never: number of these that never become in sync at the throttles in force.
        unknown: number of these whose finish is unknown.
        eta_s: time from the tick until the last of the others is in sync, in seconds; None if there are no others.
        eta_low_s: earliest value of that time.
        eta_high_s: latest value of that time; None if it is unbounded or there are no others.
    """

    tick_ms: int
    replicas: int
    in_sync: int
    never: int
    unknown: int
    eta_s: float | None
    eta_low_s: float | None
    eta_high_s: float | None

    def text(self, at_ms: int | None) -> str:
        """Return the prediction as a sentence.

        Args:
            at_ms: current time, in epoch milliseconds; None: that of the tick, which is then not named.
        """
        passed_s = 0.0 if at_ms is None else (at_ms - self.tick_ms) / 1000
        ago = "" if at_ms is None else f", by the tick of {duration_text(max(0, passed_s))} ago"
        if self.never:
            return f"At the throttles in force {self.never} of {self.replicas} new replicas never get in sync{ago}."
        if self.unknown:
            return f"When the moves are done is unknown for {self.unknown} of {self.replicas} new replicas{ago}."
        low_s = max(0.0, (self.eta_low_s or 0.0) - passed_s)
        high_s = None if self.eta_high_s is None else max(0.0, self.eta_high_s - passed_s)
        return f"At the throttles in force the moves are done in {duration_range_text(low_s, high_s)}{ago}."


def expected_finish(settings: Settings, at_ms: int | None = None) -> ExpectedFinish | None:
    """Return the prediction of the newest tick of a cluster; None if nothing moves or no watch is running.

    Args:
        settings: settings of the cluster.
        at_ms: current time, in epoch milliseconds; this machine's clock if None.

    Raises:
        HeadroomError: the table exists but cannot be read.
    """
    at_ms = now_ms() if at_ms is None else at_ms
    rows = query(settings.store.path, REASSIGNMENT_PROGRESS.path, finish_sql(is_recent(settings, at_ms)))
    return ExpectedFinish(**rows[0]) if rows else None


def finish_sql(condition: str) -> str:
    """Return the query of the columns of ``ExpectedFinish``, of the newest tick of one cluster.

    Args:
        condition: SQL condition on the rows of ``gold/reassignment_progress``.
    """
    return _SQL.format(condition=condition)


def finish_note(settings: Settings) -> str:
    """Return the expected finish as a sentence, or the reason why it is unknown."""
    at_ms = now_ms()
    try:
        finish = expected_finish(settings, at_ms)
    except HeadroomError as error:
        return f"When the moves are done is unknown: {error}"
    if finish is None:
        return "When the moves are done is unknown: start headroom watch. No tick of the last minute is in store.path."
    return finish.text(at_ms)


_SQL = """SELECT tick_ms, count(*) AS replicas,
        sum(CASE WHEN state = 'in_sync' THEN 1 ELSE 0 END) AS in_sync,
        sum(CASE WHEN state = 'never' THEN 1 ELSE 0 END) AS never,
        sum(CASE WHEN state = 'no_data' THEN 1 ELSE 0 END) AS unknown,
        max(eta_s) AS eta_s, max(eta_low_s) AS eta_low_s,
        CASE WHEN count(eta_high_s) = count(eta_s) THEN max(eta_high_s) END AS eta_high_s
    FROM data WHERE {condition}
    GROUP BY tick_ms ORDER BY tick_ms DESC LIMIT 1"""
