"""Alert engine: evaluates the throttle statuses of each tick, returns alert events, and detects missing ticks."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace

from alerts.faults import Faults
from alerts.finding import Subject
from alerts.inputs.broker_load import BalanceAdvice, BalanceInputs, LossRisk, MinuteLoads
from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus
from alerts.lifecycle import Lifecycle
from alerts.recommendations.recommender import Recommender
from alerts.rules.balance.broker_load_rule import BrokerLoadRule
from alerts.rules.catalogue import RULES, evaluate_missing_ticks, evaluate_rules
from alerts.rules.leaders.leader_balance_rule import LeaderBalanceRule
from alerts.rules.no_ticks import Machine, MissingTicks, is_missing
from alerts.rules.reassignments.eta_tracker import EtaTracker
from alerts.rules.rule import Assessment, RuleInputs
from alerts.text.formatting import format_duration
from planning.elections.summary import ElectionPlanSummary
from planning.finish.finish_time import Earlier
from planning.finish.quota import WINDOW_S
from planning.reassignments.run.owners import ThrottleOwner
from planning.throttles.load import ThrottleLoad
from planning.throttles.recommendation import ThrottlePolicy
from schemas.alerts import AlertEvent, AlertKind, AlertState
from schemas.config import ClusterSettings, Settings
from schemas.keys import BrokerRole

log = logging.getLogger(__name__)
# The collector and Spark need this long to start, so the first tick may be this late.
_START_S = 90.0
# Added to the configured limit. A broker that dies may be the controller and lead the ticks topic. The next controller
# waits another 9 s for it: ticks cannot be written for 12 s and cannot be read for 4 s more.
_FAILOVER_S = 5.0
# Leader balances are read from their gold table, so they arrive some ticks late, or after the table's idle interval.
_BALANCE_S, _BALANCE_TICKS, _BALANCE_INTERVALS = 60.0, 6, 3
# Elections of an imbalanced cluster are planned at least once a minute.
_PLAN_S = 120.0
_Tick = tuple[int, Mapping[BrokerRole, ThrottleLoad]]
# Ticks of a backlog arrive faster than they were produced, so their age falls. A constant age means that the
# collector's clock is behind, or that every tick is evaluated late.
_BACKLOG_MS = 1000
# A larger gap means delayed ticks or a clock that was set forward: it is unknown whether a condition lasted throughout.
_GAP_S = 60.0
# A gold job that stopped is restarted within minutes. After this time leader balances may not be counted any more.
_UNCOUNTED_S = 15 * 60.0
_BALANCE_KINDS = frozenset(rule.kind for rule in RULES if isinstance(rule, LeaderBalanceRule))
_LOAD_KINDS = frozenset(rule.kind for rule in RULES if isinstance(rule, BrokerLoadRule))
_RISK_KINDS = frozenset({AlertKind.CAPACITY_AT_RISK})
# A lost capacity is estimated this often at least, in intervals between proposals, before the estimate is stale.
_RISK_INTERVALS = 3
# Rows of broker loads are a minute apart.
_LOADS_S = 180.0
_NOT_COUNTED = "ended, for {} is no longer known: it was not counted for {}"
_NOT_CONFIGURED = "ended, for no configuration names cluster {} any more"


@dataclass(frozen=True)
class WatchedCluster:
    """A cluster whose ticks are evaluated.

    Attributes:
        settings: settings of this cluster.
        config: configuration file as recommended commands name it; None if there is none.
    """

    settings: Settings
    config: str | None = None

    def recommender(self, earlier: Earlier = (), elections: ElectionPlanSummary | None = None) -> Recommender:
        """Return the recommender for this cluster.

        Args:
            earlier: previous ticks: age in seconds and throttle loads.
            elections: plan of preferred elections; None if there is none.
        """
        alerts, cluster = self.settings.alerts, self.settings.cluster
        policy = ThrottlePolicy(alerts.margin_ratio, alerts.finish_within, cluster.replication_capacity)
        servers = alerts.bootstrap_servers or cluster.bootstrap_servers
        return Recommender(policy, servers, self.config, earlier, elections)

    def missing_ticks_after_s(self) -> float:
        """Return how long ticks may be missing before an alert, in seconds."""
        return max(self.settings.alerts.no_data_s + _FAILOVER_S, 3 * self.settings.collect.interval_s)

    def balances_stale_after_s(self) -> float:
        """Return the age from which leader balances are stale, in seconds."""
        idle_s = self.settings.spark.gold_idle_s()
        return max(_BALANCE_S, _BALANCE_TICKS * self.settings.collect.interval_s, _BALANCE_INTERVALS * idle_s)

    def loads_stale_after_s(self) -> float:
        """Return the age from which loads of brokers are stale, in seconds."""
        return max(_LOADS_S, self.balances_stale_after_s())

    def risks_stale_after_s(self) -> float:
        """Return the age from which an estimate of lost capacity is stale, in seconds."""
        return _RISK_INTERVALS * self.settings.balance.propose_every_s

    def gap_after_s(self) -> float:
        """Return the largest gap between two ticks across which a condition counts as continuous, in seconds."""
        return max(_GAP_S, 3 * self.settings.collect.interval_s)

    def uncounted_after_s(self) -> float:
        """Return how long fresh leader balances may be missing before alerts on them are resolved, in seconds."""
        return max(_UNCOUNTED_S, 3 * self.settings.spark.gold_trigger_s, 3 * self.balances_stale_after_s())


class AlertEngine:
    """Evaluates rules and alert lifecycles of all clusters; the alert path and the watchdog may call it concurrently.

    Args:
        settings: all settings. Section ``[alerts]`` applies to every cluster, except for recommendations.
        clock_ms: returns the current time, epoch milliseconds.
        config: configuration file that recommended commands name; None if there is none.
        others: further clusters whose ticks are in the same topic.
        elapsed_ms: returns monotonic milliseconds, which setting the clock does not change; None to use ``clock_ms``.
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
        # By cluster: the last tick (None before the first one) and when it was evaluated, by ``elapsed_ms``.
        self._last_tick: dict[str, tuple[int | None, int]] = {}
        # By cluster: its newest tick, and a later one with an older time, the first sign of a clock that was set back.
        self._newest_ms: dict[str, int] = {}
        self._older_ms: dict[str, int] = {}
        # By cluster: age of the last tick at its evaluation, milliseconds.
        self._ages_ms: dict[str, int] = {}
        self._start_ms = self._elapsed_ms()
        # By cluster: its ticks within the quota window, newest first.
        self._recent: dict[str, list[_Tick]] = {}
        self._eta_trackers: dict[str, EtaTracker] = defaultdict(EtaTracker)
        # By cluster: the last leader balances and their tick.
        self._balances: dict[str, tuple[int, Sequence[LeaderBalance]]] = {}
        self._elections: dict[str, ElectionPlanSummary] = {}
        # By cluster: owners of its throttles, by subject in the journal of changes.
        self._owners: dict[str, Mapping[str, ThrottleOwner]] = {}
        # By cluster: loads of its brokers in the last minute.
        self._loads: dict[str, MinuteLoads] = {}
        # By cluster: the last estimate of lost capacity, and when it was made, by ``elapsed_ms``.
        self._risks: dict[str, tuple[int, Sequence[LossRisk]]] = {}
        self._advice: dict[str, BalanceAdvice] = {}
        # By cluster and what is counted: when the first tick without fresh figures was evaluated, by ``elapsed_ms``.
        self._uncounted_ms: dict[tuple[str, str], int] = {}
        # Why the store cannot be written; None if it can.
        self._store_trouble: str | None = None
        self._faults = Faults(log)
        for name in filter(None, self._clusters):
            self._last_tick[name] = (None, self._start_ms)
        self._lock = threading.Lock()

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Restore alerts from stored events, after a restart."""
        with self._lock:
            self._lifecycle.restore(events)

    def await_first_ticks(self) -> None:
        """Allow the next ticks the time of the first ones after a start, because Spark was started again."""
        with self._lock:
            now_ms = self._elapsed_ms()
            self._last_tick = dict.fromkeys(self._last_tick, (None, now_ms))

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        with self._lock:
            return self._lifecycle.active()

    def evaluate(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> list[AlertEvent]:
        """Evaluate one complete tick and return its alert events.

        Args:
            cluster: name of the cluster.
            tick_ms: time of the tick, epoch milliseconds.
            statuses: throttle status of every broker and role.
        """
        with self._lock:
            self._detect_clock_set_back(cluster, tick_ms)
            active, firing = self._active_subjects(cluster), self._active_subjects(cluster, AlertState.FIRING)
        earlier = self._earlier(cluster, tick_ms, statuses)
        recommender = self._settings_of(cluster).recommender(earlier, self._fresh_election_plan(cluster, tick_ms))
        tick = RuleInputs(
            statuses,
            self._settings.alerts,
            recommender,
            self._fresh_balances(cluster, tick_ms),
            tick_ms,
            self._eta_trackers[cluster],
            active,
            self._store_trouble_of(cluster),
            self._is_backlog(cluster, self._clock_ms() - tick_ms),
            owners=self._owners.get(cluster, {}),
            loads=self._load_inputs(cluster, tick_ms),
            firing=firing,
        )
        assessment = evaluate_rules(tick)
        with self._lock:
            if self._last_tick.get(cluster, (None, 0))[0] is None:
                self._lifecycle.on_first_tick(cluster, tick_ms)
            events = self._lifecycle.apply(cluster, tick_ms, assessment)
            # Last, because a tick whose evaluation failed counts as missing.
            self._last_tick[cluster] = (tick_ms, self._elapsed_ms())
            counted = (
                ("the balance of leaders", tick.balances is not None, _BALANCE_KINDS),
                ("the load of brokers", tick.loads.brokers is not None, _LOAD_KINDS),
                ("what a lost broker would add to others", tick.loads.risks is not None, _RISK_KINDS),
            )
            for what, is_counted, kinds in counted:
                events = [*events, *self._resolve_uncounted(cluster, tick_ms, what, is_counted, kinds)]
            return events

    def _resolve_uncounted(
        self, cluster: str, tick_ms: int, what: str, is_counted: bool, kinds: Collection[AlertKind]
    ) -> list[AlertEvent]:
        """Resolve alerts on figures that have been stale for too long, and return the events."""
        if is_counted:
            self._uncounted_ms.pop((cluster, what), None)
            return []
        now_ms, limit_s = self._elapsed_ms(), self._settings_of(cluster).uncounted_after_s()
        if now_ms - self._uncounted_ms.setdefault((cluster, what), now_ms) < limit_s * 1000:
            return []
        return self._lifecycle.resolve(cluster, tick_ms, _NOT_COUNTED.format(what, format_duration(limit_s)), kinds)

    def _load_inputs(self, cluster: str, tick_ms: int) -> BalanceInputs:
        """Return the loads of brokers as far as they are fresh."""
        of_cluster = self._settings_of(cluster)
        loads = self._loads.get(cluster)
        if loads is not None and abs(tick_ms - loads.tick_ms) > of_cluster.loads_stale_after_s() * 1000:
            loads = None
        made_ms, risks = self._risks.get(cluster, (0, None))
        if risks is not None and self._elapsed_ms() - made_ms > of_cluster.risks_stale_after_s() * 1000:
            risks = None
        return BalanceInputs(loads, risks, self._advice.get(cluster))

    def _detect_clock_set_back(self, cluster: str, tick_ms: int) -> None:
        """Shift stored times if the collector's clock was set back: two ticks in a row are older than one before.

        A single older tick is late, or comes from a second collector. A step forward is handled as a gap.
        """
        newest_ms, older_ms = self._newest_ms.get(cluster), self._older_ms.pop(cluster, None)
        if newest_ms is None or tick_ms >= newest_ms:
            # Stored events of this tick already have what a gap before it made of them: it comes again after a crash.
            if newest_ms is not None and not self._lifecycle.has_applied(cluster, tick_ms):
                self._detect_gap(cluster, tick_ms - newest_ms)
            self._newest_ms[cluster] = tick_ms
        elif older_ms is None or tick_ms <= older_ms:
            self._older_ms[cluster] = tick_ms
        else:
            # The interval between these two ticks stands in for the one between the newest tick and the first of them.
            by_ms = newest_ms - older_ms + tick_ms - older_ms
            log.warning("the clock that ticks of %s have their times from was set back by %d ms", cluster, by_ms)
            self._lifecycle.shift_clock(cluster, -by_ms)
            self._eta_trackers[cluster].shift_clock(-by_ms, older_ms)
            self._shift_balances(cluster, -by_ms, tick_ms)
            self._newest_ms[cluster] = tick_ms

    def _detect_gap(self, cluster: str, gap_ms: int) -> None:
        """Shift stored times if two ticks are too far apart to know which conditions lasted in between.

        If real time passed between them, reassignments continued and their expected finish stays as it is.
        """
        cluster_settings = self._settings_of(cluster)
        limit_ms, interval_ms = (
            cluster_settings.gap_after_s() * 1000,
            round(cluster_settings.settings.collect.interval_s * 1000),
        )
        if gap_ms <= limit_ms:
            return
        now_ms = self._elapsed_ms()
        # Unknown for a cluster without configuration whose ticks were missing for long: its entry was removed.
        _, received_ms = self._last_tick.get(cluster, (None, now_ms - gap_ms))
        set_ms = gap_ms - max(interval_ms, now_ms - received_ms)
        self._lifecycle.shift_clock(cluster, gap_ms - interval_ms)
        if set_ms > limit_ms:
            log.warning("the clock that ticks of %s have their times from was set forward by %d ms", cluster, set_ms)
            self._eta_trackers[cluster].shift_clock(set_ms)
            self._shift_balances(cluster, set_ms)

    def _shift_balances(self, cluster: str, by_ms: int, later_than_ms: int = -1) -> None:
        """Shift the times of the last balances, loads and election plan, if later than ``later_than_ms``."""
        counted_ms, balances = self._balances.get(cluster, (-1, ()))
        if counted_ms > later_than_ms:
            self._balances[cluster] = (counted_ms + by_ms, balances)
        loads = self._loads.get(cluster)
        if loads is not None and loads.tick_ms > later_than_ms:
            self._loads[cluster] = replace(loads, tick_ms=loads.tick_ms + by_ms)
        plan = self._elections.get(cluster)
        if plan is not None and plan.tick_ms > later_than_ms:
            self._elections[cluster] = replace(plan, tick_ms=plan.tick_ms + by_ms)

    def update_leader_balance(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        """Set the leader balances that the next ticks are evaluated with.

        Args:
            cluster: name of the cluster.
            tick_ms: tick of the balances, epoch milliseconds.
            balances: one per broker that is the preferred leader of a partition.
        """
        self._balances[cluster] = (tick_ms, balances)

    def update_broker_loads(self, cluster: str, loads: MinuteLoads) -> None:
        """Set the loads that the next ticks are evaluated with.

        Args:
            cluster: name of the cluster.
            loads: loads of all its brokers in one minute.
        """
        self._loads[cluster] = loads

    def uneven_brokers(self, cluster: str) -> Sequence[int]:
        """Return the brokers of a cluster whose load was uneven in the last minute, for a proposal."""
        loads = self._loads.get(cluster)
        return () if loads is None else loads.uneven

    def update_capacity_risks(self, cluster: str, risks: Sequence[LossRisk]) -> None:
        """Set what the loss of a broker or rack would do, for the ticks evaluated from now on.

        Args:
            cluster: name of the cluster.
            risks: brokers that a loss would take over their limit.
        """
        self._risks[cluster] = (self._elapsed_ms(), risks)

    def update_balance_advice(self, cluster: str, advice: BalanceAdvice) -> None:
        """Set the proposal that recommendations of the next ticks contain.

        Args:
            cluster: name of the cluster.
            advice: its last proposal.
        """
        self._advice[cluster] = advice

    def update_store_trouble(self, trouble: str | None) -> None:
        """Set whether the store can be written, for the ticks evaluated from now on.

        Args:
            trouble: which location cannot be written and why; None if all can.
        """
        self._store_trouble = trouble

    def update_throttle_owners(self, cluster: str, owners: Mapping[str, ThrottleOwner]) -> None:
        """Set the commands that alerts on throttles left behind name, for the ticks evaluated from now on.

        Args:
            cluster: name of the cluster.
            owners: owners of its throttles, by subject in the journal of changes.
        """
        self._owners[cluster] = owners

    def update_election_plan(self, cluster: str, plan: ElectionPlanSummary) -> None:
        """Set the election plan that recommendations of the next ticks contain.

        Args:
            cluster: name of the cluster.
            plan: its last plan of preferred elections.
        """
        self._elections[cluster] = plan

    def _fresh_election_plan(self, cluster: str, tick_ms: int) -> ElectionPlanSummary | None:
        """Return the last election plan; None if there is none or it is stale."""
        plan = self._elections.get(cluster)
        old_s = self._settings_of(cluster).balances_stale_after_s() + _PLAN_S
        return None if plan is None or abs(tick_ms - plan.tick_ms) > old_s * 1000 else plan

    def _fresh_balances(self, cluster: str, tick_ms: int) -> Sequence[LeaderBalance] | None:
        """Return the last leader balances; None if there are none or they are stale."""
        # After the clock was set back, balances counted before have a time in the future.
        counted_ms, balances = self._balances.get(cluster, (None, ()))
        old_s = self._settings_of(cluster).balances_stale_after_s()
        return None if counted_ms is None or abs(tick_ms - counted_ms) > old_s * 1000 else balances

    def _earlier(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> Earlier:
        """Return the earlier ticks within the quota window, and remember this tick for the next call."""
        tick = tick_ms, {status.load.broker_role: status.load for status in statuses}
        before = [t for t in self._recent.get(cluster, []) if t[0] < tick_ms]
        # One tick more than the window: it has the traffic of the oldest second.
        recent = [t for t in before if tick_ms - t[0] <= WINDOW_S * 1000]
        remembered = before[: len(recent) + 1]
        self._recent[cluster] = [tick, *remembered]
        return [((tick_ms - earlier_ms) / 1000, loads) for earlier_ms, loads in remembered]

    def check_missing_ticks(self, batch_s: float | None = None, machine: Machine | None = None) -> list[AlertEvent]:
        """Return the events of clusters whose ticks are missing; the watchdog calls it periodically.

        Args:
            batch_s: how long the current micro-batch has been running, in seconds; None if none is.
            machine: how busy this machine is; None if unknown.
        """
        now, elapsed_ms, old_s = self._clock_ms(), self._elapsed_ms(), self._settings.alerts.no_data_s
        events: list[AlertEvent] = []
        with self._lock:
            for cluster in self._unconfigured_clusters(elapsed_ms):
                events.extend(self._lifecycle.resolve(cluster, now, _NOT_CONFIGURED.format(cluster)))
                self._last_tick.pop(cluster, None)
            for cluster, (tick_ms, received_ms) in self._last_tick.items():
                if cluster not in self._clusters:
                    continue
                limit_s = self._settings_of(cluster).missing_ticks_after_s()
                missing_ms = elapsed_ms - received_ms
                limit_s = limit_s if tick_ms is not None else max(limit_s, _START_S)
                if is_missing(missing_ms / 1000, limit_s, batch_s):
                    missing = MissingTicks(cluster, tick_ms, now - missing_ms, now, batch_s, old_s, machine)
                    # In the collector's time: otherwise later ticks could be older than this and be ignored.
                    at_ms = now if tick_ms is None else tick_ms + missing_ms
                    try:
                        events.extend(
                            self._lifecycle.apply_missing_ticks(cluster, at_ms, self._missing_ticks_assessment(missing))
                        )
                    except Exception as error:
                        operation = f"missing ticks of cluster {cluster} could not be evaluated"
                        self._faults.report(cluster, operation, error)
        return events

    def _unconfigured_clusters(self, elapsed_ms: int) -> list[str]:
        """Return clusters without configuration and without ticks: renamed, or removed from the settings."""
        known = {event.cluster for event in self._lifecycle.active()} | self._last_tick.keys()
        return [
            cluster
            for cluster in sorted(known - self._clusters.keys())
            if elapsed_ms - self._last_tick.get(cluster, (None, self._start_ms))[1] >= _START_S * 1000
        ]

    def _settings_of(self, cluster: str) -> WatchedCluster:
        """Return the settings of a cluster; without a configuration, placeholders for the recommended commands."""
        if cluster in self._clusters:
            return self._clusters[cluster]
        unknown = ClusterSettings(name=cluster, bootstrap_servers=f"<bootstrap servers of {cluster}>")
        alerts = replace(self._settings.alerts, bootstrap_servers="")
        return WatchedCluster(replace(self._settings, cluster=unknown, alerts=alerts), f"<headroom.toml of {cluster}>")

    def _missing_ticks_assessment(self, missing: MissingTicks) -> Assessment:
        cluster = missing.cluster
        return evaluate_missing_ticks(
            RuleInputs(
                (),
                self._settings.alerts,
                self._settings_of(cluster).recommender(),
                active=self._active_subjects(cluster),
                store_trouble=self._store_trouble_of(cluster),
                missing=missing,
            )
        )

    def _store_trouble_of(self, cluster: str) -> str | None:
        """Return why the store cannot be written; None for clusters other than the first, which report it too."""
        return self._store_trouble if cluster == self._settings.cluster.name else None

    def _active_subjects(self, cluster: str, state: AlertState | None = None) -> set[Subject]:
        """Return the subjects of a cluster's pending and firing alerts, or only of those in one state."""
        active = self._lifecycle.active()
        return {
            (AlertKind(event.kind), event.subject)
            for event in active
            if event.cluster == cluster and state in (None, AlertState(event.state))
        }

    def _is_backlog(self, cluster: str, age_ms: int) -> bool:
        """Return whether incoming ticks are old ones from a backlog, and remember their age for the next call."""
        before_ms, self._ages_ms[cluster] = self._ages_ms.get(cluster), age_ms
        is_old = age_ms > self._settings.alerts.no_data_s * 1000
        is_steady = before_ms is not None and abs(age_ms - before_ms) <= _BACKLOG_MS
        return is_old and not is_steady
