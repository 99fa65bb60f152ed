"""The desk: takes the sides of each tick, gives the events, and watches that ticks go on coming."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from alerts.faults import Faults
from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus
from alerts.lifecycle import Lifecycle
from alerts.recommendations.recommender import Recommender
from alerts.rules.eta_slipping import EtaTracker
from alerts.rules.leader_imbalance import KINDS as BALANCE_KINDS
from alerts.rules.no_ticks import TICKS, MissingTicks, is_missing
from alerts.rules.store_unwritable import STORE, unwritable
from alerts.rules.throttle_below_required import Assessment, Subject, assess
from alerts.text.formatting import format_duration
from planning.elections.summary import ElectionPlanSummary
from planning.finish.finish_time import Earlier
from planning.finish.quota import WINDOW_S
from planning.throttles.load import BrokerRole, ThrottleLoad
from planning.throttles.recommendation import ThrottlePolicy
from schemas.alerts import AlertEvent, AlertKind
from schemas.config import ClusterSettings, Settings

log = logging.getLogger(__name__)
_START_S = 90.0
# Besides what is configured. A broker that dies may be the controller and lead the ticks, and the next controller gives
# it its 9 s anew: for some 12 s nobody takes a tick, and for 4 s more nobody reads one.
_FAILOVER_S = 5.0
# Balances come by way of their table, some ticks late.
_BALANCE_S, _BALANCE_TICKS = 60.0, 6
# While a cluster is out of balance elections are planned at least every minute.
_PLAN_S = 120.0
_Tick = tuple[int, Mapping[BrokerRole, ThrottleLoad]]
# Ticks of a backlog come in faster than they were made; where they do not, a tick that seems old is of a collector
# whose clock is behind, or is always judged late.
_BACKLOG_MS = 1000
# Ticks that are further apart were kept from coming, or their clock was set forward: nobody saw what lasted meanwhile.
_GAP_S = 60.0
# A gold job that stopped is started again within minutes; after longer nobody may be counting any more.
_UNCOUNTED_S = 15 * 60.0
_NOT_COUNTED = "ended, for the balance of leaders is no longer known: it was not counted for {}"
_NOT_CONFIGURED = "ended, for no configuration names cluster {} any more"


@dataclass(frozen=True)
class WatchedCluster:
    """One of the clusters whose ticks are judged.

    Attributes:
        settings: its own.
        config: the file that they are from, as it stands in commands; None: none.
    """

    settings: Settings
    config: str | None = None

    def recommender(self, earlier: Earlier = (), elections: ElectionPlanSummary | None = None) -> Recommender:
        """Return what recommends for this cluster.

        Args:
            earlier: the ticks before.
            elections: the plan of preferred elections; None: there is none.
        """
        alerts, cluster = self.settings.alerts, self.settings.cluster
        wish = ThrottlePolicy(alerts.margin_ratio, alerts.finish_within, cluster.replication_capacity)
        servers = alerts.bootstrap_servers or cluster.bootstrap_servers
        return Recommender(wish, servers, self.config, earlier, elections)

    def silent_after_s(self) -> float:
        """Return how long its ticks may stay away, seconds."""
        return max(self.settings.alerts.no_data_s + _FAILOVER_S, 3 * self.settings.collect.interval_s)

    def balances_old_after_s(self) -> float:
        """Return how old the last balances may be before they are of the past, seconds."""
        return max(_BALANCE_S, _BALANCE_TICKS * self.settings.collect.interval_s)

    def gap_after_s(self) -> float:
        """Return how far apart two ticks in a row may be for what both say to have lasted in between, seconds."""
        return max(_GAP_S, 3 * self.settings.collect.interval_s)

    def uncounted_after_s(self) -> float:
        """Return for how long there may be no balances that count before alerts about them end, seconds."""
        return max(_UNCOUNTED_S, 3 * self.settings.spark.gold_trigger_s, 3 * self.balances_old_after_s())


class AlertEngine:
    """Rules and lifecycle of all clusters, safe to use from the alert path and the watchdog at once.

    Args:
        settings: all settings; their section ``[alerts]`` holds for every cluster but for what is recommended.
        clock_ms: gives the time now, epoch milliseconds.
        config: the configuration file that stands in commands; None: none.
        others: further clusters whose ticks come by the same topic.
        elapsed_ms: gives milliseconds since some moment, whatever the clock is set to; None: as the clock has it.
    """

    def __init__(
        self,
        settings: Settings,
        clock_ms: Callable[[], int],
        config: str | None = None,
        others: Sequence[WatchedCluster] = (),
        elapsed_ms: Callable[[], int] | None = None,
    ) -> None:
        self._settings = settings
        self._clusters = {w.settings.cluster.name: w for w in (WatchedCluster(settings, config), *others)}
        self._lifecycle = Lifecycle(settings.alerts.resolve_s, clock_ms)
        self._clock_ms = clock_ms
        self._elapsed_ms = elapsed_ms or clock_ms
        # Cluster to the last tick (None: none since the start) and when it was seen, by ``elapsed_ms``.
        self._last_tick: dict[str, tuple[int | None, int]] = {}
        # Cluster to its newest tick, and to those since then that are older: the clock was set back.
        self._newest_ms: dict[str, int] = {}
        self._older_ms: dict[str, int] = {}
        # How old the last tick of a cluster was when it was judged, milliseconds.
        self._ages_ms: dict[str, int] = {}
        self._start_ms = self._elapsed_ms()
        # Cluster to its ticks of as long as a quota remembers, youngest first.
        self._recent: dict[str, list[_Tick]] = {}
        self._expectations: dict[str, EtaTracker] = defaultdict(EtaTracker)
        # Cluster to the last balances of its brokers, and their tick.
        self._balances: dict[str, tuple[int, Sequence[LeaderBalance]]] = {}
        self._elections: dict[str, ElectionPlanSummary] = {}
        # Cluster to when the first tick without balances that count was judged, by ``elapsed_ms``.
        self._uncounted_ms: dict[str, int] = {}
        # Why nothing can be kept; None: it can.
        self._trouble: str | None = None
        self._faults = Faults(log)
        for name in filter(None, self._clusters):
            self._last_tick[name] = (None, self._start_ms)
        self._lock = threading.Lock()

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Take up the alerts that stored events tell of."""
        with self._lock:
            self._lifecycle.restore(events)

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        with self._lock:
            return self._lifecycle.active()

    def observe(self, cluster: str, tick_ms: int, sides: Sequence[ThrottleStatus]) -> list[AlertEvent]:
        """Return the events that one whole tick brings.

        Args:
            cluster: name of the cluster.
            tick_ms: time of the tick, epoch milliseconds.
            sides: every broker and role of the tick.
        """
        with self._lock:
            self._note_order(cluster, tick_ms)
        earlier = self._earlier(cluster, tick_ms, sides)
        elections = self._young_elections(cluster, tick_ms)
        alerts, recommender = self._settings.alerts, self._watched(cluster).recommender(earlier, elections)
        balances = self._young_balances(cluster, tick_ms)
        assessment = assess(sides, alerts, recommender, balances or ())
        if self._trouble is not None and cluster == self._settings.cluster.name:
            assessment.findings.append(unwritable(self._trouble, recommender))
        slip = self._expectations[cluster].observe(tick_ms, sides, alerts, recommender)
        assessment.findings.extend(slip.findings)
        with self._lock:
            if self._last_tick.get(cluster, (None, 0))[0] is None:
                self._lifecycle.first_tick(cluster, tick_ms)
            assessment.held.update(slip.held, self._held_silence(cluster, self._clock_ms() - tick_ms))
            if balances is None:
                assessment.held.update(found for found in self._standing(cluster) if found[0] in BALANCE_KINDS)
            events = self._lifecycle.observe(cluster, tick_ms, assessment)
            # At last: a tick that fails was not judged, and is missing.
            self._last_tick[cluster] = (tick_ms, self._elapsed_ms())
            return [*events, *self._uncounted(cluster, tick_ms, balances is not None)]

    def _uncounted(self, cluster: str, tick_ms: int, is_counted: bool) -> list[AlertEvent]:
        """Return the events that end alerts about the balance of leaders once nobody has counted it for long."""
        if is_counted:
            self._uncounted_ms.pop(cluster, None)
            return []
        now_ms, limit_s = self._elapsed_ms(), self._watched(cluster).uncounted_after_s()
        if now_ms - self._uncounted_ms.setdefault(cluster, now_ms) < limit_s * 1000:
            return []
        return self._lifecycle.end(cluster, tick_ms, _NOT_COUNTED.format(format_duration(limit_s)), BALANCE_KINDS)

    def _note_order(self, cluster: str, tick_ms: int) -> None:
        """Move the past along if the clock of the ticks was set back: two ticks in a row are older than one before.

        A single one is of a second collector, or late. What is further ahead than ticks may be apart moves it along at
        once, for nobody knows what lasted in between.
        """
        newest_ms, older_ms = self._newest_ms.get(cluster), self._older_ms.pop(cluster, None)
        if newest_ms is None or tick_ms >= newest_ms:
            if newest_ms is not None:
                self._note_gap(cluster, tick_ms - newest_ms)
            self._newest_ms[cluster] = tick_ms
        elif older_ms is None or tick_ms <= older_ms:
            self._older_ms[cluster] = tick_ms
        else:
            # As far apart as these two are the newest one and the first of them.
            by_ms = newest_ms - older_ms + tick_ms - older_ms
            log.warning("the clock that ticks of %s have their times from was set back by %d ms", cluster, by_ms)
            self._lifecycle.move(cluster, -by_ms)
            self._expectations[cluster].move(-by_ms, older_ms)
            self._move_counts(cluster, -by_ms, tick_ms)
            self._newest_ms[cluster] = tick_ms

    def _note_gap(self, cluster: str, gap_ms: int) -> None:
        """Move the past along if two ticks in a row are so far apart that nobody knows what lasted in between.

        If they came that far apart, time has passed: moves went on, and what was expected of them holds as it was.
        """
        watched = self._watched(cluster)
        limit_ms, interval_ms = watched.gap_after_s() * 1000, round(watched.settings.collect.interval_s * 1000)
        if gap_ms <= limit_ms:
            return
        now_ms = self._elapsed_ms()
        # Of a cluster that nobody configured here, and of which no tick came for long, it is forgotten when one did.
        _, seen_ms = self._last_tick.get(cluster, (None, now_ms - gap_ms))
        set_ms = gap_ms - max(interval_ms, now_ms - seen_ms)
        self._lifecycle.move(cluster, gap_ms - interval_ms)
        if set_ms > limit_ms:
            log.warning("the clock that ticks of %s have their times from was set forward by %d ms", cluster, set_ms)
            self._expectations[cluster].move(set_ms)
            self._move_counts(cluster, set_ms)

    def _move_counts(self, cluster: str, by_ms: int, later_than_ms: int = -1) -> None:
        """Move the last balances and the last plan along with the clock, if they are later than a time."""
        counted_ms, balances = self._balances.get(cluster, (-1, ()))
        if counted_ms > later_than_ms:
            self._balances[cluster] = (counted_ms + by_ms, balances)
        plan = self._elections.get(cluster)
        if plan is not None and plan.tick_ms > later_than_ms:
            self._elections[cluster] = replace(plan, tick_ms=plan.tick_ms + by_ms)

    def update_leader_balance(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        """Take up how leaders are shared out, for the ticks that are judged from now on.

        Args:
            cluster: name of the cluster.
            tick_ms: tick that they are of, epoch milliseconds.
            balances: every broker that is preferred to lead anything.
        """
        self._balances[cluster] = (tick_ms, balances)

    def update_store_trouble(self, trouble: str | None) -> None:
        """Take up that nothing can be kept, for the ticks that are judged from now on.

        Args:
            trouble: which place cannot be written and why; None: it can be again.
        """
        self._trouble = trouble

    def update_election_plan(self, cluster: str, plan: ElectionPlanSummary) -> None:
        """Take up how a cluster that is out of balance would be put right.

        Args:
            cluster: name of the cluster.
            plan: its last plan of preferred elections.
        """
        self._elections[cluster] = plan

    def _young_elections(self, cluster: str, tick_ms: int) -> ElectionPlanSummary | None:
        """Return the last plan of elections; None: there is none, or its time is too far from that of a tick."""
        plan = self._elections.get(cluster)
        old_s = self._watched(cluster).balances_old_after_s() + _PLAN_S
        return None if plan is None or abs(tick_ms - plan.tick_ms) > old_s * 1000 else plan

    def _young_balances(self, cluster: str, tick_ms: int) -> Sequence[LeaderBalance] | None:
        """Return the last balances; None: none are known, or their time is too far from that of a tick.

        Of a time that is yet to come is what was counted before the clock was set back.
        """
        counted_ms, balances = self._balances.get(cluster, (None, ()))
        old_s = self._watched(cluster).balances_old_after_s()
        return None if counted_ms is None or abs(tick_ms - counted_ms) > old_s * 1000 else balances

    def _earlier(self, cluster: str, tick_ms: int, sides: Sequence[ThrottleStatus]) -> Earlier:
        """Return the ticks before this one that a quota still remembers, and keep this one for the next."""
        tick = tick_ms, {(side.broker, side.role): side.demand for side in sides}
        before = [t for t in self._recent.get(cluster, []) if t[0] < tick_ms]
        # One more than the window reaches back: it says what passed in the oldest second.
        young = [t for t in before if tick_ms - t[0] <= WINDOW_S * 1000]
        kept = before[: len(young) + 1]
        self._recent[cluster] = [tick, *kept]
        return [((tick_ms - earlier_ms) / 1000, demands) for earlier_ms, demands in kept]

    def silence(self, batch_s: float | None = None) -> list[AlertEvent]:
        """Return the events of clusters whose ticks stay away; call it now and then.

        Args:
            batch_s: for how long a batch of ticks has been worked on; None: none is.
        """
        now, elapsed_ms, old_s = self._clock_ms(), self._elapsed_ms(), self._settings.alerts.no_data_s
        events: list[AlertEvent] = []
        with self._lock:
            for cluster in self._strangers(elapsed_ms):
                events.extend(self._lifecycle.end(cluster, now, _NOT_CONFIGURED.format(cluster)))
                self._last_tick.pop(cluster, None)
            for cluster, (tick_ms, seen_ms) in self._last_tick.items():
                if cluster not in self._clusters:
                    # Nobody waits for it here.
                    continue
                limit_s = self._watched(cluster).silent_after_s()
                # Before the first tick the collector and Spark take their time to start.
                away_ms = elapsed_ms - seen_ms
                limit_s = limit_s if tick_ms is not None else max(limit_s, _START_S)
                if is_missing(away_ms / 1000, limit_s, batch_s):
                    silence = MissingTicks(cluster, tick_ms, now - away_ms, now, batch_s, old_s)
                    # In the collector's time: its ticks, when they come again, must not be older than this.
                    at_ms = now if tick_ms is None else tick_ms + away_ms
                    try:
                        events.extend(self._lifecycle.silence(cluster, at_ms, self._silent(silence)))
                    except Exception as error:
                        what = f"that ticks of cluster {cluster} stay away cannot be told"
                        self._faults.tell(cluster, what, error)
        return events

    def _strangers(self, elapsed_ms: int) -> list[str]:
        """Return the clusters that nobody configured here, of which no tick comes: renamed, or taken out."""
        known = {event.cluster for event in self._lifecycle.active()} | self._last_tick.keys()
        return [
            cluster
            for cluster in sorted(known - self._clusters.keys())
            if elapsed_ms - self._last_tick.get(cluster, (None, self._start_ms))[1] >= _START_S * 1000
        ]

    def _watched(self, cluster: str) -> WatchedCluster:
        """Return a cluster as it is configured; of one that nobody configured here the commands leave a blank."""
        if cluster in self._clusters:
            return self._clusters[cluster]
        unknown = ClusterSettings(name=cluster, bootstrap_servers=f"<bootstrap servers of {cluster}>")
        alerts = replace(self._settings.alerts, bootstrap_servers="")
        return WatchedCluster(replace(self._settings, cluster=unknown, alerts=alerts), f"<headroom.toml of {cluster}>")

    def _silent(self, silence: MissingTicks) -> Assessment:
        """Return that ticks stay away; what other alerts said is held, for nothing is known.

        Of the store is known what there is to know: that it cannot be written may be why no tick is judged.
        """
        recommender = self._watched(silence.cluster).recommender()
        findings, standing = [silence.finding(recommender)], self._standing(silence.cluster)
        if silence.cluster == self._settings.cluster.name:
            standing.discard((AlertKind.STORE_UNWRITABLE, STORE))
            if self._trouble is not None:
                findings.append(unwritable(self._trouble, recommender))
        return Assessment(findings, standing)

    def _standing(self, cluster: str) -> set[Subject]:
        """Return what the alerts of a cluster that are pending or firing are about."""
        active = self._lifecycle.active()
        return {(AlertKind(event.kind), event.subject) for event in active if event.cluster == cluster}

    def _held_silence(self, cluster: str, age_ms: int) -> set[tuple[AlertKind, str]]:
        """Hold the silence alert while the ticks that come are old ones, from a backlog."""
        before_ms, self._ages_ms[cluster] = self._ages_ms.get(cluster), age_ms
        is_old = age_ms > self._settings.alerts.no_data_s * 1000
        is_steady = before_ms is not None and abs(age_ms - before_ms) <= _BACKLOG_MS
        return {(AlertKind.NO_DATA, TICKS)} if is_old and not is_steady else set()
