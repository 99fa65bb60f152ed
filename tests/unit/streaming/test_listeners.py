"""Several listeners of the alert path: each is told all, in their order."""

from __future__ import annotations

from typing import Any

from alerts.metrics import Collected
from streaming.jobs.alert_path import AlertPathListener, combined


def test_every_listener_is_told_all_and_the_first_one_first() -> None:
    told: list[Any] = []

    def listener(name: str) -> AlertPathListener:
        return AlertPathListener(
            lambda cluster, tick_ms, sides: told.append((name, cluster, tick_ms, sides)),
            lambda events: told.append((name, events)),
            lambda seconds: told.append((name, seconds)),
            lambda cluster, collected: told.append((name, cluster, collected)),
            lambda cluster, tick_ms, balances: told.append((name, cluster, tick_ms, balances)),
        )

    both = combined([listener("people"), listener("metrics")])
    both.on_tick("orders", 1, [])
    both.on_events([])
    both.on_batch(0.5)
    collected = Collected(0.2, 1, 0)
    both.on_collected("orders", collected)
    both.on_balances("orders", 2, [])
    assert told == [
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


def test_who_does_not_care_for_batches_or_balances_need_not_listen() -> None:
    careless = combined([AlertPathListener(lambda cluster, tick_ms, sides: None, lambda events: None)])
    careless.on_batch(1.0)
    careless.on_balances("orders", 1, [])
