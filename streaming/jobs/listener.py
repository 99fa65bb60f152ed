"""Listeners of the alert path, without importing Spark."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from headroom.alerts.inputs.broker_load import MinuteLoads
from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.metrics import Collected
from headroom.planning.migration.progress.progress import MigrationProgress
from headroom.schemas.alerts import AlertEvent


class AlertPathListener(Protocol):
    """Gets the results of the alert path. A subclass overrides the methods that it needs; the others do nothing.

    It is a protocol, so that ``alerts.metrics.MetricsState``, which may not know this module, is one too.
    """

    def on_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        """Called with the throttle statuses of a tick, after the events of its batch are durable.

        Args:
            cluster: cluster of the tick.
            tick_ms: time of the tick, epoch milliseconds.
            statuses: one per broker and role.
        """
        return

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        """Called with events after they are durable, or while they cannot be stored."""
        return

    def on_batch(self, seconds: float) -> None:
        """Called with the duration of a finished batch, seconds."""
        return

    def on_collected(self, cluster: str, collected: Collected) -> None:
        """Called with the collection figures of a tick, before ``on_tick``."""
        return

    def on_balances(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        """Called with the leader balances of a tick, after they are in their table.

        Args:
            cluster: cluster of the tick.
            tick_ms: time of the tick, epoch milliseconds.
            balances: one per broker.
        """
        return

    def on_migrations(self, cluster: str, tick_ms: int, progress: Sequence[MigrationProgress]) -> None:
        """Called with the progress of the migrations to a cluster, after ``on_tick``; not called if that is unknown.

        Args:
            cluster: cluster of the tick.
            tick_ms: time of the tick, epoch milliseconds.
            progress: one per partition; empty if no migration is agreed about.
        """
        return

    def on_broker_loads(self, cluster: str, loads: MinuteLoads) -> None:
        """Called with the loads of a cluster's brokers in one minute, after they are in their table."""
        return


class CompositeListener(AlertPathListener):
    """Calls several listeners, each for everything, in their order."""

    def __init__(self, listeners: Sequence[AlertPathListener]) -> None:
        self._listeners = listeners

    def on_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_tick(cluster, tick_ms, statuses)

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_events(events)

    def on_batch(self, seconds: float) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_batch(seconds)

    def on_collected(self, cluster: str, collected: Collected) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_collected(cluster, collected)

    def on_balances(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_balances(cluster, tick_ms, balances)

    def on_migrations(self, cluster: str, tick_ms: int, progress: Sequence[MigrationProgress]) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_migrations(cluster, tick_ms, progress)

    def on_broker_loads(self, cluster: str, loads: MinuteLoads) -> None:
        """See ``AlertPathListener``."""
        for listener in self._listeners:
            listener.on_broker_loads(cluster, loads)
