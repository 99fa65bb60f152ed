"""The queue of one receiver, with the time as a number."""

from __future__ import annotations

from headroom.alerts.delivery.delivery_log import Backlog, DeliveryAttempt, event_key
from headroom.alerts.delivery.queue import DeliveryBatch, DeliveryQueue
from headroom.alerts.delivery.receiver import DeliveryError, Receipt
from headroom.schemas.config import NotifySettings
from tests.unit.fakes.receivers import event

NOW_MS = 1_800_000_000_000
# Jitter 1: the whole wait.
SETTINGS = NotifySettings(retry_s=1, retry_max_s=4, give_up_s=100)


def new_queue(digest_after: int | None = None) -> DeliveryQueue:
    return DeliveryQueue("r", SETTINGS, lambda: 1.0, digest_after)


def due_batch(of: DeliveryQueue, now_ms: int = NOW_MS) -> DeliveryBatch:
    batch = of.due(now_ms)
    assert batch is not None
    return batch


def record(of: object, state: str, reference: str = "", attempt: int = 1) -> DeliveryAttempt:
    return DeliveryAttempt("r", event_key(of), "a", "orders", state, attempt, "said", reference, NOW_MS)  # type: ignore[arg-type]


def test_events_of_one_alert_go_in_order_and_a_failing_one_holds_up_no_other_alert() -> None:
    queue = new_queue()
    queue.add([event("a"), event("b"), event("a", "resolved", NOW_MS + 1)])
    first = due_batch(queue)
    assert event_key(first.pending[0].event) == f"a/{NOW_MS}/firing"
    queue.record_failure(first, DeliveryError("no"), NOW_MS)
    other = due_batch(queue)
    assert other.pending[0].event.alert_id == "b"
    queue.record_delivery(other.pending[0], Receipt("ok"))
    assert queue.due(NOW_MS) is None
    again = due_batch(queue, NOW_MS + 1000)
    assert event_key(again.pending[0].event) == f"a/{NOW_MS}/firing"
    queue.record_delivery(again.pending[0], Receipt("ok", "here"))
    last = due_batch(queue, NOW_MS + 1000)
    assert (last.pending[0].event.state, last.before) == ("resolved", "here")


def test_waits_double_up_to_the_longest() -> None:
    queue, waits, now = new_queue(), [], NOW_MS
    queue.add([event()])
    for _ in range(4):
        queue.record_failure(due_batch(queue, now), DeliveryError("no"), now)
        due = queue.next_ms(now)
        assert due is not None
        waits.append(due - now)
        now = due
    assert waits == [1000, 2000, 4000, 4000]


def test_retry_after_is_honoured_for_every_alert_of_the_receiver() -> None:
    queue = new_queue()
    queue.add([event("a"), event("b")])
    queue.record_failure(due_batch(queue), DeliveryError("slow down", retry_after_s=30, unsent=True), NOW_MS)
    assert queue.due(NOW_MS + 29_999) is None
    assert queue.next_ms(NOW_MS) == NOW_MS + 30_000
    assert not due_batch(queue, NOW_MS + 30_000).may_have_arrived


def test_only_an_attempt_that_may_have_arrived_is_looked_for() -> None:
    queue = new_queue()
    queue.add([event()])
    queue.record_failure(due_batch(queue), DeliveryError("refused", unsent=True), NOW_MS)
    assert not due_batch(queue, NOW_MS + 9000).may_have_arrived
    queue.record_failure(due_batch(queue, NOW_MS + 9000), DeliveryError("no answer"), NOW_MS)
    assert due_batch(queue, NOW_MS + 90_000).may_have_arrived


def test_pending_alerts_and_those_resolved_before_firing_are_not_sent() -> None:
    queue = new_queue()
    queue.add([event(state="pending"), event(state="resolved", tick_ms=NOW_MS + 1)])
    assert queue.due(NOW_MS) is None
    assert queue.undelivered_events(NOW_MS) == []


def test_an_event_that_is_added_twice_is_sent_once() -> None:
    queue = new_queue()
    for _ in range(2):
        queue.add([event()])
    queue.record_delivery(due_batch(queue).pending[0], Receipt("ok"))
    queue.add([event()])
    assert queue.due(NOW_MS) is None


def test_a_start_resumes_deliveries_without_an_outcome() -> None:
    firing, resolved = event(), event(state="resolved", tick_ms=NOW_MS + 1)
    queue = new_queue()
    queue.restore(Backlog([firing, resolved], [record(firing, "sending"), record(firing, "delivered", "here")]))
    batch = due_batch(queue)
    assert (batch.pending[0].event, batch.before, batch.may_have_arrived) == (resolved, "here", False)

    queue = new_queue()
    queue.restore(Backlog([firing], [record(firing, "sending", attempt=3)]))
    batch = due_batch(queue)
    assert (batch.pending[0].event, batch.may_have_arrived, batch.pending[0].attempts) == (firing, True, 3)


# Slack is configured a week after the webhook: what was over by then would come as if it fired now, with its mentions.
def test_a_new_receiver_gets_what_fires_and_nothing_that_was_over_before_it_came() -> None:
    over, ended, fires = event(), event(state="resolved", tick_ms=NOW_MS + 1), event("b", tick_ms=NOW_MS + 2)
    events = [over, ended, fires]
    queue = new_queue()
    queue.restore(Backlog(events, [], frozenset({"webhook"})))
    assert due_batch(queue).pending[0].event == fires
    assert [one.event for one in queue.undelivered_events(NOW_MS)] == [fires]
    # It is recorded once, so that the next start does not take it for undelivered.
    assert [one.event for one in queue.take_muted()] == [over, ended]
    assert queue.take_muted() == []
    # A receiver that has had anything before gets all of it.
    for receivers in (frozenset({"r", "webhook"}), None):
        queue = new_queue()
        queue.restore(Backlog(events, [], receivers))
        assert [one.event for one in queue.undelivered_events(NOW_MS)] == events


def test_a_firing_alert_that_was_sent_stays_active() -> None:
    queue = new_queue()
    queue.restore(Backlog([event()], [record(event(), "delivered", "here")]))
    assert queue.notified_alerts() == [(event(), "here")]
    assert queue.due(NOW_MS) is None


def test_an_event_is_dropped_only_long_after_its_alert_has_resolved() -> None:
    queue = new_queue()
    queue.add([event("a"), event("b"), event("a", "resolved", NOW_MS + 1)])
    assert queue.take_expired(NOW_MS + 100_000) == []
    # Resolved at 6 ms: 5 ms after its tick; 100 s on end at 100,006 ms.
    gone = queue.take_expired(NOW_MS + 100_007)
    assert [event_key(p.event) for p in gone] == [f"a/{NOW_MS}/firing", f"a/{NOW_MS + 1}/resolved"]
    assert len(queue.undelivered_events(NOW_MS)) == 1


def test_alerts_that_fire_at_once_are_sent_as_one_digest_also_after_a_failure() -> None:
    queue = new_queue(digest_after=2)
    queue.add([event("a"), event("b")])
    assert len(due_batch(queue).pending) == 1
    queue.add([event("c")])
    together = due_batch(queue)
    assert [p.event.alert_id for p in together.pending] == ["a", "b", "c"]
    queue.record_failure(together, DeliveryError("no"), NOW_MS)
    assert queue.due(NOW_MS + 999) is None
    assert len(due_batch(queue, NOW_MS + 1000).pending) == 3
