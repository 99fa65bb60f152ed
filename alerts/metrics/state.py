"""What the alert path has told last: written by its thread, read by scrapes."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass

from alerts.delivery.outbox import DeliveryFigures
from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus
from alerts.metrics.histogram import BucketCounts, empty_counts
from schemas.alerts import AlertEvent, AlertKind, AlertState
from schemas.metrics import BATCH, COLLECT, DECISION

# Of the events of one alert in the same tick the one that comes later in its life is the last.
_STEP = {AlertState.PENDING.value: 0, AlertState.FIRING.value: 1, AlertState.RESOLVED.value: 2}

AlertKey = tuple[str, str, str]


@dataclass(frozen=True)
class Limits:
    """How old the ticks of a cluster may be.

    Attributes:
        stale_s: age from which its numbers are of the past, seconds.
        first_s: how long its first tick after the start may take, seconds.
    """

    stale_s: float
    first_s: float


@dataclass(frozen=True)
class Collected:
    """How a tick was collected.

    Attributes:
        took_s: for how long, seconds; None: not told.
        unanswered_brokers: brokers that did not answer, or did not tell all.
        skipped_ticks: ticks before it that were left out to keep the pace.
    """

    took_s: float | None
    unanswered_brokers: int
    skipped_ticks: int


@dataclass(frozen=True)
class Published:
    """What was told of a tick: its time, and when it was told."""

    tick_ms: int
    published_ms: int

    def age_s(self, now_ms: int) -> float:
        """Return its age in seconds; of a collector whose clock is ahead, that of the telling."""
        return (now_ms - min(self.tick_ms, self.published_ms)) / 1000


@dataclass(frozen=True)
class PublishedTick(Published):
    """The last tick of a cluster, and its sides."""

    statuses: tuple[ThrottleStatus, ...]


@dataclass(frozen=True)
class PublishedBalance(Published):
    """The last tick of a cluster of which it is known how leaders are shared out, and how."""

    balances: tuple[LeaderBalance, ...]


@dataclass(frozen=True)
class PublishedAlert:
    """An alert as its last event left it."""

    severity: str
    state: str
    tick_ms: int

    @property
    def order(self) -> tuple[int, int]:
        """Return what rises from one event of an alert to the next."""
        return self.tick_ms, _STEP[self.state]


@dataclass(frozen=True)
class Snapshot:
    """All that is known at one moment.

    Attributes:
        now_ms: the moment, epoch milliseconds.
        start_ms: when the state was made.
        ticks: the last tick by cluster; one that is missing has had none.
        balances: how leaders were shared out last by cluster; of one that is missing nothing was told.
        alerts: by cluster, kind and subject, those that are resolved included.
        events: how many events since the start by cluster, kind and state.
        rows: how many sides since the start by cluster.
        decisions: by cluster, how long after its time a tick was told.
        unanswered: by cluster, how many brokers did not answer in the last tick.
        errors: by cluster, how many answers of brokers were missing since the start.
        skipped: by cluster, how many ticks were left out since the start.
        collections: by cluster, how long it took to collect a tick.
        batches: how long batches took.
        batch_s: for how long the present batch has been worked on; None: there is none.
        deliveries: how the delivery to each receiver stands.
        quarantined: how many messages were not believed; None: unknown.
    """

    now_ms: int
    start_ms: int
    ticks: Mapping[str, PublishedTick]
    balances: Mapping[str, PublishedBalance]
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
    """Listens to the alert path. Every method may be called from any thread.

    Args:
        clusters: names of the clusters whose ticks are awaited.
        clock_ms: gives the time now, epoch milliseconds.
    """

    def __init__(self, clusters: Iterable[str], clock_ms: Callable[[], int]) -> None:
        self._clock_ms = clock_ms
        self._start_ms = clock_ms()
        self._ticks: dict[str, PublishedTick] = {}
        self._balances: dict[str, PublishedBalance] = {}
        self._alerts: dict[AlertKey, PublishedAlert] = {}
        # From zero on, for the first event of a kind is a rise only over a zero that was there before.
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
        """Take up a tick that has been told."""
        now_ms = self._clock_ms()
        with self._lock:
            self._ticks[cluster] = PublishedTick(tick_ms, now_ms, tuple(statuses))
            self._rows[cluster] += len(statuses)
            before = self._decisions.get(cluster) or empty_counts(DECISION.buckets)
            self._decisions[cluster] = before.add(max(0, now_ms - tick_ms) / 1000)

    def on_collected(self, cluster: str, collected: Collected) -> None:
        """Take up how a tick was collected that is told next."""
        with self._lock:
            self._unanswered[cluster] = collected.unanswered_brokers
            self._errors[cluster] += collected.unanswered_brokers
            self._skipped[cluster] += collected.skipped_ticks
            if collected.took_s is not None:
                before = self._collections.get(cluster) or empty_counts(COLLECT.buckets)
                self._collections[cluster] = before.add(collected.took_s)

    def on_balances(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        """Take up how leaders are shared out."""
        now_ms = self._clock_ms()
        with self._lock:
            self._balances[cluster] = PublishedBalance(tick_ms, now_ms, tuple(balances))

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        """Take up events that have been told."""
        with self._lock:
            for event in events:
                self._events[event.cluster, event.kind, event.state] += 1
                self._update_alert(event)

    def on_batch(self, seconds: float) -> None:
        """Take up how long a batch took."""
        with self._lock:
            self._batches = self._batches.add(seconds)

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Take up the alerts that a former run left; events that are heard of meanwhile win."""
        with self._lock:
            for event in events:
                self._update_alert(event)

    def follow(
        self,
        batch_s: Callable[[], float | None],
        deliveries: Callable[[], Sequence[DeliveryFigures]] = lambda: (),
        quarantined: Callable[[], int | None] = lambda: None,
    ) -> None:
        """Take up what is asked at every scrape.

        Args:
            batch_s: tells for how long the present batch has been worked on.
            deliveries: tells how the delivery to each receiver stands.
            quarantined: tells how many messages were not believed; None: unknown.
        """
        self._batch_s, self._deliveries, self._quarantined = batch_s, deliveries, quarantined

    def _update_alert(self, event: AlertEvent) -> None:
        key = (event.cluster, event.kind, event.subject)
        alert = PublishedAlert(event.severity, event.state, event.tick_ms)
        known = self._alerts.get(key)
        if known is None or alert.order >= known.order:
            self._alerts[key] = alert

    def snapshot(self) -> Snapshot:
        """Return all that is known now."""
        batch_s, deliveries, quarantined = self._batch_s(), self._deliveries(), self._quarantined()
        with self._lock:
            return Snapshot(
                now_ms=self._clock_ms(),
                start_ms=self._start_ms,
                ticks=dict(self._ticks),
                balances=dict(self._balances),
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
