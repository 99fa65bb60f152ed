"""Combined listeners of the alert path: each is called for everything, in their order."""

from __future__ import annotations

from typing import Any

from headroom.alerts.metrics import Collected
from headroom.streaming.jobs.listener import AlertPathListener, CompositeListener
from tests.unit.fakes.alert_path_listener import CallingListener


def test_every_listener_is_called_for_everything_in_order() -> None:
    calls: list[Any] = []

    def listener(name: str) -> AlertPathListener:
        return CallingListener(
            lambda cluster, tick_ms, statuses: calls.append((name, cluster, tick_ms, statuses)),
            lambda events: calls.append((name, events)),
            lambda seconds: calls.append((name, seconds)),
            lambda cluster, collected: calls.append((name, cluster, collected)),
            lambda cluster, tick_ms, balances: calls.append((name, cluster, tick_ms, balances)),
        )

    both = CompositeListener([listener("people"), listener("metrics")])
    both.on_tick("orders", 1, [])
    both.on_events([])
    both.on_batch(0.5)
    collected = Collected(0.2, 1, 0)
    both.on_collected("orders", collected)
    both.on_balances("orders", 2, [])
    assert calls == [
        ("people", "orders", 1, []),
        ("metrics", "orders", 1, []),
        ("people", []),
        ("metrics", []),
        ("people", 0.5),
        ("metrics", 0.5),
        ("people", "orders", collected),
        ("metrics", "orders", collected),
        ("people", "orders", 2, []),
        ("metrics", "orders", 2, []),
    ]


def test_a_listener_without_callbacks_for_batches_or_balances_is_accepted() -> None:
    partial = CompositeListener([CallingListener(lambda cluster, tick_ms, statuses: None, lambda events: None)])
    partial.on_batch(1.0)
    partial.on_balances("orders", 1, [])
