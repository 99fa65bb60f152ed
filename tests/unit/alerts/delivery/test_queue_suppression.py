"""What silences, windows and acknowledgements make of a queue: nothing is lost, and nobody hears of what is covered."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace

from hypothesis import given, settings
from hypothesis import strategies as st

from headroom.alerts.delivery.delivery_log import Backlog, DeliveryAttempt, event_key
from headroom.alerts.delivery.queue import DeliveryQueue
from headroom.alerts.delivery.receiver import DeliveryError, Receipt
from headroom.alerts.delivery.receivers.slack_blocks import headline
from headroom.alerts.delivery.suppression import SuppressionRecord, Suppressions
from headroom.schemas.alerts import AlertEvent
from tests.unit.alerts.delivery.test_queue import SETTINGS, due_batch, new_queue, record
from tests.unit.alerts.delivery.test_suppression import NOW_MS, ack, ended, silence
from tests.unit.fakes.receivers import event

END_MS = NOW_MS + 1000
SUPPRESSED = Suppressions.of([silence(ends_ms=END_MS)])


def at(offset_ms: int, state: str = "firing", alert_id: str = "a", severity: str = "critical") -> AlertEvent:
    """An event that was written so long after the beginning of the silence."""
    when_ms = NOW_MS + offset_ms
    return event(alert_id, state, when_ms, event_ms=when_ms, severity=severity)


def suppressed_queue(*events: AlertEvent, suppressions: Suppressions = SUPPRESSED) -> DeliveryQueue:
    queue = new_queue()
    queue.update_suppressions(suppressions)
    queue.add(events)
    return queue


def muted(queue: DeliveryQueue) -> list[str]:
    return [event_key(one.event) for one in queue.take_muted()]


def keys(*events: AlertEvent) -> list[str]:
    return [event_key(one) for one in events]


def test_a_silenced_alert_is_sent_when_the_silence_ends() -> None:
    queue = suppressed_queue(at(1))
    assert (muted(queue), queue.due(NOW_MS + 1), queue.next_ms(NOW_MS + 1)) == ([], None, END_MS)
    assert queue.undelivered_events(NOW_MS + 1) == []
    assert due_batch(queue, END_MS).pending[0].event == at(1)
    assert len(queue.undelivered_events(END_MS)) == 1


def test_only_the_newest_of_several_silenced_updates_is_sent_after_the_silence() -> None:
    queue = suppressed_queue(at(1), at(2), at(3))
    assert muted(queue) == keys(at(1), at(2))
    assert due_batch(queue, END_MS).pending[0].event == at(3)


def test_an_alert_that_resolves_during_its_silence_is_not_sent() -> None:
    queue = suppressed_queue(at(-1), at(1), at(2, "resolved"))
    assert muted(queue) == keys(at(-1), at(1), at(2, "resolved"))
    assert (queue.due(END_MS), queue.notified_alerts()) == (None, [])


def test_an_alert_below_the_least_severity_is_sent_only_once_its_severity_rises() -> None:
    queue = suppressed_queue(at(1, severity="info"), suppressions=Suppressions())
    assert (muted(queue), queue.due(NOW_MS + 10_000), queue.undelivered_events(NOW_MS)) == ([], None, [])
    queue.add([at(2, severity="warning")])
    assert muted(queue) == keys(at(1))
    assert due_batch(queue).pending[0].event == at(2, severity="warning")
    below_severity = suppressed_queue(
        at(1, severity="info"), at(2, "resolved", severity="info"), suppressions=Suppressions()
    )
    assert muted(below_severity) == keys(at(1), at(2, "resolved"))
    assert below_severity.due(NOW_MS + 10_000) is None


def test_the_resolution_of_an_alert_that_was_sent_is_sent_despite_a_silence() -> None:
    queue = suppressed_queue(at(-1), suppressions=Suppressions())
    queue.record_delivery(due_batch(queue).pending[0], Receipt("ok", "here"))
    queue.update_suppressions(SUPPRESSED)
    queue.add([at(1)])
    assert queue.due(NOW_MS + 1) is None
    queue.add([at(2, "resolved")])
    assert muted(queue) == keys(at(1))
    batch = due_batch(queue, NOW_MS + 2)
    assert (batch.pending[0].event, batch.before) == (at(2, "resolved"), "here")


def test_an_alert_that_resolves_after_its_silence_is_sent_as_firing_and_as_resolved() -> None:
    queue = suppressed_queue(at(1), at(1001, "resolved"))
    assert muted(queue) == []
    queue.record_delivery(due_batch(queue, END_MS + 1).pending[0], Receipt("ok"))
    assert due_batch(queue, END_MS + 1).pending[0].event == at(1001, "resolved")


def test_an_alert_that_may_have_arrived_is_sent_until_its_resolution_despite_a_silence() -> None:
    queue = suppressed_queue(at(-1), suppressions=Suppressions())
    queue.record_failure(due_batch(queue), DeliveryError("no answer"), NOW_MS)
    queue.update_suppressions(SUPPRESSED)
    queue.add([at(1), at(2, "resolved")])
    assert muted(queue) == keys(at(1))
    # It is not tried again before its time for that.
    assert queue.due(NOW_MS + 999) is None
    queue.record_delivery(due_batch(queue, NOW_MS + 10_000).pending[0], Receipt("was there already"))
    assert due_batch(queue, NOW_MS + 10_000).pending[0].event == at(2, "resolved")


def test_a_silence_that_is_ended_early_releases_its_alerts_at_once() -> None:
    queue, made = suppressed_queue(at(1)), silence(ends_ms=END_MS)
    queue.update_suppressions(Suppressions.of([made, ended(made, NOW_MS + 5)]))
    assert due_batch(queue, NOW_MS + 5).pending[0].event == at(1)


def test_alerts_that_are_not_silenced_do_not_wait_for_silenced_ones() -> None:
    other = event("b", subject="broker 3 as leader")
    queue = suppressed_queue(at(1), other, suppressions=Suppressions.of([silence(ends_ms=END_MS, subject="broker 2*")]))
    assert due_batch(queue, NOW_MS + 1).pending[0].event == other


def test_alerts_whose_silence_ends_are_sent_as_one_digest() -> None:
    queue = new_queue(digest_after=2)
    queue.update_suppressions(SUPPRESSED)
    queue.add([at(1, alert_id=name) for name in "abc"])
    assert len(due_batch(queue, END_MS).pending) == 3


def test_updates_of_an_acknowledged_alert_are_not_sent_until_its_severity_rises() -> None:
    queue = suppressed_queue(at(1, severity="warning"), suppressions=Suppressions.of([ack(severity="warning")]))
    # Its beginning is no update.
    assert muted(queue) == []
    queue.record_delivery(due_batch(queue).pending[0], Receipt("ok"))
    queue.add([at(2, severity="warning"), at(3, severity="critical")])
    assert muted(queue) == keys(at(2, severity="warning"))
    queue.record_delivery(due_batch(queue).pending[0], Receipt("ok"))
    queue.add([at(4, "resolved", severity="critical")])
    assert muted(queue) == []
    assert due_batch(queue).pending[0].event.state == "resolved"


def test_a_silenced_event_does_not_count_as_sent_after_a_restart() -> None:
    firing, update = at(1), at(2)
    queue = new_queue()
    queue.restore(Backlog([firing, update], [record(firing, "silenced")]))
    assert queue.notified_alerts() == []
    queue.update_suppressions(SUPPRESSED)
    queue.add([at(3, "resolved")])
    assert muted(queue) == keys(update, at(3, "resolved"))

    queue = new_queue()
    queue.restore(Backlog([firing, update], [record(firing, "delivered", "here"), record(update, "silenced")]))
    assert queue.notified_alerts() == [(firing, "here")]


@dataclass
class World:
    """One receiver that always answers, over restarts that forget all but the tables.

    Attributes:
        told: what it heard, and when.
    """

    suppressions: Sequence[SuppressionRecord]
    events: list[AlertEvent] = field(default_factory=list)
    records: list[DeliveryAttempt] = field(default_factory=list)
    sent: list[tuple[AlertEvent, int]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.restart()

    def restart(self) -> None:
        self.queue = new_queue()
        self.queue.update_suppressions(Suppressions.of(self.suppressions))
        self.queue.restore(Backlog(list(self.events), list(self.records)))

    def run(self, now_ms: int, crash: str) -> None:
        """Do what a worker does at one time; with a crash at the first step of a kind, before it is kept."""
        for one in self.queue.take_muted():
            if crash == "silenced":
                self.restart()
                self.run(now_ms, "")
                return
            self.records.append(record(one.event, "silenced"))
        while (batch := self.queue.due(now_ms)) is not None:
            (one,) = batch.pending
            self.records.append(record(one.event, "sending"))
            if crash == "sending":
                self.restart()
                self.run(now_ms, "")
                return
            if not (batch.may_have_arrived and one.event in [event for event, _ in self.sent]):
                self.sent.append((one.event, now_ms))
            if crash == "delivered":
                self.restart()
                self.run(now_ms, "")
                return
            self.queue.record_delivery(one, Receipt("ok", "here"))
            self.records.append(record(one.event, "delivered", "here"))


# Few moments, so that what a rule may overlook falls together: a cover that ends as an alert fires or resolves.
_LAST = 24
_SPAN = st.tuples(st.integers(0, 16), st.integers(1, 8))
_CRASH = st.sampled_from(["", "", "silenced", "sending", "delivered"])


@settings(max_examples=500, deadline=None)
@given(
    spans=st.lists(_SPAN, max_size=3),
    fires=st.sets(st.integers(0, 15), min_size=1, max_size=6),
    resolves=st.one_of(st.none(), st.integers(16, 20)),
    crashes=st.lists(_CRASH, min_size=_LAST + 1, max_size=_LAST + 1),
)
def test_the_end_of_a_silence_sends_each_alert_once_despite_crashes(
    spans: list[tuple[int, int]], fires: set[int], resolves: int | None, crashes: list[str]
) -> None:
    world = World([silence(str(i), NOW_MS + s, NOW_MS + s + lasts) for i, (s, lasts) in enumerate(spans)])
    expected: list[tuple[str, int, int]] = []
    kept: list[int] = []
    for now in range(_LAST + 1):
        new = [at(now)] if now in fires else [at(now, "resolved")] if now == resolves else []
        world.events += new
        world.queue.add(new)
        world.run(NOW_MS + now, crashes[now])
        kept += [now] if now in fires else []
        if not any(s <= now < s + lasts for s, lasts in spans):
            expected += [("firing", kept[-1], now)] if kept else []
            kept = []
        if now == resolves:
            expected += [("resolved", now, now)] if expected else []
            kept = []
    assert [(one.state, one.tick_ms - NOW_MS, now_ms - NOW_MS) for one, now_ms in world.sent] == expected
    assert (world.queue.take_muted(), world.queue.undelivered_events(NOW_MS + _LAST)) == ([], [])


def test_an_event_of_an_unknown_severity_is_sent_as_a_critical_one() -> None:
    queue = DeliveryQueue("r", replace(SETTINGS, least_severity="critical"), lambda: 1.0)
    queue.add([at(1, severity="catastrophic"), at(1, alert_id="b", severity="warning")])
    assert [one.event.severity for one in queue.undelivered_events(NOW_MS + 1)] == ["catastrophic"]
    assert headline(at(1, severity="catastrophic")).startswith(headline(at(1)).split("*")[0])
