"""One tick of a cluster: its throttles, its new replicas, and when they are expected to be in sync."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, TypeVar

from headroom.alerts.inputs.leader_balance import LeaderBalance, leader_balance_of, plan_summary
from headroom.alerts.inputs.throttle_status import ThrottleStatus, throttle_status_of
from headroom.dashboard.data.kept import keep
from headroom.dashboard.data.open_tables import OpenTables
from headroom.operations.throttles.expected_finish import ExpectedFinish, finish_sql
from headroom.planning.elections.summary import ElectionPlanSummary
from headroom.schemas.keys import TopicPartition
from headroom.schemas.records import record
from headroom.schemas.tables import (
    ELECTION_PLAN,
    LEADER_IMBALANCE,
    PARTITION_WRITE_RATE,
    REASSIGNMENT_PROGRESS,
    THROTTLE_HEADROOM,
    Table,
)
from headroom.streaming.delta.query import sql_text
from headroom.streaming.delta.tick_table import day_of

T = TypeVar("T")
DAY_MS = 86_400_000
# New replicas are written after the verdicts of their tick, by a busy watch up to half a minute later, and then by the
# gold job. Those of an earlier tick are shown until then.
LATE_MS = 60_000
# Moments that are kept: those that clients look at. One of 2,000 moving partitions takes some 3 MB.
_KEPT = 16
# A thousand years.
_LONGEST_S = 3.2e10


def moment_after(tick_ms: int, seconds: float | None) -> int | None:
    """Return a moment some time after a tick, epoch milliseconds; None if that is unknown, or beyond all dates."""
    return None if seconds is None or not abs(seconds) < _LONGEST_S else tick_ms + round(seconds * 1000)


@dataclass(frozen=True, slots=True)
class NewReplica:
    """One row of ``gold/reassignment_progress``, whose table describes the columns.

    Attributes:
        replicas: current replicas; None in rows of older versions, as the next two.
        removing: replicas of these that the reassignment removes.
        leader_log_bytes: size of the leader's log; None if unknown too.
    """

    topic: str
    partition: int
    adding_replica: int
    leader: int | None
    lag_offsets: int | None
    lag_gauge_offsets: int | None
    remaining_bytes: int | None
    write_bytes_per_s: float | None
    catch_up_bytes_per_s: float | None
    eta_s: float | None
    eta_low_s: float | None
    eta_high_s: float | None
    state: str
    frozen: bool
    in_sync: bool
    replicas: tuple[int, ...] | None = None
    removing: tuple[int, ...] | None = None
    leader_log_bytes: int | None = None

    @property
    def name(self) -> TopicPartition:
        """Topic and number of the partition."""
        return TopicPartition(self.topic, self.partition)

    @property
    def done_ratio(self) -> float | None:
        """Return the share of the leader's log that the replica has, 0 to 1; None if unknown."""
        if self.in_sync:
            return 1.0
        if self.remaining_bytes is None or not self.leader_log_bytes:
            return None
        return min(1.0, max(0.0, 1 - self.remaining_bytes / self.leader_log_bytes))


@dataclass(frozen=True)
class PartitionRate:
    """One row of ``gold/partition_write_rate``, whose table describes the columns."""

    topic: str
    partition: int
    leader: int | None
    write_bytes_per_s: float | None
    method: str | None

    @property
    def name(self) -> TopicPartition:
        """Topic and number of the partition."""
        return TopicPartition(self.topic, self.partition)


@dataclass(frozen=True)
class ClusterMoment:
    """One tick of a cluster.

    Attributes:
        cluster: name of the cluster.
        tick_ms: time of the tick, epoch milliseconds.
        statuses: throttle of every broker and role.
        replicas: new replicas of running reassignments, of the newest tick up to this one that has them.
        finish: when these are expected to be in sync; None if there are none, or not yet.
    """

    cluster: str
    tick_ms: int
    statuses: tuple[ThrottleStatus, ...]
    replicas: tuple[NewReplica, ...]
    finish: ExpectedFinish | None

    @property
    def is_moving(self) -> bool:
        """Return whether a reassignment is running, with new replicas or without."""
        return bool(self.replicas) or any(status.moving_partitions for status in self.statuses)

    @property
    def is_whole(self) -> bool:
        """Return whether its new replicas are there, if it has any."""
        return not self.is_moving or (self.finish is not None and self.finish.tick_ms == self.tick_ms)

    @property
    def replicas_ms(self) -> int:
        """Return the tick of the new replicas, epoch milliseconds."""
        return self.tick_ms if self.finish is None else self.finish.tick_ms


@dataclass(frozen=True)
class LeaderMoment:
    """The newest count of leaders up to a moment.

    Attributes:
        balances: every broker that is the preferred leader of a partition.
        elections: the last plan of elections; None if there is none of these days.
    """

    balances: tuple[LeaderBalance, ...]
    elections: ElectionPlanSummary | None

    @property
    def tick_ms(self) -> int:
        """Return the tick of the count, epoch milliseconds."""
        return self.balances[0].tick_ms


def in_range(cluster: str, first_ms: int, last_ms: int) -> str:
    """Return the SQL condition of a cluster's ticks in a range, both ends included; other folders are not read."""
    return (
        f"date BETWEEN DATE '{day_of(first_ms)}' AND DATE '{day_of(last_ms)}' AND \"cluster\" = {sql_text(cluster)} "
        f"AND tick_ms BETWEEN {first_ms} AND {last_ms}"
    )


class MomentReader:
    """Reads single ticks.

    Args:
        tables: tables of the store.
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(self, tables: OpenTables, clock_ms: Callable[[], int]) -> None:
        self._tables = tables
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        # Moments with the version of the table of new replicas, those that were asked for last at the end.
        self._kept: dict[tuple[str, int], tuple[int | None, ClusterMoment]] = {}
        # Newest verdicts that were asked for, by cluster, epoch milliseconds.
        self._newest_ms: dict[str, int] = {}

    def clusters(self) -> list[str]:
        """Return the clusters with a verdict in the tables, by name.

        Raises:
            HeadroomError: the table cannot be read.
        """
        rows = self._tables.rows(THROTTLE_HEADROOM, 'SELECT DISTINCT "cluster" FROM data ORDER BY 1') or []
        return [row["cluster"] for row in rows]

    def tick_at(self, cluster: str, at_ms: int, table: Table = THROTTLE_HEADROOM) -> int | None:
        """Return the newest tick of a cluster up to a time, epoch milliseconds; None if there is none.

        Raises:
            HeadroomError: the table cannot be read.
        """
        # Nearly always one of the last two days has it, and the others need not be read. Now is no end: a tick may be
        # ahead of the clock.
        for first_ms in (max(0, min(at_ms, self._clock_ms()) - DAY_MS), 0):
            sql = f"SELECT max(tick_ms) AS tick_ms FROM data WHERE {in_range(cluster, first_ms, at_ms)}"
            rows = self._tables.rows(table, sql)
            if rows is None:
                return None
            if (tick_ms := rows[0]["tick_ms"]) is not None:
                if table is THROTTLE_HEADROOM:
                    with self._lock:
                        self._newest_ms[cluster] = max(tick_ms, self._newest_ms.get(cluster, 0))
                return int(tick_ms)
        return None

    def moment(self, cluster: str, tick_ms: int) -> ClusterMoment:
        """Return a tick that the tables have.

        Raises:
            HeadroomError: a table cannot be read, or a row of it cannot be used.
        """
        key, version = (cluster, tick_ms), self._tables.version(REASSIGNMENT_PROGRESS)
        with self._lock:
            known = self._kept.get(key)
            if known is not None:
                keep(self._kept, key, known, _KEPT)
                # What is committed now is of other ticks.
                is_past = self._newest_ms.get(cluster, 0) - tick_ms >= LATE_MS and known[1].is_whole
                if is_past or known[0] == version:
                    return known[1]
        moment = self._read_moment(cluster, tick_ms)
        with self._lock:
            keep(self._kept, key, (version, moment), _KEPT)
        return moment

    def leaders(self, cluster: str, at_ms: int) -> LeaderMoment | None:
        """Return the newest count of leaders up to a time, epoch milliseconds; None if there is none.

        Raises:
            HeadroomError: a table cannot be read, or a row of it cannot be used.
        """
        tick_ms = self.tick_at(cluster, at_ms, LEADER_IMBALANCE)
        if tick_ms is None:
            return None
        balances = self._tick(LEADER_IMBALANCE, cluster, tick_ms, "broker", leader_balance_of)
        plan_ms = self.tick_at(cluster, at_ms, ELECTION_PLAN)
        plans = () if plan_ms is None else self._tick(ELECTION_PLAN, cluster, plan_ms, "tick_ms", plan_summary)
        return LeaderMoment(balances, plans[0] if plans else None)

    def rates(self, cluster: str, tick_ms: int, leader: int) -> list[PartitionRate]:
        """Return the write rates of the moving and listed partitions that a broker leads, the greatest first.

        Raises:
            HeadroomError: the table cannot be read.
        """
        sql = f"""SELECT * FROM data WHERE {in_range(cluster, tick_ms, tick_ms)} AND leader = {leader}
            ORDER BY write_bytes_per_s DESC NULLS FIRST, topic, partition"""
        return self._tables.records(PARTITION_WRITE_RATE, sql, partial(record, PartitionRate))

    def _read_moment(self, cluster: str, tick_ms: int) -> ClusterMoment:
        statuses = self._tick(THROTTLE_HEADROOM, cluster, tick_ms, "broker, role DESC", throttle_status_of)
        moment = ClusterMoment(cluster, tick_ms, statuses, (), None)
        first_ms = tick_ms - LATE_MS if moment.is_moving else tick_ms
        rows = self._tables.rows(REASSIGNMENT_PROGRESS, finish_sql(in_range(cluster, first_ms, tick_ms)))
        if not rows:
            return moment
        finish = ExpectedFinish(**rows[0])
        order = "topic, partition, adding_replica"
        replicas = self._tick(REASSIGNMENT_PROGRESS, cluster, finish.tick_ms, order, partial(record, NewReplica))
        return replace(moment, replicas=replicas, finish=finish)

    def _tick(
        self, table: Table, cluster: str, tick_ms: int, order: str, of: Callable[[Mapping[str, Any]], T]
    ) -> tuple[T, ...]:
        sql = f"SELECT * FROM data WHERE {in_range(cluster, tick_ms, tick_ms)} ORDER BY {order}"
        return tuple(self._tables.records(table, sql, of))
