"""Alerts of one cluster: evaluates its ticks, and finds that they are missing."""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence

from headroom.alerts.finding import Subject
from headroom.alerts.inputs.broker_load import BalanceInputs
from headroom.alerts.inputs.cluster_inputs import ClusterInputs, Dated, fresh
from headroom.alerts.inputs.migrations import MigrationInputs
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.lifecycle import Lifecycle
from headroom.alerts.rules.balance.broker_load_rule import BrokerLoadRule
from headroom.alerts.rules.catalogue import (
    MIGRATION_RULES,
    OTHER_RULES,
    RULES,
    evaluate_missing_ticks,
    evaluate_rules,
)
from headroom.alerts.rules.leaders.leader_balance_rule import LeaderBalanceRule
from headroom.alerts.rules.no_ticks import Machine, MissingTicks, is_missing
from headroom.alerts.rules.reassignments.eta_tracker import EtaTracker
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.alerts.stored_event import evidence_of
from headroom.alerts.tick_clock import SetBackDetector
from headroom.alerts.watched_cluster import START_S, WatchedCluster
from headroom.planning.finish.finish_time import Earlier
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.planning.quotas.load import ThrottleLoad
from headroom.planning.quotas.samples import WINDOW_S
from headroom.schemas.alerts import AlertEvent, AlertKind, AlertState
from headroom.schemas.config import AlertSettings
from headroom.schemas.keys import BrokerRole
from headroom.schemas.text.amounts import duration_text

log = logging.getLogger(__name__)
# Ticks of a backlog arrive faster than they were produced, so their age falls. A constant age means that the
# collector's clock is behind, or that every tick is evaluated late.
_BACKLOG_MS = 1000
_BALANCE_KINDS = frozenset(rule.kind for rule in RULES if isinstance(rule, LeaderBalanceRule))
_LOAD_KINDS = frozenset(rule.kind for rule in RULES if isinstance(rule, BrokerLoadRule))
_MIGRATION_KINDS = frozenset(rule.kind for rule in MIGRATION_RULES)
_RISK_KINDS = frozenset({AlertKind.CAPACITY_AT_RISK})
_NOT_COUNTED = "ended: {} has been unknown for {}"
_NOT_CONFIGURED = "ended: no configuration names cluster {} any more"
_NO_MIGRATION = "ended: no migration is agreed any more"
_Tick = tuple[int, Mapping[BrokerRole, ThrottleLoad]]


class ClusterAlerts:
    """Evaluates the rules of one cluster; the alert path and the watchdog may call it concurrently.

    Args:
        watched: settings of the cluster; placeholders if no configuration names it.
        settings: section ``[alerts]``, which applies to every cluster.
        clock_ms: returns the current time, epoch milliseconds.
        elapsed_ms: returns monotonic milliseconds, which setting the clock does not change.
        is_configured: whether a configuration names the cluster, so that its ticks are expected.

    Attributes:
        inputs: what other jobs have found out about the cluster, for the next ticks.
        name: name of the cluster.
    """

    def __init__(
        self,
        watched: WatchedCluster,
        settings: AlertSettings,
        clock_ms: Callable[[], int],
        elapsed_ms: Callable[[], int],
        *,
        is_configured: bool = True,
    ) -> None:
        self.inputs = ClusterInputs()
        self._is_configured = is_configured
        self._watched = watched
        self._settings = settings
        self.name = watched.settings.cluster.name
        self._clock_ms = clock_ms
        self._elapsed_ms = elapsed_ms
        self._lifecycle = Lifecycle(self.name, settings.resolve_s, clock_ms, watched.gap_after_s())
        # Of alerts on migrations, which are evaluated after the others of a tick.
        self._migrations = Lifecycle(self.name, settings.resolve_s, clock_ms, watched.gap_after_s())
        # By tick: how far it shifts stored times, milliseconds, until its migrations are evaluated.
        self._shifts_ms: dict[int, int] = {}
        self._start_ms = elapsed_ms()
        # The tick that was evaluated last; None before the first one.
        self._last_tick_ms: int | None = None
        # When that was, or since when the first one is awaited, by ``elapsed_ms``; None: no tick is awaited.
        self._received_ms: int | None = self._start_ms if is_configured and self.name else None
        self._newest_ms: int | None = None
        self._set_back = SetBackDetector()
        # Age of the last tick at its evaluation, milliseconds.
        self._age_ms: int | None = None
        # The same of the tick that was evaluated last, after its evaluation.
        self._evaluated_age_ms = 0
        # The ticks within the quota window, newest first.
        self._recent: list[_Tick] = []
        self._eta_tracker = EtaTracker()
        # By what is counted: when the first tick without fresh figures was evaluated, by ``elapsed_ms``.
        self._uncounted_ms: dict[str, int] = {}
        self._lock = threading.Lock()

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Restore alerts from stored events of the cluster, after a restart."""
        events = list(events)
        with self._lock:
            self._lifecycle.restore(event for event in events if event.kind not in _MIGRATION_KINDS)
            self._migrations.restore(event for event in events if event.kind in _MIGRATION_KINDS)

    def await_first_tick(self) -> None:
        """Allow the next tick the time of the first one after a start, because Spark was started again."""
        with self._lock:
            if self._received_ms is not None:
                self._last_tick_ms, self._received_ms = None, self._elapsed_ms()

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        with self._lock:
            return self._active()

    def evaluate(self, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> list[AlertEvent]:
        """Evaluate one complete tick without its migrations, and return its alert events.

        Throttles are compared with the migrations of the last tick whose migrations were evaluated.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            statuses: throttle status of every broker and role.
        """
        with self._lock:
            self._detect_clock_set_back(tick_ms)
            active, firing = self._active_subjects(), self._active_subjects(AlertState.FIRING)
            resources = self._active_resources()
        watched, inputs = self._watched, self.inputs
        balances = fresh(inputs.balances, tick_ms, watched.balances_stale_after_s())
        elections = fresh(inputs.elections, tick_ms, watched.elections_stale_after_s())
        risks = fresh(inputs.risks, self._elapsed_ms(), watched.risks_stale_after_s())
        migrations = fresh(inputs.migrations, tick_ms, watched.gap_after_s())
        tick = RuleInputs(
            statuses,
            self._settings,
            watched.recommender(self._earlier(tick_ms, statuses), elections),
            None if balances is None else balances.value,
            tick_ms,
            self._eta_tracker,
            active,
            inputs.store_trouble,
            self._is_backlog(self._clock_ms() - tick_ms),
            owners=inputs.owners,
            loads=BalanceInputs(
                fresh(inputs.loads, tick_ms, watched.loads_stale_after_s()),
                None if risks is None else risks.value,
                inputs.advice,
            ),
            firing=firing,
            active_resources=resources,
            migrations=None if migrations is None else MigrationInputs(migrations.value, migrations.tick_ms),
        )
        assessment = evaluate_rules(tick, OTHER_RULES)
        with self._lock:
            if self._last_tick_ms is None:
                self._lifecycle.on_first_tick(tick_ms)
            events = self._lifecycle.apply(tick_ms, assessment)
            # Last, because a tick whose evaluation failed counts as missing.
            self._last_tick_ms, self._received_ms = tick_ms, self._elapsed_ms()
            self._evaluated_age_ms = self._clock_ms() - tick_ms
            counted = (
                ("the balance of leaders", tick.balances is not None, _BALANCE_KINDS),
                ("the load of brokers", tick.loads.brokers is not None, _LOAD_KINDS),
                ("what a lost broker would add to others", tick.loads.risks is not None, _RISK_KINDS),
            )
            for what, is_counted, kinds in counted:
                events = [*events, *self._resolve_uncounted(self._lifecycle, tick_ms, what, is_counted, kinds)]
            return events

    def evaluate_migrations(self, tick_ms: int, progress: Sequence[MigrationProgress] | None) -> list[AlertEvent]:
        """Evaluate the migrations of a tick after the rest of it, and return their alert events.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            progress: progress of every migrating partition, empty if no migration is agreed about; None if the tick has
                no data on migrations.
        """
        with self._lock:
            self._migrations.shift_clock(self._shifts_ms.pop(tick_ms, 0))
            active = self._active_subjects()
        is_known = progress is not None
        self.inputs.migrations = None if progress is None else Dated(progress, tick_ms)
        known = None if progress is None else MigrationInputs(progress)
        tick = RuleInputs(
            (), self._settings, self._watched.recommender(), tick_ms=tick_ms, active=active, migrations=known
        )
        assessment = evaluate_rules(tick, MIGRATION_RULES)
        with self._lock:
            events = self._migrations.apply(tick_ms, assessment)
            if is_known and not progress:
                # None of their conditions can come back, so there is nothing to wait for.
                events = [*events, *self._migrations.resolve(tick_ms, _NO_MIGRATION)]
            what = "the progress of migrations"
            return [
                *events,
                *self._resolve_uncounted(self._migrations, tick_ms, what, is_known, _MIGRATION_KINDS),
            ]

    def missing_ticks(self, batch_s: float | None, machine: Machine | None) -> list[AlertEvent]:
        """Return the events of ticks that are missing, or of a cluster that no configuration names any more.

        Args:
            batch_s: how long the current micro-batch has been running, in seconds; None if none is.
            machine: how busy this machine is; None if unknown.
        """
        with self._lock:
            if not self._is_configured:
                return self._end_unconfigured()
            if self._received_ms is None:
                return []
            now, missing_ms = self._clock_ms(), self._elapsed_ms() - self._received_ms
            limit_s = self._watched.missing_ticks_after_s()
            limit_s = limit_s if self._last_tick_ms is not None else max(limit_s, START_S)
            if not is_missing(missing_ms / 1000, limit_s, batch_s):
                return []
            # The clock may have been set since: the tick is as old as it was then, and the monotonic time since.
            judged_ms = now - missing_ms if self._last_tick_ms is None else self._last_tick_ms + self._evaluated_age_ms
            missing = MissingTicks(
                self.name,
                self._last_tick_ms,
                judged_ms,
                judged_ms + missing_ms,
                batch_s,
                self._settings.no_data_s,
                machine,
            )
            # In the collector's time: otherwise later ticks could be older than this and be ignored.
            at_ms = now if self._last_tick_ms is None else self._last_tick_ms + missing_ms
            inputs = RuleInputs(
                (),
                self._settings,
                self._watched.recommender(),
                active=self._active_subjects(),
                store_trouble=self.inputs.store_trouble,
                missing=missing,
            )
            missed = evaluate_missing_ticks(inputs)
            # All of its alerts go on, and it has no finding on missing ticks.
            self._migrations.apply_missing_ticks(at_ms, Assessment(keep_firing=missed.keep_firing))
            return self._lifecycle.apply_missing_ticks(at_ms, missed)

    def _end_unconfigured(self) -> list[AlertEvent]:
        """Resolve all alerts of a cluster without configuration and without ticks: renamed, or no longer watched."""
        is_known = self._received_ms is not None or self._active()
        received_ms = self._start_ms if self._received_ms is None else self._received_ms
        if not is_known or self._elapsed_ms() - received_ms < START_S * 1000:
            return []
        self._last_tick_ms = self._received_ms = None
        now_ms, why = self._clock_ms(), _NOT_CONFIGURED.format(self.name)
        return [*self._lifecycle.resolve(now_ms, why), *self._migrations.resolve(now_ms, why)]

    def _resolve_uncounted(
        self, lifecycle: Lifecycle, tick_ms: int, what: str, is_counted: bool, kinds: Collection[AlertKind]
    ) -> list[AlertEvent]:
        """Resolve alerts on figures that have been stale for too long, and return the events."""
        if is_counted:
            self._uncounted_ms.pop(what, None)
            return []
        now_ms, limit_s = self._elapsed_ms(), self._watched.uncounted_after_s()
        if now_ms - self._uncounted_ms.setdefault(what, now_ms) < limit_s * 1000:
            return []
        return lifecycle.resolve(tick_ms, _NOT_COUNTED.format(what, duration_text(limit_s)), kinds)

    def _detect_clock_set_back(self, tick_ms: int) -> None:
        """Shift stored times if the collector's clock was set back. A step forward is handled as a gap."""
        newest_ms = self._newest_ms
        if newest_ms is None or tick_ms >= newest_ms:
            self._set_back.on_newer()
            # Stored events of this tick already have what a gap before it made of them: it comes again after a crash.
            if newest_ms is not None and not self._lifecycle.has_applied(tick_ms):
                self._detect_gap(tick_ms, tick_ms - newest_ms)
            self._newest_ms = tick_ms
            return
        older_ms = self._set_back.on_older(tick_ms)
        if older_ms is None:
            return
        # The interval between these two ticks stands in for the one between the newest tick and the first of them.
        by_ms = newest_ms - older_ms + tick_ms - older_ms
        log.warning("the clock that ticks of %s have their times from was set back by %d ms", self.name, by_ms)
        self._shift_lifecycles(tick_ms, -by_ms)
        self._eta_tracker.shift_clock(-by_ms, older_ms)
        self.inputs.shift_clock(-by_ms, tick_ms)
        self._newest_ms = tick_ms

    def _detect_gap(self, tick_ms: int, gap_ms: int) -> None:
        """Shift stored times if two ticks are too far apart to know which conditions lasted in between.

        If real time passed between them, reassignments continued and their expected finish stays as it is.
        """
        limit_ms = self._watched.gap_after_s() * 1000
        interval_ms = round(self._watched.settings.collect.interval_s * 1000)
        if gap_ms <= limit_ms:
            return
        now_ms = self._elapsed_ms()
        # Unknown for a cluster without configuration whose ticks were missing for long.
        received_ms = now_ms - gap_ms if self._received_ms is None else self._received_ms
        # A start reads the ticks of before it late, with those of now: they are as far apart as the process was down.
        late_ms = max(0, self._evaluated_age_ms - max(0, self._clock_ms() - tick_ms))
        set_ms = gap_ms - max(interval_ms, now_ms - received_ms + late_ms)
        self._shift_lifecycles(tick_ms, gap_ms - interval_ms)
        if set_ms > limit_ms:
            log.warning("the clock that ticks of %s have their times from was set forward by %d ms", self.name, set_ms)
            self._eta_tracker.shift_clock(set_ms)
            self.inputs.shift_clock(set_ms)

    def _shift_lifecycles(self, tick_ms: int, by_ms: int) -> None:
        """Shift the times of alerts; those of migrations once the tick is evaluated for them, because a batch may
        evaluate several ticks before its first migrations.
        """
        self._lifecycle.shift_clock(by_ms)
        self._shifts_ms[tick_ms] = by_ms

    def _active(self) -> list[AlertEvent]:
        return [*self._lifecycle.active(), *self._migrations.active()]

    def _earlier(self, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> Earlier:
        """Return the earlier ticks within the quota window, and remember this tick for the next call."""
        tick = tick_ms, {status.load.broker_role: status.load for status in statuses}
        before = [t for t in self._recent if t[0] < tick_ms]
        # One tick more than the window: it has the traffic of the oldest second.
        recent = [t for t in before if tick_ms - t[0] <= WINDOW_S * 1000]
        remembered = before[: len(recent) + 1]
        self._recent = [tick, *remembered]
        return [((tick_ms - earlier_ms) / 1000, loads) for earlier_ms, loads in remembered]

    def _active_subjects(self, state: AlertState | None = None) -> set[Subject]:
        """Return the subjects of pending and firing alerts, or only of those in one state."""
        active = self._active()
        return {(AlertKind(e.kind), e.subject) for e in active if state in (None, AlertState(e.state))}

    def _active_resources(self) -> dict[Subject, Sequence[str]]:
        """Return what pending and firing alerts on brokers are about, by subject: resources, or migrations."""
        about: dict[Subject, Sequence[str]] = {}
        for event in self._lifecycle.active():
            if event.kind in _LOAD_KINDS or event.kind == AlertKind.THROTTLE_AT_RISK:
                evidence = evidence_of(event)
                of_migration = [] if evidence.migration is None else [evidence.migration]
                if resources := evidence.resources or evidence.migrations or of_migration:
                    about[AlertKind(event.kind), event.subject] = resources
        return about

    def _is_backlog(self, age_ms: int) -> bool:
        """Return whether incoming ticks are old ones from a backlog, and remember their age for the next call."""
        before_ms, self._age_ms = self._age_ms, age_ms
        is_old = age_ms > self._settings.no_data_s * 1000
        is_steady = before_ms is not None and abs(age_ms - before_ms) <= _BACKLOG_MS
        return is_old and not is_steady
