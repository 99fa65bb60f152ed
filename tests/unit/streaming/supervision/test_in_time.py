"""Storage that hangs: callers get an error in time, and no call runs twice at once."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from deltalake import write_deltalake

from headroom.schemas.tables import ALERT_DELIVERIES, ALERT_EVENTS
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta import query as delta_query
from headroom.streaming.store.delivery_table import DeliveryTable
from headroom.streaming.store.event_log import EventLog
from headroom.streaming.supervision.in_time import InTime, NoAnswer
from tests.unit.alerts.delivery.test_outbox import until
from tests.unit.fakes.receivers import event
from tests.unit.streaming.store.test_delivery_table import PlainStore, step


@pytest.fixture
def let_go() -> Iterator[threading.Event]:
    """Lets go of what hangs, at the latest when the test ends."""
    event = threading.Event()
    yield event
    event.set()


def test_a_call_that_ends_in_time_returns_its_result_or_raises_its_error() -> None:
    in_time = InTime[int]("/data")
    assert in_time.call(lambda: 7) == 7
    with pytest.raises(ZeroDivisionError):
        in_time.call(lambda: 1 // 0)
    with pytest.raises(KeyboardInterrupt):
        in_time.call(_interrupted)


def _interrupted() -> int:
    raise KeyboardInterrupt


def test_one_that_hangs_is_given_up_and_no_other_is_begun_beside_it(let_go: threading.Event) -> None:
    calls: list[int] = []
    in_time = InTime[None]("/data", deadline_s=0.05)

    def hang() -> None:
        calls.append(1)
        let_go.wait(120)

    for _ in range(3):
        with pytest.raises(NoAnswer) as caught:
            in_time.call(hang)
    # The deadline may have passed before the thread of the first call ran.
    until(lambda: calls)
    assert (caught.value.subject, caught.value.rule) == ("/data", "does not answer")
    assert calls == [1]
    let_go.set()
    until(lambda: not _store_threads(), _store_threads)
    in_time._deadline_s = 60.0
    in_time.call(hang)
    assert calls == [1, 1]


def _store_threads() -> list[str]:
    return [thread.name for thread in threading.enumerate() if thread.name == "store /data"]


def test_events_and_steps_of_a_disk_that_hangs_are_given_up_and_events_kept_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, let_go: threading.Event
) -> None:
    def hang(*given: Any, **named: Any) -> None:
        let_go.wait(120)
        write_deltalake(*given, **named)

    nothing: Any = None
    store: Any = PlainStore(tmp_path)
    events, deliveries = EventLog(nothing, store), DeliveryTable(nothing, store)
    monkeypatch.setattr(delta_append, "write_deltalake", hang)
    monkeypatch.setattr("headroom.streaming.supervision.in_time.DEADLINE_S", 0.05)
    began_s = time.monotonic()
    for _ in range(2):
        with pytest.raises(NoAnswer) as caught:
            events.append([event()], "w", 1)
        with pytest.raises(NoAnswer):
            deliveries.append([step(event(), "log")])
    assert time.monotonic() - began_s < 60
    # Nothing is asked of the disk for it.
    assert events.trouble(caught.value).startswith(f"{store.location(ALERT_EVENTS)}: does not answer")
    let_go.set()
    monkeypatch.setattr("headroom.streaming.supervision.in_time.DEADLINE_S", 60.0)
    until(lambda: not [t for t in threading.enumerate() if t.name.startswith("store ")], threading.enumerate)
    # The one that hung came to its end.
    events.append([event()], "w", 1)
    for table in (ALERT_EVENTS, ALERT_DELIVERIES):
        assert len(delta_query.rows({"data": store.location(table)}, "SELECT * FROM data")) == 1
