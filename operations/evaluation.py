"""When the ticks of a cluster were last evaluated, by the gold tables, without Spark."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from headroom.schemas.config import Settings
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.schemas.text.amounts import duration_text, moment_text
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.query_table import query
from headroom.streaming.delta.tick_table import day_of
from headroom.streaming.store.single_instance import JobProcess, ended_process

# Gold tables have a tick of each interval within seconds, or within the idle interval while nothing moves. So an older
# tick means that no watch is running.
_FRESH_MS, _FRESH_INTERVALS = 60_000, 3
_DAY_MS = 86_400_000
# Clocks may differ, so a tick may also be a little ahead.
AHEAD_MS = 60_000


@dataclass(frozen=True)
class Evaluation:
    """How old the verdicts on a cluster are.

    Attributes:
        cluster: name of the cluster.
        tick_ms: newest tick with a verdict, epoch milliseconds; None if there is none in the tables.
        is_current: whether a watch evaluates the cluster now.
        ended: the process that evaluated this store last, if it is known to have ended; None otherwise.
    """

    cluster: str
    tick_ms: int | None
    is_current: bool
    ended: JobProcess | None = None


def fresh_ms(settings: Settings) -> int:
    """Return the age of a cluster's newest tick in the gold tables up to which a watch is running, milliseconds."""
    every_s = max(settings.collect.interval_s, settings.spark.gold_idle_s())
    return max(_FRESH_MS, round(_FRESH_INTERVALS * every_s * 1000))


def is_recent(settings: Settings, at_ms: int) -> str:
    """Return the SQL condition of the ticks of the settings' cluster that a running watch has just written.

    Args:
        settings: settings of the cluster.
        at_ms: current time, epoch milliseconds.
    """
    since_ms = at_ms - fresh_ms(settings)
    cluster = sql_text(settings.cluster.name)
    until_ms = at_ms + AHEAD_MS
    return (
        f"date >= DATE '{day_of(since_ms)}' AND \"cluster\" = {cluster} AND tick_ms BETWEEN {since_ms} AND {until_ms}"
    )


def read_evaluations(settings: Settings, clusters: Iterable[str], at_ms: int) -> list[Evaluation]:
    """Return how old the verdicts on some clusters are, in the order of their names.

    Args:
        settings: settings of the store.
        clusters: names of clusters.
        at_ms: current time, epoch milliseconds.

    Raises:
        HeadroomError: the table cannot be read.
    """
    wanted = sorted(set(clusters))
    # Nearly always one of the last two days has the newest tick, and the others need not be read.
    last = _last_ticks(settings, wanted, f"date >= DATE '{day_of(at_ms - _DAY_MS)}'")
    missing = [cluster for cluster in wanted if cluster not in last]
    if missing:
        last |= _last_ticks(settings, missing, "true")
    ended = ended_process(settings.store, "alerts")
    fresh = _fresh(settings, at_ms)
    return [_evaluation(cluster, last.get(cluster), fresh, ended) for cluster in wanted]


def evaluation_of(settings: Settings, cluster: str, tick_ms: int | None, at_ms: int) -> Evaluation:
    """Return how old the verdicts on a cluster are, where its newest tick has been read already.

    Args:
        settings: settings of the cluster, with the store that its tick is in.
        cluster: name of the cluster.
        tick_ms: its newest tick with a verdict, epoch milliseconds; None if there is none in the tables.
        at_ms: current time, epoch milliseconds.
    """
    return _evaluation(cluster, tick_ms, _fresh(settings, at_ms), ended_process(settings.store, "alerts"))


def _fresh(settings: Settings, at_ms: int) -> tuple[int, int]:
    """Return the first and last time of ticks that a running watch has just written, epoch milliseconds."""
    return at_ms - fresh_ms(settings), at_ms + AHEAD_MS


def _evaluation(cluster: str, tick_ms: int | None, fresh: tuple[int, int], ended: JobProcess | None) -> Evaluation:
    is_fresh = tick_ms is not None and fresh[0] <= tick_ms <= fresh[1]
    # A tick stays fresh for a minute, also after the process that evaluated it was killed.
    return Evaluation(cluster, tick_ms, is_fresh and ended is None, ended)


def _last_ticks(settings: Settings, clusters: list[str], condition: str) -> dict[str, int]:
    names = ", ".join(map(sql_text, clusters))
    sql = f'SELECT "cluster", max(tick_ms) AS last_ms FROM data WHERE "cluster" IN ({names}) AND {condition} GROUP BY 1'
    rows = query(settings.store.path, THROTTLE_HEADROOM.path, sql) or []
    return {row["cluster"]: row["last_ms"] for row in rows}


def evaluation_text(evaluation: Evaluation, at_ms: int, process: JobProcess | None) -> str:
    """Return when a cluster was last evaluated, and if that is not now, why, in one line.

    Args:
        evaluation: of ``read_evaluations``.
        at_ms: current time, epoch milliseconds.
        process: the watch that runs on the store; None if none does.
    """
    name, tick_ms = evaluation.cluster, evaluation.tick_ms
    if tick_ms is None:
        where = f"NOT EVALUATED: there is no verdict on cluster {name} in this store."
        return f"{where} Is `headroom watch` running?" if process is None else f"{where} {_blind_text(process)}"
    if tick_ms > at_ms + AHEAD_MS:
        ahead = duration_text((tick_ms - at_ms) / 1000)
        return (
            f"UNKNOWN when cluster {name} was last evaluated: its last verdict is {ahead} ahead of this clock. Set the "
            "clocks of this machine and of the collector's."
        )
    age = duration_text(max(0, at_ms - tick_ms) / 1000)
    if evaluation.is_current:
        return f"Cluster {name}: last evaluated {age} ago."
    since = f"NOT EVALUATED for {age}: the last verdict on cluster {name} is of {moment_text(tick_ms)}."
    if process is None:
        by = "" if evaluation.ended is None else f" The process that evaluated it has ended ({evaluation.ended})."
        return f"{since}{by} No `headroom watch` writes to this store; what follows is the state of then."
    return f"{since} {_blind_text(process)} What follows is the state of then, except for no_data and store_unwritable."


def _blind_text(process: JobProcess) -> str:
    """Return what to do about a watch that runs and writes no verdict."""
    return (
        f"A watch runs ({process}), but gets no ticks of this cluster, or cannot write here: see `headroom check`, and "
        "its log."
    )
