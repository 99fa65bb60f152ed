"""Alert engine: the alerts of all clusters whose ticks are evaluated."""

from __future__ import annotations

import logging
import threading
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence

from headroom.alerts.cluster_alerts import ClusterAlerts
from headroom.alerts.faults import Faults
from headroom.alerts.inputs.cluster_inputs import ClusterInputs, Dated
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.lifecycle import known_events
from headroom.alerts.rules.no_ticks import Machine
from headroom.alerts.watched_cluster import WatchedCluster
from headroom.planning.balance.broker_loads.capacity_risk import CapacityRisk
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import Settings

log = logging.getLogger(__name__)


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
        self._clock_ms = clock_ms
        self._elapsed_ms = elapsed_ms or clock_ms
        self._faults = Faults(log)
        self._clusters = {
            watched.settings.cluster.name: self._alerts_of(watched)
            for watched in (WatchedCluster(settings, config), *others)
        }
        self._lock = threading.Lock()

    def restore(self, events: Iterable[AlertEvent]) -> None:
        """Restore alerts from stored events, after a restart; those of a newer version are left as they are."""
        by_cluster: dict[str, list[AlertEvent]] = defaultdict(list)
        for event in known_events(events):
            by_cluster[event.cluster].append(event)
        for cluster, own in by_cluster.items():
            self._of(cluster).restore(own)

    def await_first_ticks(self) -> None:
        """Allow the next ticks the time of the first ones after a start, because Spark was started again."""
        for alerts in self._all():
            alerts.await_first_tick()

    def active(self) -> list[AlertEvent]:
        """Return the last event of every alert that is pending or firing."""
        return [event for alerts in self._all() for event in alerts.active()]

    def evaluate(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> list[AlertEvent]:
        """Evaluate one complete tick without its migrations, and return its alert events.

        Args:
            cluster: name of the cluster.
            tick_ms: time of the tick, epoch milliseconds.
            statuses: throttle status of every broker and role.
        """
        return self._of(cluster).evaluate(tick_ms, statuses)

    def evaluate_migrations(
        self, cluster: str, tick_ms: int, progress: Sequence[MigrationProgress] | None
    ) -> list[AlertEvent]:
        """Evaluate the migrations of a tick after the rest of it, and return their alert events.

        Args:
            cluster: name of the cluster.
            tick_ms: time of the tick, epoch milliseconds.
            progress: progress of every migrating partition; None if the tick has no data on migrations.
        """
        return self._of(cluster).evaluate_migrations(tick_ms, progress)

    def check_missing_ticks(self, batch_s: float | None = None, machine: Machine | None = None) -> list[AlertEvent]:
        """Return the events of clusters whose ticks are missing; the watchdog calls it periodically.

        Args:
            batch_s: how long the current micro-batch has been running, in seconds; None if none is.
            machine: how busy this machine is; None if unknown.
        """
        events: list[AlertEvent] = []
        for alerts in self._all():
            try:
                events.extend(alerts.missing_ticks(batch_s, machine))
            except Exception as error:
                operation = f"missing ticks of cluster {alerts.name} could not be evaluated"
                self._faults.report(alerts.name, operation, error)
        return events

    def inputs(self, cluster: str) -> ClusterInputs:
        """Return what the ticks of a cluster are evaluated with from now on, for jobs to set."""
        return self._of(cluster).inputs

    def update_capacity_risks(self, cluster: str, risks: Sequence[CapacityRisk]) -> None:
        """Set what the loss of a broker or rack would do, for the ticks evaluated from now on.

        Args:
            cluster: name of the cluster.
            risks: brokers that a loss would take over their limit.
        """
        self.inputs(cluster).risks = Dated(risks, self._elapsed_ms())

    def update_store_trouble(self, trouble: str | None) -> None:
        """Set whether the store can be written. The first cluster reports it for all.

        Args:
            trouble: which location cannot be written and why; None if all can.
        """
        self.inputs(self._settings.cluster.name).store_trouble = trouble

    def _all(self) -> list[ClusterAlerts]:
        with self._lock:
            return list(self._clusters.values())

    def _of(self, cluster: str) -> ClusterAlerts:
        """Return the alerts of a cluster; without a configuration, with placeholders in recommended commands."""
        with self._lock:
            if cluster not in self._clusters:
                watched = WatchedCluster.without_settings(self._settings, cluster)
                self._clusters[cluster] = self._alerts_of(watched, is_configured=False)
            return self._clusters[cluster]

    def _alerts_of(self, watched: WatchedCluster, *, is_configured: bool = True) -> ClusterAlerts:
        return ClusterAlerts(
            watched, self._settings.alerts, self._clock_ms, self._elapsed_ms, is_configured=is_configured
        )
