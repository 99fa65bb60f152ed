"""What every view needs: the tables, the settings of the clusters, and the current time."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

from headroom.alerts.watched_cluster import WatchedCluster
from headroom.dashboard.acting.actions import Actions
from headroom.dashboard.acting.allowed import allowed_command
from headroom.dashboard.acting.offers import CommandOffer, Offers
from headroom.dashboard.address import LAST_MS, Address
from headroom.dashboard.data.journal import JournalReader
from headroom.dashboard.data.moment import ClusterMoment, MomentReader
from headroom.dashboard.data.open_tables import OpenTables
from headroom.dashboard.data.points import PointReader
from headroom.dashboard.data.timeline import TickRange
from headroom.operations.evaluation import Evaluation, evaluation_of, evaluation_text, fresh_ms
from headroom.schemas.config import Settings
from headroom.schemas.tables import ALERT_EVENTS, ALERT_MARKS
from headroom.streaming.clock import now_ms
from headroom.streaming.store.single_instance import running_process
from headroom.streaming.tables.current_alerts import CurrentAlert, read_current_alerts

# Silences begin and end without a commit.
_ALERTS_MS = 5_000
_CLUSTERS_MS = 60_000


@dataclass(frozen=True)
class ViewTime:
    """Whether what is shown is the state of now.

    Attributes:
        at_ms: moment that is looked at, epoch milliseconds.
        is_past: whether somebody has chosen that moment; then nothing is expected to be current.
        evaluation: last evaluation of the cluster.
        text: when that was, and if it is not now, why.
    """

    at_ms: int
    is_past: bool
    evaluation: Evaluation
    text: str

    @property
    def is_current(self) -> bool:
        """Return whether a watch evaluates the cluster, and that is what is shown."""
        return self.evaluation.is_current and not self.is_past


class Site:
    """Tables and settings behind the page. Threads may share it.

    Args:
        configured: clusters with settings, at least one; the first one's store is shown.
        clock_ms: returns the current time, epoch milliseconds.
        actions: carries out commands; None: the page changes nothing.
    """

    def __init__(
        self,
        configured: Sequence[WatchedCluster],
        clock_ms: Callable[[], int] = now_ms,
        actions: Actions | None = None,
    ) -> None:
        self._configured = {one.settings.cluster.name: one for one in configured}
        self.settings: Settings = configured[0].settings
        self.clock_ms = clock_ms
        self.actions = actions
        self.offers = Offers(clock_ms)
        self.tables = OpenTables(self.settings.store.path)
        self.moments = MomentReader(self.tables, clock_ms)
        self.points = PointReader(self.tables)
        self.journal = JournalReader(self.tables)
        self._lock = threading.Lock()
        self._clusters: tuple[int, list[str]] = (-_CLUSTERS_MS, [])
        self._alerts: tuple[object, list[CurrentAlert] | None] = (None, None)

    def clusters(self) -> list[str]:
        """Return all clusters, those with settings first.

        Raises:
            HeadroomError: the tables cannot be read.
        """
        with self._lock:
            read_ms, known = self._clusters
        # All days are read for it, and a cluster is new once in its life.
        at_ms = self.clock_ms()
        if not read_ms <= at_ms < read_ms + _CLUSTERS_MS:
            known = self.moments.clusters()
            with self._lock:
                self._clusters = (at_ms, known)
        return list(dict.fromkeys([*self._configured, *known]))

    def cluster(self, address: Address) -> str:
        """Return the name of the cluster that an address is about."""
        return address.cluster or next(iter(self._configured))

    def watched(self, name: str) -> WatchedCluster:
        """Return a cluster with its settings; without settings, with placeholders in recommended commands."""
        return self._configured.get(name) or WatchedCluster.without_settings(self.settings, name)

    def can_act(self, address: Address) -> bool:
        """Return whether commands on the cluster of an address are carried out; not from what is shown of the past."""
        return self.actions is not None and address.at is None and self.cluster(address) in self._configured

    def can_migrate(self, address: Address) -> bool:
        """Return whether a migration to the cluster of an address can be begun: it has an origin to come from."""
        return self.can_act(address) and self.watched(self.cluster(address)).migrates

    def offer(self, address: Address, text: str, is_current: bool) -> str | None:
        """Return what a button sends to have a shown command carried out; None if the page does not do that.

        Args:
            address: what is shown.
            text: the command.
            is_current: whether what is shown is the state of now. A rate that was computed from an earlier one is not
                set.
        """
        if not self.can_act(address):
            return None
        cluster = self.cluster(address)
        command = allowed_command(text, self._configured[cluster].config)
        if command is None or (command.sets_rate and not is_current):
            return None
        offer = CommandOffer(cluster, command)
        return self.offers.sign(offer) if self.serves(offer) else None

    def serves(self, offer: CommandOffer) -> bool:
        """Return whether a command is about a cluster of this page, with its settings, and about no other one."""
        watched, words = self._configured.get(offer.cluster), offer.command.words
        named = [words[n + 1] for n, word in enumerate(words) if word == "--cluster"]
        return watched is not None and watched.config == offer.command.config and set(named) <= {offer.cluster}

    def view_time(self, address: Address) -> ViewTime:
        """Return whether what an address shows is the state of now.

        Raises:
            HeadroomError: the tables cannot be read.
        """
        at_ms = self.clock_ms()
        cluster = self.cluster(address)
        # The interval is that of the cluster; the lock of its watch is in the store that is shown.
        settings = replace(self.watched(cluster).settings, store=self.settings.store)
        evaluation = evaluation_of(settings, cluster, self.moments.tick_at(cluster, LAST_MS), at_ms)
        process = None if evaluation.is_current else running_process(self.settings.store, "alerts")
        text = evaluation_text(evaluation, at_ms, process)
        return ViewTime(self.shown_ms(address), address.at is not None, evaluation, text)

    def bridged_ms(self, ticks: TickRange) -> int:
        """Return the longest time between two points of a chart in which a cluster was evaluated, milliseconds."""
        return ticks.step_ms + fresh_ms(self.watched(ticks.cluster).settings)

    def shown_ms(self, address: Address) -> int:
        """Return the moment that an address shows, by which ages count, epoch milliseconds."""
        return self.clock_ms() if address.at is None else address.at

    def at_ms(self, address: Address) -> int:
        """Return the last time that an address shows, epoch milliseconds.

        Without a moment that is the newest tick, whatever this machine's clock says of it.
        """
        return LAST_MS if address.at is None else address.at

    def moment(self, address: Address) -> ClusterMoment | None:
        """Return the tick that an address shows; None if there is none.

        Raises:
            HeadroomError: the tables cannot be read.
        """
        cluster = self.cluster(address)
        tick_ms = self.moments.tick_at(cluster, self.at_ms(address))
        return None if tick_ms is None else self.moments.moment(cluster, tick_ms)

    def alerts(self, address: Address) -> list[CurrentAlert] | None:
        """Return the alerts of the address's cluster, the last changed one first; None without a table of events.

        Raises:
            HeadroomError: a table cannot be read.
        """
        every = self._all_alerts(address.at)
        cluster = self.cluster(address)
        return every and [alert for alert in every if alert.event.cluster == cluster]

    def _all_alerts(self, at_ms: int | None) -> list[CurrentAlert] | None:
        versions = (self.tables.version(ALERT_EVENTS), self.tables.version(ALERT_MARKS))
        key = (at_ms, versions, self.clock_ms() // _ALERTS_MS)
        with self._lock:
            known, alerts = self._alerts
            if known != key:
                alerts = read_current_alerts(self.settings, at_ms)
                self._alerts = (key, alerts)
            return alerts
