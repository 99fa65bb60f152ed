"""Receivers on their threads: none delays another, and no event is lost or doubled, whatever crashes."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import pytest

from headroom.alerts.delivery.delivery_log import Backlog, DeliveryAttempt, event_key
from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.outbox import Outbox
from headroom.alerts.delivery.queue import DeliveryBatch, DeliveryQueue
from headroom.alerts.delivery.receiver import DeliveryError, Receipt
from headroom.alerts.delivery.receivers.slack import SlackReceiver
from headroom.alerts.delivery.receivers.slack_api import SlackApi
from headroom.alerts.delivery.suppression import Suppressions
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import NotifySettings, SlackSettings
from tests.support.waiting import until
from tests.unit.alerts.delivery.test_suppression import ack, ended, silence
from tests.unit.fakes.receivers import FakeSlack, Said, event, serving

# Events of these tests have fixed times, and are not too old at any time of the real clock.
FAST = NotifySettings(retry_s=0.01, retry_max_s=0.02, give_up_s=1e9)
_WAIT_S = 120.0


class MemoryLog:
    """Steps in memory; ``die_at`` says at which states it fails, as a process that ends there would."""

    def __init__(self, events: Sequence[AlertEvent] = (), die_at: Sequence[str] = ()) -> None:
        self.events = list(events)
        self.records: list[DeliveryAttempt] = []
        self.die_at = list(die_at)
        self.damaged: str | None = None
        self.moves: list[object] = []

    def move_to(self, spark: object, store: object) -> None:
        self.moves.append(spark)

    def append(self, records: Sequence[DeliveryAttempt]) -> None:
        if any(record.state in self.die_at for record in records):
            raise OSError("gone")
        self.records.extend(records)

    def backlog(self, receivers: Sequence[str]) -> Backlog:
        return Backlog(self.events, list(self.records))

    def restore_if_removed(self) -> None:
        """Memory is not removed."""

    def damage(self) -> str | None:
        return self.damaged

    def states(self) -> list[str]:
        return [record.state for record in self.records]


class Inbox:
    """A receiver that knows what it has, and looks when it is asked to."""

    def __init__(self, name: str = "inbox", failures: int = 0) -> None:
        self.name = name
        self.got: list[str] = []
        self.failures = failures

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        if self.failures:
            self.failures -= 1
            raise DeliveryError("not now", unsent=True)
        if not (may_have_arrived and event_key(event) in self.got):
            self.got.append(event_key(event))
        return Receipt("ok", before or f"first {event_key(event)}")


class Hanging(Inbox):
    """A receiver that hangs until it is let go."""

    def __init__(self) -> None:
        super().__init__("hanging")
        self.let_go = threading.Event()

    def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
        self.let_go.wait(_WAIT_S)
        return super().deliver(event, before, may_have_arrived)


@pytest.fixture
def running() -> Iterator[Callable[..., Outbox]]:
    started: list[Outbox] = []

    def start(log: MemoryLog, *receivers: Inbox, settings: NotifySettings = FAST) -> Outbox:
        started.append(Outbox(receivers, log, settings, lambda: time.time_ns() // 1_000_000))
        started[-1].start()
        return started[-1]

    yield start
    for outbox in started:
        outbox.stop()


def test_receivers_are_notified_while_nothing_can_be_stored_and_steps_are_stored_later(
    running: Callable[..., Outbox],
) -> None:
    log, inbox = MemoryLog(die_at=["sending", "delivered", "failed"]), Inbox()
    outbox = running(log, inbox)
    outbox.go_without_store(True)
    outbox.add([event()])
    until(lambda: inbox.got == [event_key(event())], lambda: inbox.got)
    until(lambda: outbox.figures()[0].last_delivery_ms is not None, outbox.figures)
    assert log.records == []
    log.die_at = []
    outbox.go_without_store(False)
    until(lambda: len(log.records) == 2, log.states)
    assert log.states() == ["sending", "delivered"]
    outbox.add([event("b")])
    until(lambda: len(log.records) == 4, log.states)
    assert inbox.got == [event_key(event()), event_key(event("b"))]


def test_an_event_that_failed_without_a_table_is_sent_when_the_outbox_runs_without_a_store(
    running: Callable[..., Outbox],
) -> None:
    log, inbox = MemoryLog(die_at=["sending"]), Inbox()
    outbox = running(log, inbox)
    outbox.add([event()])
    until(lambda: "failed" in log.states(), log.states)
    assert inbox.got == []
    outbox.go_without_store(True)
    until(lambda: inbox.got == [event_key(event())], lambda: inbox.got)


class Panic(BaseException):
    """What the Delta library raises where a disk is full: no Exception."""


class PanickingLog(MemoryLog):
    """Panics once, at the first step of a state."""

    def __init__(self, state: str) -> None:
        super().__init__()
        self.panic_at = state

    def append(self, records: Sequence[DeliveryAttempt]) -> None:
        if any(record.state == self.panic_at for record in records):
            self.panic_at = ""
            raise Panic("No space left on device")
        super().append(records)


@pytest.mark.parametrize(
    ("state", "states"),
    [
        # The attempt was not made, and is the second one then.
        ("sending", ["failed", "sending", "delivered"]),
        # It is kept with the next step that is.
        ("delivered", ["sending", "delivered", "sending", "delivered"]),
    ],
)
def test_a_panic_of_the_log_ends_no_receiver_and_loses_no_step(
    running: Callable[..., Outbox], state: str, states: list[str]
) -> None:
    log, inbox = PanickingLog(state), Inbox()
    outbox = running(log, inbox)
    outbox.add([event()])
    until(lambda: inbox.got == [event_key(event())], lambda: inbox.got)
    if state == "delivered":
        until(lambda: outbox.figures()[0].last_delivery_ms is not None, outbox.figures)
        outbox.add([event("b")])
    until(lambda: len(log.records) == len(states), log.states)
    assert log.states() == states


def test_a_turn_that_fails_ends_no_receiver(
    running: Callable[..., Outbox], monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr("headroom.alerts.delivery.worker._PAUSE_S", 0.01)
    failures = [Panic("xoxb-secret"), ValueError("xoxb-secret"), ValueError("xoxb-secret")]

    def due(queue: DeliveryQueue, now_ms: int) -> DeliveryBatch | None:
        if failures:
            raise failures.pop(0)
        return was(queue, now_ms)

    was = DeliveryQueue.due
    monkeypatch.setattr(DeliveryQueue, "due", due)
    inbox = Inbox()
    running(MemoryLog(), inbox).add([event()])
    until(lambda: inbox.got == [event_key(event())], lambda: inbox.got)
    reported = [record.message for record in caplog.records if "goes on" in record.message]
    assert reported == [f"the delivery to inbox failed, and goes on: {name}" for name in ("Panic", "ValueError")]


def test_an_event_is_kept_as_sending_before_and_as_delivered_after(running: Callable[..., Outbox]) -> None:
    log, inbox = MemoryLog(), Inbox()
    outbox = running(log, inbox)
    outbox.add([event()])
    until(lambda: len(log.records) == 2, log.states)
    assert log.states() == ["sending", "delivered"]
    assert (log.records[1].answer, log.records[1].reference) == ("ok", f"first {event_key(event())}")
    (figures,) = outbox.figures()
    assert (figures.receiver, figures.undelivered) == ("inbox", 0)
    assert figures.last_delivery_ms is not None


def test_a_receiver_that_hangs_delays_no_other_and_no_stop(running: Callable[..., Outbox]) -> None:
    hanging, inbox = Hanging(), Inbox()
    outbox = running(MemoryLog(), hanging, inbox)
    began = time.monotonic()
    outbox.add([event()])
    assert time.monotonic() - began < 10
    until(lambda: len(inbox.got) == 1, lambda: inbox.got)
    # The receiver has the event before the outbox has noted that.
    until(lambda: [f.undelivered for f in outbox.figures()] == [1, 0], outbox.figures)
    outbox.stop()
    assert time.monotonic() - began < _WAIT_S
    hanging.let_go.set()


def test_a_failed_delivery_is_retried_until_it_succeeds(running: Callable[..., Outbox]) -> None:
    log, inbox = MemoryLog(), Inbox(failures=3)
    running(log, inbox).add([event()])
    until(lambda: "delivered" in log.states(), log.states)
    assert log.states() == [*["sending", "failed"] * 3, "sending", "delivered"]
    assert [record.attempt for record in log.records] == [1, 1, 2, 2, 3, 3, 4, 4]


@pytest.mark.parametrize("die_at", [("sending",), ("delivered", "failed")])
def test_no_event_is_lost_or_doubled_over_a_crash_between_send_and_record(
    running: Callable[..., Outbox], die_at: tuple[str, ...]
) -> None:
    events = [event(), event(state="resolved", tick_ms=1_800_000_000_001)]
    log, inbox = MemoryLog(events, die_at), Inbox()
    crashed = running(log, inbox)
    if "sending" in die_at:
        until(lambda: crashed.figures()[0].undelivered == 2, crashed.figures)
    else:
        until(lambda: len(inbox.got) >= 1, lambda: inbox.got)
    crashed.stop()
    log.die_at.clear()
    # A failing table lets nothing be sent that is not kept as sending first.
    assert "sending" not in die_at or inbox.got == []
    running(log, inbox)
    until(lambda: log.states().count("delivered") == 2, log.states)
    assert inbox.got == [event_key(e) for e in events]


def test_a_crash_after_slack_took_a_message_gives_no_second_one(running: Callable[..., Outbox]) -> None:
    fake, log = FakeSlack(Said(lose=True)), MemoryLog([event()])
    with serving(fake) as url:
        api = SlackApi(SlackSettings(channel="C0123456", api_url=f"{url}/api/"), lambda: "xoxb-1")
        slack: Any = SlackReceiver(api, "C0123456", 10, Links())
        # It is not tried again by the one that crashed.
        crashed = running(log, slack, settings=NotifySettings(retry_s=1000, retry_max_s=1000))
        until(lambda: bool(fake.messages), log.states)
        crashed.stop()
        log.records = [record for record in log.records if record.state == "sending"]
        log.events.append(event(state="resolved", tick_ms=1_800_000_000_001))
        running(log, slack)
        until(lambda: log.states().count("delivered") == 2, log.states)
    assert (len(fake.roots()), len(fake.replies())) == (1, 1)
    assert "RESOLVED" in fake.roots()[0]["text"]


def test_a_stop_leaves_what_is_queued_to_the_next_start(running: Callable[..., Outbox]) -> None:
    log, away = MemoryLog([event()]), Inbox(failures=1_000_000)
    running(log, away).stop()
    assert "delivered" not in log.states()
    inbox = Inbox()
    running(log, inbox)
    until(lambda: len(inbox.got) == 1, lambda: inbox.got)


def test_idle_threads_end_at_once(running: Callable[..., Outbox]) -> None:
    outbox = running(MemoryLog(), Inbox())
    began = time.monotonic()
    outbox.stop()
    assert time.monotonic() - began < 10
    until(lambda: not [t for t in threading.enumerate() if t.name == "delivery to inbox"], threading.enumerate)


def test_a_drop_is_kept_and_logged(running: Callable[..., Outbox], caplog: pytest.LogCaptureFixture) -> None:
    old = [event(tick_ms=1), event(state="resolved", tick_ms=2)]
    log, inbox = MemoryLog(old), Inbox()
    with caplog.at_level(logging.ERROR):
        running(log, inbox)
        until(lambda: len(log.records) == 2, log.states)
    assert (log.states(), inbox.got) == (["dropped", "dropped"], [])
    assert "was not notified of a/1/firing" in caplog.text


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def recent(state: str = "firing", ago_ms: int = 0, alert_id: str = "a", broker: int = 2) -> AlertEvent:
    at_ms = now_ms() - ago_ms
    return event(alert_id, state, at_ms, event_ms=at_ms, subject=f"broker {broker} as leader")


def test_silenced_alerts_are_sent_when_the_silence_is_ended_and_others_at_once(running: Callable[..., Outbox]) -> None:
    log, inbox = MemoryLog(), Inbox()
    outbox = running(log, inbox)
    made = silence(starts_ms=now_ms() - 1000, ends_ms=now_ms() + 3_600_000, subject="broker 2*")
    outbox.update_suppressions(Suppressions.of([made]))
    covered, other = recent(), recent(alert_id="b", broker=3)
    outbox.add([covered, other])
    until(lambda: inbox.got == [event_key(other)], lambda: inbox.got)
    until(lambda: outbox.figures()[0].undelivered == 0, outbox.figures)
    outbox.update_suppressions(Suppressions.of([made, ended(made, now_ms())]))
    until(lambda: inbox.got == [event_key(other), event_key(covered)], lambda: inbox.got)


def test_the_end_of_a_silence_wakes_the_thread(running: Callable[..., Outbox]) -> None:
    log, inbox = MemoryLog(), Inbox()
    outbox = running(log, inbox)
    ends_ms = now_ms() + 300
    outbox.update_suppressions(Suppressions.of([silence(starts_ms=0, ends_ms=ends_ms)]))
    outbox.add([recent()])
    until(lambda: "delivered" in log.states(), log.states)
    assert 0 <= log.records[0].delivery_ms - ends_ms < 60_000


def test_an_alert_that_ends_while_silenced_is_recorded_as_silenced_and_never_sent(
    running: Callable[..., Outbox],
) -> None:
    events = [recent(ago_ms=2), recent("resolved")]
    log, inbox = MemoryLog(events), Inbox()
    suppressions = Suppressions.of([silence(starts_ms=0, ends_ms=now_ms() + 3_600_000)])
    outbox = Outbox([inbox], log, FAST, now_ms)
    outbox.update_suppressions(suppressions)
    outbox.start()
    until(lambda: len(log.records) == 2, log.states)
    outbox.stop()
    assert (log.states(), [record.attempt for record in log.records], inbox.got) == (
        ["silenced", "silenced"],
        [0, 0],
        [],
    )
    # It is not told when nothing is silenced any more.
    running(log, inbox)
    time.sleep(0.1)
    assert (len(log.records), inbox.got) == (2, [])


def test_an_acknowledged_update_is_not_sent_and_the_resolution_is(running: Callable[..., Outbox]) -> None:
    log, inbox = MemoryLog(), Inbox()
    outbox = running(log, inbox)
    first, update, last = recent(ago_ms=3), recent(ago_ms=2), recent("resolved")
    outbox.add([first])
    until(lambda: "delivered" in log.states(), log.states)
    outbox.update_suppressions(Suppressions.of([ack()]))
    outbox.add([update])
    until(lambda: "silenced" in log.states(), log.states)
    outbox.add([last])
    until(lambda: log.states().count("delivered") == 2, log.states)
    assert inbox.got == [event_key(first), event_key(last)]


def test_the_text_of_an_unexpected_error_is_not_logged(
    running: Callable[..., Outbox], caplog: pytest.LogCaptureFixture
) -> None:
    class Leaking(Inbox):
        def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
            raise ValueError("Invalid header value b'Bearer xoxb-secret'")

    log = MemoryLog()
    running(log, Leaking()).add([event()])
    until(lambda: "failed" in log.states(), log.states)
    assert "ValueError" in caplog.text
    assert "xoxb" not in caplog.text + repr(log.records)


class SettableClock:
    """The time now, and by how much somebody has set the clock."""

    def __init__(self) -> None:
        self.set_ms = 0

    def __call__(self) -> int:
        return now_ms() + self.set_ms


@pytest.mark.parametrize("set_s", [-3600, 3600])
def test_a_clock_that_is_set_during_an_attempt_delays_neither_the_next_one_nor_resending(set_s: int) -> None:
    clock = SettableClock()

    class Slow(Inbox):
        """Receiver that gets firing alerts again. The clock is set while it is asked."""

        resend_in_s = 0.05

        def __init__(self) -> None:
            super().__init__(failures=1)
            self.resent = 0

        def restore(self, alerts: object) -> None:
            pass

        def forget(self, alert_id: str) -> None:
            pass

        def deliver(self, event: AlertEvent, before: str, may_have_arrived: bool) -> Receipt:
            if self.failures:
                clock.set_ms += set_s * 1000
            return super().deliver(event, before, may_have_arrived)

        def resend(self) -> None:
            self.resent += 1
            if self.resent == 1:
                clock.set_ms += set_s * 1000

    inbox = Slow()
    outbox = Outbox([inbox], MemoryLog(), NotifySettings(retry_s=0.05, retry_max_s=0.05), clock)
    outbox.start()
    try:
        outbox.add([event()])
        until(lambda: inbox.got == [event_key(event())], lambda: inbox.got)
        until(lambda: inbox.resent > 2, lambda: inbox.resent)
    finally:
        outbox.stop()


@pytest.mark.parametrize("set_s", [-3600, 3600])
def test_a_clock_that_is_set_holds_up_no_attempt_and_no_resending(set_s: int) -> None:
    class ResendingInbox(Inbox):
        """Receiver that gets firing alerts again."""

        resend_in_s = 0.05

        def __init__(self, failures: int) -> None:
            super().__init__(failures=failures)
            self.resent = 0

        def restore(self, reported: object) -> None:
            pass

        def forget(self, alert_id: str) -> None:
            pass

        def resend(self) -> None:
            self.resent += 1

    clock, inbox = SettableClock(), ResendingInbox(failures=2)
    outbox = Outbox([inbox], MemoryLog(), NotifySettings(retry_s=0.4, retry_max_s=0.4), clock)
    outbox.start()
    try:
        outbox.add([event()])
        until(lambda: inbox.failures == 1, lambda: inbox.failures)
        clock.set_ms = set_s * 1000
        until(lambda: inbox.got == [event_key(event())], lambda: inbox.got)
        began_s, before = time.monotonic(), inbox.resent
        until(lambda: inbox.resent > before, lambda: inbox.resent)
        resent = inbox.resent - before
        # Nor are alerts re-sent without a pause.
        assert resent < 10 + (time.monotonic() - began_s) / ResendingInbox.resend_in_s
    finally:
        outbox.stop()
