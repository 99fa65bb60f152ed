"""Listeners of the alert path, without importing Spark."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from alerts.inputs.leader_balance import LeaderBalance
from alerts.inputs.throttle_status import ThrottleStatus
from alerts.metrics import Collected
from schemas.alerts import AlertEvent


@dataclass(frozen=True)
class AlertPathListener:
    """Callbacks of the alert path.

    Attributes:
        on_tick: gets cluster, time and throttle statuses of a tick, after the events of its batch are durable.
        on_events: gets events after they are durable, or while they cannot be stored.
        on_batch: gets the duration of a finished batch, seconds.
        on_collected: gets cluster and collection figures of a tick, before ``on_tick``.
        on_balances: gets cluster, time and leader balances of a tick, after they are in their table.
    """

    on_tick: Callable[[str, int, Sequence[ThrottleStatus]], None] = lambda cluster, tick_ms, statuses: None
    on_events: Callable[[Sequence[AlertEvent]], None] = lambda events: None
    on_batch: Callable[[float], None] = lambda seconds: None
    on_collected: Callable[[str, Collected], None] = lambda cluster, collected: None
    on_balances: Callable[[str, int, Sequence[LeaderBalance]], None] = lambda cluster, tick_ms, balances: None


def combined(listeners: Sequence[AlertPathListener]) -> AlertPathListener:
    """Return a listener that calls all of these in their order."""

    def on_tick(cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        for listener in listeners:
            listener.on_tick(cluster, tick_ms, statuses)

    def on_events(events: Sequence[AlertEvent]) -> None:
        for listener in listeners:
            listener.on_events(events)

    def on_batch(seconds: float) -> None:
        for listener in listeners:
            listener.on_batch(seconds)

    def on_collected(cluster: str, collected: Collected) -> None:
        for listener in listeners:
            listener.on_collected(cluster, collected)

    def on_balances(cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        for listener in listeners:
            listener.on_balances(cluster, tick_ms, balances)

    return AlertPathListener(on_tick, on_events, on_batch, on_collected, on_balances)
