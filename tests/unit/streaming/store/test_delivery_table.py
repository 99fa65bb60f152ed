"""Table of deliveries on a local disk: a start resumes what was appended."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake
from deltalake.exceptions import DeltaError

from headroom.alerts.delivery.delivery_log import Backlog, DeliveryAttempt, event_key
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.errors import ENDINGS, HeadroomError
from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta import query as delta_query
from headroom.streaming.durability.mend import mend
from headroom.streaming.store.delivery_table import DeliveryTable
from headroom.streaming.store.low_latency_table import LowLatencyTable
from headroom.streaming.tables.suppressions import append_record
from tests.unit.alerts.delivery.test_suppression import silence
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
                delta_append.create(self.location(table), table)


def test_damage_is_reported_while_it_keeps_attempts_from_being_written(tmp_path: Path) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    deliveries = DeliveryTable(nothing, store)
    deliveries.append([step(event("one"), "log")])
    log = tmp_path / ALERT_DELIVERIES.path / "_delta_log"
    max(log.glob("*.json")).write_text("{")
    # An attempt that nothing keeps from being written needs no look at the table.
    assert deliveries.damage() is None
    with pytest.raises(DeltaError):
        deliveries.append([step(event("two"), "log")])
    for _ in range(2):
        assert "alerts/deliveries is damaged" in (deliveries.damage() or "")
    mend(str(tmp_path / ALERT_DELIVERIES.path))
    assert deliveries.damage() is None
    deliveries.append([step(event("two"), "log")])


def step(of: AlertEvent, receiver: str, state: str = "delivered") -> DeliveryAttempt:
    return DeliveryAttempt(receiver, event_key(of), of.alert_id, of.cluster, state, 1, "ok", '{"ts": "1"}', 7)


def test_a_start_resumes_firing_alerts_and_undelivered_events(tmp_path: Path) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    deliveries = DeliveryTable(nothing, store)
    assert deliveries.backlog(["log"]) == Backlog()
    firing = [event("fires", "pending"), event("fires")]
    ended = [event("ended"), event("ended", "resolved", 1_800_000_001_000)]
    passed = [event("passed", "pending"), event("passed", "resolved", 1_800_000_001_000)]
    LowLatencyTable(nothing, store, ALERT_EVENTS).append([*firing, *ended, *passed], ("w", 1))
    attempts = [step(firing[1], "log"), *(step(e, "log") for e in ended), step(ended[0], "webhook")]
    deliveries.append(attempts)
    assert _sorted(deliveries.backlog(["log"])) == _sorted(Backlog(firing[1:], attempts[:1]))
    assert _sorted(deliveries.backlog(["log", "webhook"])) == _sorted(Backlog([*firing[1:], *ended], attempts))
    # The webhook has had something before, and Slack nothing yet.
    assert deliveries.backlog(["slack"]).receivers == {"log", "webhook"}
    deliveries.append([step(ended[1], "webhook", "dropped")])
    assert _sorted(deliveries.backlog(["log", "webhook"])) == _sorted(Backlog(firing[1:], attempts[:1]))


@pytest.mark.parametrize("restarts", [False, True])
@pytest.mark.parametrize("is_quiet", [False, True])
def test_what_was_delivered_is_known_after_the_store_was_removed(
    tmp_path: Path, restarts: bool, is_quiet: bool
) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    deliveries = DeliveryTable(nothing, store)
    firing, ended = event("fires"), [event("ended"), event("ended", "resolved", 1_800_000_001_000)]
    LowLatencyTable(nothing, store, ALERT_EVENTS).append([firing, *ended], ("w", 1))
    deliveries.append([step(firing, "log"), step(firing, "slack"), *(step(one, "log") for one in ended)])
    if restarts:
        deliveries = DeliveryTable(nothing, store)
        deliveries.backlog(["log", "slack"])
    shutil.rmtree(tmp_path / "alerts")
    # The alert path stores those that are active again.
    LowLatencyTable(nothing, store, ALERT_EVENTS).append([firing, event("new")], ("w", 2))
    if is_quiet:
        deliveries.restore_if_removed()
    deliveries.append([step(event("new"), "log", "sending")])
    deliveries.restore_if_removed()
    after = DeliveryTable(nothing, store).backlog(["log", "slack"])
    assert len(after.records) == 3
    assert {(one.receiver, one.event_key, one.state, one.reference) for one in after.records} == {
        ("log", event_key(firing), "delivered", '{"ts": "1"}'),
        ("slack", event_key(firing), "delivered", '{"ts": "1"}'),
        ("log", event_key(event("new")), "sending", '{"ts": "1"}'),
    }


def test_rows_that_are_appended_as_one_batch_twice_are_there_once(tmp_path: Path) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    for version in (1, 1, 2):
        LowLatencyTable(nothing, store, ALERT_EVENTS).append([event(tick_ms=version)], ("w", version))
    assert [e.tick_ms for e in DeliveryTable(nothing, store).backlog(["log"]).events] in ([1, 2], [2, 1])


def _sorted(backlog: Backlog) -> tuple[list[str], list[tuple[str, str]]]:
    return sorted(map(event_key, backlog.events)), sorted((s.receiver, s.event_key) for s in backlog.records)


class Panic(BaseException):
    """What the Delta library raises where a disk is full: no Exception."""


def panicking(times: int) -> Callable[..., Any]:
    """The library's append, which panics so many times and then works."""
    left = [Panic("No space left on device (os error 28)")] * times

    def write(*given: Any, **named: Any) -> None:
        if left:
            raise left.pop()
        write_deltalake(*given, **named)

    return write


def test_a_panic_of_the_library_is_an_error_that_names_table_cause_and_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    monkeypatch.setattr(delta_append, "write_deltalake", panicking(1))
    table = DeliveryTable(nothing, store)
    with pytest.raises(HeadroomError) as caught:
        table.append([step(event(), "log")])
    assert caught.value.subject.removeprefix("file://").rstrip("/") == str(tmp_path / "alerts" / "deliveries")
    assert caught.value.rule == "the Delta library failed at it (No space left on device (os error 28))"
    assert "free space on its disk" in caught.value.remedy
    table.append([step(event(), "log")])
    assert len(delta_query.rows({"data": store.location(ALERT_DELIVERIES)}, "SELECT * FROM data")) == 1


def test_a_panic_while_a_suppression_is_written_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(delta_append, "write_deltalake", panicking(1))
    with pytest.raises(HeadroomError, match="No space left on device"):
        append_record(str(tmp_path / "marks"), silence())


@pytest.mark.parametrize("ending", ENDINGS)
def test_exceptions_that_end_the_process_are_not_converted_to_table_errors(ending: type[BaseException]) -> None:
    with pytest.raises(ending), delta_append.without_panic("table"):
        raise ending
