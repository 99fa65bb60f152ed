"""The table of deliveries on a local disk: what was kept is what a start takes up."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from alerts.delivery.delivery_log import Backlog, Step, event_key
from schemas.alerts import AlertEvent
from schemas.tables import ALERT_EVENTS, Table
from streaming.delta import append as plain_table
from streaming.delta.low_latency_table import PromptTable
from streaming.tables.deliveries import DeliveryTable
from tests.unit.fakes.receivers import event


class PlainStore:
    """As much of a store as a table on a local disk needs: no Spark."""

    def __init__(self, path: Path) -> None:
        self._path = path

    def location(self, table: Table) -> str:
        return str(self._path / table.path)

    def exists(self, table: Table) -> bool:
        return (self._path / table.path / "_delta_log").exists()

    def ensure(self, *tables: Table) -> None:
        """Those that are there are as they should be."""
        for table in tables:
            if not self.exists(table):
                plain_table.create(self.location(table), table)


def step(of: AlertEvent, receiver: str, state: str = "delivered") -> Step:
    return Step(receiver, event_key(of), of.alert_id, of.cluster, state, 1, "ok", '{"ts": "1"}', 7)


def test_a_start_gets_the_alerts_that_fire_or_are_owed_to_somebody(tmp_path: Path) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    deliveries = DeliveryTable(nothing, store)
    assert deliveries.backlog(["log"]) == Backlog()
    firing = [event("fires", "pending"), event("fires")]
    ended = [event("ended"), event("ended", "resolved", 1_800_000_001_000)]
    passed = [event("passed", "pending"), event("passed", "resolved", 1_800_000_001_000)]
    PromptTable(nothing, store, ALERT_EVENTS).append([*firing, *ended, *passed], ("w", 1))
    told = [step(firing[1], "log"), *(step(e, "log") for e in ended), step(ended[0], "webhook")]
    deliveries.append(told)
    assert _sorted(deliveries.backlog(["log"])) == _sorted(Backlog(firing[1:], told[:1]))
    assert _sorted(deliveries.backlog(["log", "webhook"])) == _sorted(Backlog([*firing[1:], *ended], told))
    deliveries.append([step(ended[1], "webhook", "dropped")])
    assert _sorted(deliveries.backlog(["log", "webhook"])) == _sorted(Backlog(firing[1:], told[:1]))


def test_rows_that_are_appended_as_one_batch_twice_are_there_once(tmp_path: Path) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    for version in (1, 1, 2):
        PromptTable(nothing, store, ALERT_EVENTS).append([event(tick_ms=version)], ("w", version))
    assert [e.tick_ms for e in DeliveryTable(nothing, store).backlog(["log"]).events] in ([1, 2], [2, 1])


def _sorted(backlog: Backlog) -> tuple[list[str], list[tuple[str, str]]]:
    return sorted(map(event_key, backlog.events)), sorted((s.receiver, s.event_key) for s in backlog.steps)
