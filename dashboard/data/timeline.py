"""What happened to a cluster over a range of ticks: progress, leader switches, and changes of throttles."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeVar

from headroom.dashboard.data.moment import ClusterMoment, in_range, moment_after
from headroom.dashboard.data.open_tables import OpenTables
from headroom.schemas.records import record
from headroom.schemas.tables import ACTION_JOURNAL, ALERT_EVENTS, REASSIGNMENT_PROGRESS, THROTTLE_HEADROOM, Table
from headroom.streaming.delta.query import sql_text

T = TypeVar("T")
# Most points of a chart: about one for each pixel of its width.
MOST_POINTS = 720
# Most leader switches, changes of throttles and alert events that are read, the last ones.
MOST_EVENTS = 1000
# A range of a large move above which the rows are more than others wait for: an hour of 2,000 replicas has 1.4 million.
_LONG_MS = 3_600_000


@dataclass(frozen=True)
class TickRange:
    """A range of ticks of a cluster, both ends included.

    Attributes:
        cluster: name of the cluster.
        first_ms: start, epoch milliseconds.
        last_ms: end, epoch milliseconds.
        topic: topic that alone counts; None: all.
        is_live: whether its end goes on with the ticks.
    """

    cluster: str
    first_ms: int
    last_ms: int
    topic: str | None = None
    is_live: bool = False

    @classmethod
    def until(cls, moment: ClusterMoment, at_ms: int | None, span_s: int, topic: str | None = None) -> TickRange:
        """Return the time before a moment that was chosen, or else before a tick.

        Args:
            moment: the tick.
            at_ms: moment that was chosen, epoch milliseconds; None if none was.
            span_s: length of the range, seconds.
            topic: as of the range.
        """
        last_ms = moment.tick_ms if at_ms is None else at_ms
        return cls(moment.cluster, last_ms - span_s * 1000, last_ms, topic, is_live=at_ms is None)

    @property
    def condition(self) -> str:
        """Return the SQL condition of its rows."""
        return in_range(self.cluster, self.first_ms, self.last_ms)

    @property
    def topic_condition(self) -> str:
        """Return the SQL condition of its rows of partitions."""
        own = "" if self.topic is None else f" AND topic = {sql_text(self.topic)}"
        return f"{self.condition}{own}"

    @property
    def step_ms(self) -> int:
        """Return the time that one point of a chart covers, milliseconds."""
        return max(1, -(-(self.last_ms - self.first_ms) // MOST_POINTS))


def range_records(
    tables: OpenTables, ticks: TickRange, table: Table, sql: str, of: Callable[[Mapping[str, Any]], T]
) -> list[T]:
    """Return ``OpenTables.records`` of a query over a range, in any order; while a long one is read, others go on.

    Raises:
        HeadroomError: the table cannot be read, or a row of it cannot be used.
    """
    read = tables.long_records if ticks.last_ms - ticks.first_ms > _LONG_MS else tables.records
    return read(table, sql, of)


@dataclass(frozen=True)
class ProgressPoint:
    """All new replicas at a tick, the last one of those that a point covers.

    Attributes:
        tick_ms: the tick, epoch milliseconds.
        replicas: number of new replicas.
        in_sync: number of these that are in sync.
        never: number of these that never get in sync.
        unknown: number of these whose finish is unknown.
        remaining_bytes: bytes left to copy; None if those of a replica are unknown.
        eta_s: time until the last of them is in sync, seconds; None if none is expected to be.
    """

    tick_ms: int
    replicas: int
    in_sync: int
    never: int
    unknown: int
    remaining_bytes: int | None
    eta_s: float | None

    @property
    def finish_ms(self) -> int | None:
        """Return when all of them were expected to be in sync, epoch milliseconds; None: never, or unknown."""
        if self.never or self.unknown:
            return None
        return moment_after(self.tick_ms, self.eta_s)


_PROGRESS_SQL = """WITH by_tick AS (
        SELECT tick_ms, count(*) AS replicas, sum(CASE WHEN state = 'in_sync' THEN 1 ELSE 0 END) AS in_sync,
            sum(CASE WHEN state = 'never' THEN 1 ELSE 0 END) AS never,
            sum(CASE WHEN state = 'no_data' THEN 1 ELSE 0 END) AS unknown,
            CASE WHEN bool_or(NOT in_sync AND remaining_bytes IS NULL) THEN NULL
                ELSE sum(CASE WHEN in_sync THEN 0 ELSE remaining_bytes END) END AS remaining_bytes,
            max(eta_s) AS eta_s
        FROM data WHERE {condition} GROUP BY tick_ms)
    SELECT max(tick_ms) AS tick_ms, last_value(replicas ORDER BY tick_ms) AS replicas,
        last_value(in_sync ORDER BY tick_ms) AS in_sync, last_value(never ORDER BY tick_ms) AS never,
        last_value(unknown ORDER BY tick_ms) AS unknown,
        last_value(remaining_bytes ORDER BY tick_ms) AS remaining_bytes, last_value(eta_s ORDER BY tick_ms) AS eta_s
    FROM by_tick GROUP BY tick_ms - tick_ms % {step_ms}"""


def progress_history(tables: OpenTables, ticks: TickRange, step_ms: int | None = None) -> list[ProgressPoint]:
    """Return the progress over a range, in at most ``MOST_POINTS`` points or one more.

    Args:
        tables: tables of the store.
        ticks: the range.
        step_ms: time that one point covers, milliseconds; None: that of the range.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = _PROGRESS_SQL.format(condition=ticks.topic_condition, step_ms=step_ms or ticks.step_ms)
    points = range_records(tables, ticks, REASSIGNMENT_PROGRESS, sql, partial(record, ProgressPoint))
    return sorted(points, key=lambda point: point.tick_ms)


@dataclass(frozen=True)
class SwitchedPartitions:
    """Listed partitions whose leadership a broker took over at a tick.

    Attributes:
        tick_ms: the first tick with the new leader, epoch milliseconds.
        broker: the new leader.
        previous_leader: the leader before.
        partitions: number of the partitions.
        names: names of the first few of them.
    """

    tick_ms: int
    broker: int
    previous_leader: int
    partitions: int
    names: tuple[str, ...]

    def includes(self, topic: str) -> bool | None:
        """Return whether a topic has some of them; None: it has none of those with a name, and there are more."""
        if any(name.rpartition("-")[0] == topic for name in self.names):
            return True
        return None if self.partitions > len(self.names) else False


# A row of gold has the switches of its rate window, so that each is in several rows; the first has it as it was then.
# Windows over all partitions of a day would take gigabytes.
_SWITCHES_SQL = """SELECT switch['switch_tick_ms'] AS tick_ms, broker, switch['previous_leader'] AS previous_leader,
        max(switch['partitions']) AS partitions, first_value(switch['names'] ORDER BY tick_ms) AS names
    FROM (SELECT tick_ms, broker, unnest(switches) AS switch FROM data WHERE {condition})
    GROUP BY switch['switch_tick_ms'], broker, switch['previous_leader'] ORDER BY 1 DESC LIMIT {most}"""


def leader_switches(tables: OpenTables, ticks: TickRange) -> list[SwitchedPartitions]:
    """Return the leader switches of listed partitions, the last first; with a topic those that may include it too.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = _SWITCHES_SQL.format(condition=ticks.condition, most=MOST_EVENTS)
    found = range_records(tables, ticks, THROTTLE_HEADROOM, sql, partial(record, SwitchedPartitions))
    switches = sorted(found, key=lambda switch: -switch.tick_ms)
    topic = ticks.topic
    return [switch for switch in switches if topic is None or switch.includes(topic) is not False]


@dataclass(frozen=True)
class ThrottleStep:
    """A broker and role with another throttle, or another verdict, than at the tick before.

    Attributes:
        tick_ms: the tick, epoch milliseconds.
        broker: the broker.
        role: its role.
        throttle_bytes_per_s: throttle in force; None if there is none, or it is unknown.
        is_unread: whether it is unknown, as of ``ThrottleStatus.is_rate_unread``.
        before_bytes_per_s: that of the tick before.
        was_unread: whether that was unknown.
        verdict: verdict on it.
        before_verdict: that of the tick before.
    """

    tick_ms: int
    broker: int
    role: str
    throttle_bytes_per_s: float | None
    is_unread: bool
    before_bytes_per_s: float | None
    was_unread: bool
    verdict: str
    before_verdict: str


_CHANGES_SQL = """SELECT * FROM (
        SELECT tick_ms, broker, role, throttle_bytes_per_s, is_unread, verdict,
            lag(throttle_bytes_per_s) OVER w AS before_bytes_per_s, lag(is_unread) OVER w AS was_unread,
            lag(verdict) OVER w AS before_verdict
        FROM (SELECT tick_ms, broker, role, throttle_bytes_per_s, verdict,
                (throttle_bytes_per_s IS NULL AND verdict = 'no_data' AND coalesce(throttle_source, '') <> 'none')
                    AS is_unread
            FROM data WHERE {condition})
        WINDOW w AS (PARTITION BY broker, role ORDER BY tick_ms))
    WHERE before_verdict IS NOT NULL AND ((before_bytes_per_s IS DISTINCT FROM throttle_bytes_per_s)
        OR was_unread <> is_unread OR before_verdict <> verdict)
    ORDER BY tick_ms DESC LIMIT {most}"""


def rate_changes(tables: OpenTables, ticks: TickRange) -> list[ThrottleStep]:
    """Return the changes of throttles and verdicts, the last first.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = _CHANGES_SQL.format(condition=ticks.condition, most=MOST_EVENTS)
    changes = range_records(tables, ticks, THROTTLE_HEADROOM, sql, partial(record, ThrottleStep))
    return sorted(changes, key=lambda change: -change.tick_ms)


@dataclass(frozen=True)
class AlertStep:
    """A state change of an alert."""

    tick_ms: int
    alert_id: str
    kind: str
    severity: str
    state: str
    subject: str
    summary: str


_ALERTS_SQL = """SELECT tick_ms, alert_id, kind, severity, state, subject, summary FROM data
    WHERE "cluster" = {cluster} AND state <> 'pending' AND tick_ms BETWEEN {first_ms} AND {last_ms}
    ORDER BY tick_ms DESC, event_ms DESC LIMIT {most}"""


def alert_steps(tables: OpenTables, ticks: TickRange) -> list[AlertStep]:
    """Return what became of alerts, the last first, without those that are only pending.

    Raises:
        HeadroomError: the table cannot be read.
    """
    sql = _ALERTS_SQL.format(
        cluster=sql_text(ticks.cluster), first_ms=ticks.first_ms, last_ms=ticks.last_ms, most=MOST_EVENTS
    )
    return tables.records(ALERT_EVENTS, sql, partial(record, AlertStep))


_COMMANDS_SQL = """SELECT min(at_ms) AS at_ms FROM data
    WHERE "cluster" = {cluster} AND at_ms BETWEEN {first_ms} AND {last_ms}
    GROUP BY run_id, command ORDER BY 1 DESC LIMIT {most}"""


@dataclass(frozen=True)
class RangeEvents:
    """What happened in a range and explains a curve, the last first.

    Attributes:
        switches: leader switches of listed partitions.
        alerts: state changes of alerts.
        commands_ms: first steps of commands that changed the cluster, epoch milliseconds.
    """

    switches: Sequence[SwitchedPartitions]
    alerts: Sequence[AlertStep]
    commands_ms: Sequence[int]


def range_events(tables: OpenTables, ticks: TickRange) -> RangeEvents:
    """Return what happened in a range.

    Raises:
        HeadroomError: a table cannot be read.
    """
    cluster = sql_text(ticks.cluster)
    sql = _COMMANDS_SQL.format(cluster=cluster, first_ms=ticks.first_ms, last_ms=ticks.last_ms, most=MOST_EVENTS)
    commands_ms = [row["at_ms"] for row in tables.rows(ACTION_JOURNAL, sql) or ()]
    return RangeEvents(leader_switches(tables, ticks), alert_steps(tables, ticks), commands_ms)
