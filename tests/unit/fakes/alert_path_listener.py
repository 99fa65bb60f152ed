"""Listener of the alert path that calls functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.metrics import Collected
from headroom.schemas.alerts import AlertEvent
from headroom.streaming.jobs.listener import AlertPathListener

Call = Callable[..., Any]


def _ignore(*_: object) -> None:
    """Nothing is called."""


class CallingListener(AlertPathListener):
    """Calls one function per method; those that are not given do nothing."""

    def __init__(
        self,
        on_tick: Call = _ignore,
        on_events: Call = _ignore,
        on_batch: Call = _ignore,
        on_collected: Call = _ignore,
        on_balances: Call = _ignore,
    ) -> None:
        self._calls = on_tick, on_events, on_batch, on_collected, on_balances

    def on_tick(self, cluster: str, tick_ms: int, statuses: Sequence[ThrottleStatus]) -> None:
        self._calls[0](cluster, tick_ms, statuses)

    def on_events(self, events: Sequence[AlertEvent]) -> None:
        self._calls[1](events)

    def on_batch(self, seconds: float) -> None:
        self._calls[2](seconds)

    def on_collected(self, cluster: str, collected: Collected) -> None:
        self._calls[3](cluster, collected)

    def on_balances(self, cluster: str, tick_ms: int, balances: Sequence[LeaderBalance]) -> None:
        self._calls[4](cluster, tick_ms, balances)
