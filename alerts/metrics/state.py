"""State behind ``/metrics``: written by the alert path, read by scrapes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Generic, TypeVar

from headroom.alerts.delivery.outbox import DeliveryFigures
from headroom.alerts.inputs.broker_load import BalanceAdvice, MinuteLoads
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.metrics.histogram import BucketCounts, empty_counts
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState
from headroom.schemas.metrics import BATCH, COLLECT, DECISION

AlertKey = tuple[str, str, str]
T = TypeVar("T")


@dataclass(frozen=True)
class Limits:
    """Age limits for the ticks of a cluster.

    Attributes:
        stale_s: age from which its values are stale, seconds.
        first_s: longest time from the start to its first tick, seconds.
    """

    stale_s: float
    first_s: float


@dataclass(frozen=True)
class Collected:
    """Collection of one tick.

    Attributes:
        took_s: duration, seconds; None if unknown.
        unanswered_brokers: number of brokers without an answer, or with an incomplete one.
        skipped_ticks: number of ticks before it that were skipped to keep the schedule.
    """

    took_s: float | None
    unanswered_brokers: int
    skipped_ticks: int


@dataclass(frozen=True)
class Published(Generic[T]):
    """The last published result of one kind for a cluster.

    Attributes:
        tick_ms: time of its tick, epoch milliseconds.
        published_ms: time of its publication, epoch milliseconds.
        value: the result.
    """

    tick_ms: int
    published_ms: int
    value: T

    def age_s(self, now_ms: int) -> float:
        """Return its age in seconds; measured from publication if the collector's clock is ahead."""
        return (now_ms - min(self.tick_ms, self.published_ms)) / 1000


@dataclass(frozen=True)
class PublishedAlert:
    """An alert after its last event."""

    severity: str
    state: str
    tick_ms: int

    @property
    def order(self) -> tuple[int, int]:
        """Return the sort key of an alert's events: time, then state."""
        return self.tick_ms, AlertState(self.state).rank


@dataclass(frozen=True)
class MetricsSnapshot:
    """Copy of the whole state at one moment.

    Attributes:
        now_ms: time of the copy, epoch milliseconds.
        start_ms: time of the start, epoch milliseconds.
        ticks: last tick by cluster; missing if there was none.
        balances: last leader balances by cluster; missing if there were none.
        loads: last loads of brokers by cluster; missing if there were none.
        migrations: last progress of migrations by cluster; missing if there was none.
        proposals: last proposal to balance them by cluster; missing if there was none.
        alerts: alerts by cluster, kind and subject, including resolved ones.
        events: number of events since the start, by cluster, kind and state.
        rows: number of throttle statuses since the start, by cluster.
        decisions: by cluster, time from a tick to its published verdict.
        unanswered: by cluster, number of brokers without an answer in the last tick.
        errors: by cluster, number of missing broker answers since the start.
        skipped: by cluster, number of skipped ticks since the start.
        collections: by cluster, time to collect a tick.
        batches: durations of micro-batches.
        batch_s: how long the current micro-batch has been running, seconds; None if none is.
        deliveries: delivery state of each receiver.
        quarantined: number of quarantined messages; None if unknown.
    """

    now_ms: int
    start_ms: int
    ticks: Mapping[str, Published[tuple[ThrottleStatus, ...]]]
    balances: Mapping[str, Published[tuple[LeaderBalance, ...]]]
    loads: Mapping[str, Published[MinuteLoads]]
    migrations: Mapping[str, Published[tuple[MigrationProgress, ...]]]
    proposals: Mapping[str, BalanceAdvice]
    alerts: Mapping[AlertKey, PublishedAlert]
    events: Mapping[AlertKey, int]
    rows: Mapping[str, int]
    decisions: Mapping[str, BucketCounts]
    unanswered: Mapping[str, int]
    errors: Mapping[str, int]
    skipped: Mapping[str, int]
    collections: Mapping[str, BucketCounts]
    batches: BucketCounts
    batch_s: float | None
    deliveries: Sequence[DeliveryFigures]
    quarantined: int | None


class MetricsState:
    """Listener of the alert path that keeps the state behind ``/metrics``; safe for use by any thread.

    Args:
        clusters: names of the configured clusters.
        clock_ms: returns the current time, epoch milliseconds.
    """

    def __init__(self, clusters: Iterable[str], clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._start_ms = clock_ms()
        self._ticks: dict[str, Published[tuple[ThrottleStatus, ...]]] = {}
        self._balances: dict[str, Published[tuple[LeaderBalance, ...]]] = {}
        self._loads: dict[str, Published[MinuteLoads]] = {}
        self._migrations: dict[str, Published[tuple[MigrationProgress, ...]]] = {}
        self._proposals: dict[str, BalanceAdvice] = {}
        self._alerts: dict[AlertKey, PublishedAlert] = {}
        # Counters start at zero, because Prometheus detects the first event only as an increase of an existing series.
        self._events = Counter(
            {(c, kind.value, state.value): 0 for c in clusters for kind in AlertKind for state in AlertState}
        )
        self._rows: Counter[str] = Counter()
        self._decisions: dict[str, BucketCounts] = {}
        self._unanswered: dict[str, int] = {}
        self._errors: Counter[str] = Counter()
        self._skipped: Counter[str] = Counter()
        self._collections: dict[str, BucketCounts] = {}
        self._batches = empty_counts(BATCH.buckets)
        self._batch_s: Callable[[], float | None] = lambda: None
        self._deliveries: Callable[[], Sequence[DeliveryFigures]] = lambda: ()
        self._quarantined: Callable[[], int | None] = lambda: None
        self._lock = threading.Lock()

    def on_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        """Record an evaluated tick."""
        now_ms = self._clock_ms()
        with self._lock:
            self._ticks[cluster] = Published(tick_ms, now_ms, tuple(statuses))
            self._rows[cluster] += len(statuses)
            before = self._decisions.get(cluster) or empty_counts(DECISION.buckets)
            self._decisions[cluster] = before.add(max(0, now_ms - tick_ms) / 1000)

    def on_collected(self, cluster: str, collected: Collected) -> None:
        """Record the collection of a tick, before the tick itself."""
        with self._lock:
            self._unanswered[cluster] = collected.unanswered_brokers
            self._errors[cluster] += collected.unanswered_brokers
            self._skipped[cluster] += collected.skipped_ticks
            if collected.took_s is not None:
                before = self._collections.get(cluster) or empty_counts(COLLECT.buckets)
                self._collections[cluster] = before.add(collected.took_s)

    def on_balances(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        """Record the leader balances of a tick."""
        now_ms = self._clock_ms()
        with self._lock:
            self._balances[cluster] = Published(tick_ms, now_ms, tuple(balances))

    def on_broker_loads(self, cluster: str, loads: MinuteLoads) -> None:
        """Record the loads of a cluster's brokers."""
        now_ms = self._clock_ms()
        with self._lock:
            self._loads[cluster] = Published(loads.tick_ms, now_ms, loads)

    def on_migrations(self, cluster: str, tick_ms: int, progress: Sequence[MigrationProgress]) -> None:
        """Record the progress of the migrations to a cluster."""
        now_ms = self._clock_ms()
        with self._lock:
            self._migrations[cluster] = Published(tick_ms, now_ms, tuple(progress))

    def on_proposal(self, cluster: str, advice: BalanceAdvice) -> None:
        """Record a proposal to balance a cluster's brokers."""
        with self._lock:
            self._proposals[cluster] = advice

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        """Record published alert events."""
        with self._lock:
            for event in events:
                self._events[event.cluster, event.kind, event.state] += 1
                self._update_alert(event)

    def on_batch(self, seconds: float) -> None:
        """Record the duration of a micro-batch, in seconds."""
        with self._lock:
            self._batches = self._batches.add(seconds)

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Restore the active alerts of the previous run; newer events take precedence."""
        with self._lock:
            for event in events:
                self._update_alert(event)

    def follow(
        self,
        batch_s: Callable[[], float | None],
        deliveries: Callable[[], Sequence[DeliveryFigures]] = lambda: (),
        quarantined: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Set the functions that every scrape calls.

        Args:
            batch_s: returns how long the current micro-batch has been running, in seconds.
            deliveries: returns the delivery state of each receiver.
            quarantined: returns the number of quarantined messages; None if unknown.
        """
        self._batch_s, self._deliveries, self._quarantined = batch_s, deliveries, quarantined

    def _update_alert(self, event: AlertEvent) -> None:
        key = (event.cluster, event.kind, event.subject)
        alert = PublishedAlert(event.severity, event.state, event.tick_ms)
        known = self._alerts.get(key)
        if known is None or alert.order >= known.order:
            self._alerts[key] = alert

    def snapshot(self) -> MetricsSnapshot:
        """Return a copy of the current state."""
        batch_s, deliveries, quarantined = self._batch_s(), self._deliveries(), self._quarantined()
        with self._lock:
            return MetricsSnapshot(
                now_ms=self._clock_ms(),
                start_ms=self._start_ms,
                ticks=dict(self._ticks),
                balances=dict(self._balances),
                loads=dict(self._loads),
                migrations=dict(self._migrations),
                proposals=dict(self._proposals),
                alerts=dict(self._alerts),
                events=dict(self._events),
                rows=dict(self._rows),
                decisions=dict(self._decisions),
                unanswered=dict(self._unanswered),
                errors=dict(self._errors),
                skipped=dict(self._skipped),
                collections=dict(self._collections),
                batches=self._batches,
                batch_s=batch_s,
                deliveries=deliveries,
                quarantined=quarantined,
            )
