"""Alertmanager's API v2 and a webhook, against servers on this machine."""

from __future__ import annotations

import base64
import hashlib
import hmac
import json
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import pytest

from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import DeliveryError
from headroom.alerts.delivery.receivers.alertmanager import AlertmanagerReceiver, labels
from headroom.alerts.delivery.receivers.webhook import KEY_HEADER, SIGNATURE_HEADER, TIMESTAMP_HEADER, WebhookReceiver
from headroom.schemas.config import AlertmanagerSettings, WebhookSettings
from tests.unit.fakes.receivers import Asked, Said, Scripted, event, serving

# 2027-01-15 08:00:00 UTC is 1,800,000,000 s; ten seconds later.
NOW_MS = 1_800_000_010_000
RESOLVED = event(state="resolved", tick_ms=1_800_000_008_000)
SECRET = "not-to-be-told"


@contextmanager
def alertmanager(*instances: Callable[[Asked], Said], user: str | None = None) -> Iterator[AlertmanagerReceiver]:
    with ExitStack() as running:
        urls = [running.enter_context(serving(instance)) for instance in instances]
        settings = AlertmanagerSettings(",".join(urls), user, resend_s=60, timeout_s=60)
        links = Links("http://boards/{cluster}", "http://runbooks/{kind}")
        yield AlertmanagerReceiver(settings, lambda: SECRET, links, lambda: NOW_MS)


def last(instance: Scripted) -> Any:
    return instance.bodies()[-1]


def test_a_firing_alert_starts_at_its_first_tick_and_ends_by_itself_later() -> None:
    instance = Scripted()
    with alertmanager(instance, user="me") as receiver:
        receipt = receiver.deliver(event(), "", False)
        receiver.deliver(event(tick_ms=1_800_000_005_000), receipt.reference, False)
    first, second = (body[0] for body in instance.bodies())
    assert instance.asked[0].path == "/api/v2/alerts"
    # Four times 60 s after 08:00:10.
    assert (first["startsAt"], first["endsAt"]) == ("2027-01-15T08:00:00.000Z", "2027-01-15T08:04:10.000Z")
    assert second["startsAt"] == first["startsAt"]
    assert second["labels"] == first["labels"]
    assert first["annotations"]["required"] == "3.00 MB/s"
    assert first["annotations"]["runbook_url"] == "http://runbooks/throttle_below_leader_write"
    assert first["generatorURL"] == "http://boards/orders"
    assert instance.asked[0].headers["Authorization"] == f"Basic {base64.b64encode(f'me:{SECRET}'.encode()).decode()}"


def test_labels_are_name_cluster_subject_and_severity() -> None:
    named = {"alertname": "throttle_below_leader_write", "cluster": "orders", "subject": "broker 2 as leader"}
    assert labels(event()) == {**named, "severity": "critical"}


def test_a_rise_in_severity_ends_the_alert_and_starts_one_at_the_new_severity() -> None:
    instance = Scripted()
    with alertmanager(instance) as receiver:
        before = receiver.deliver(event(severity="warning"), "", False).reference
        before = receiver.deliver(event(tick_ms=1_800_000_005_000), before, False).reference
        graver, lower = last(instance)
        assert (graver["labels"]["severity"], graver["startsAt"]) == ("critical", "2027-01-15T08:00:05.000Z")
        assert graver["endsAt"] == "2027-01-15T08:04:10.000Z"
        assert (lower["labels"]["severity"], lower["endsAt"]) == ("warning", "2027-01-15T08:00:05.000Z")
        assert lower["startsAt"] == "2027-01-15T08:00:00.000Z"
        # Whoever missed it, or comes back from a restart, hears both again.
        receiver.restore([(event(tick_ms=1_800_000_005_000), before)])
        receiver.resend()
        assert last(instance) == [graver, lower]
        receiver.deliver(RESOLVED, before, False)
    ends = {alert["labels"]["severity"]: alert["endsAt"] for alert in last(instance)}
    assert ends == {"critical": "2027-01-15T08:00:08.000Z", "warning": "2027-01-15T08:00:05.000Z"}


def test_an_alert_that_becomes_another_matter_is_another_one_so_that_it_calls_again() -> None:
    instance = Scripted()
    more = replace(event(tick_ms=1_800_000_005_000), evidence='{"escalation": 1}')
    with alertmanager(instance) as receiver:
        before = receiver.deliver(event(), "", False).reference
        before = receiver.deliver(more, before, False).reference
        later, earlier = last(instance)
        assert (later["labels"]["escalation"], later["startsAt"]) == ("1", "2027-01-15T08:00:05.000Z")
        assert earlier["labels"] == labels(event())
        assert earlier["endsAt"] == "2027-01-15T08:00:05.000Z"
        # An update of what it has become is none of another alert.
        update = replace(more, tick_ms=1_800_000_006_000)
        assert receiver.deliver(update, before, False).reference == before
        receiver.deliver(replace(more, state="resolved", tick_ms=1_800_000_008_000), before, False)
    ends = {alert["labels"].get("escalation"): alert["endsAt"] for alert in last(instance)}
    assert ends == {"1": "2027-01-15T08:00:08.000Z", None: "2027-01-15T08:00:05.000Z"}


def test_an_alert_sent_by_an_older_version_keeps_its_start_and_reference() -> None:
    instance = Scripted()
    with alertmanager(instance) as receiver:
        older = '{"starts_at_ms": 1800000000000, "severity": "critical"}'
        assert receiver.deliver(event(tick_ms=1_800_000_005_000), older, False).reference == older
    assert [alert["startsAt"] for alert in last(instance)] == ["2027-01-15T08:00:00.000Z"]


def test_a_resolved_alert_ends_at_its_resolution_and_is_sent_no_more() -> None:
    instance = Scripted()
    with alertmanager(instance) as receiver:
        reference = receiver.deliver(event(), "", False).reference
        receiver.resend()
        assert last(instance)[0]["endsAt"] == "2027-01-15T08:04:10.000Z"
        receiver.deliver(RESOLVED, reference, False)
        assert last(instance)[0]["endsAt"] == "2027-01-15T08:00:08.000Z"
        assert last(instance)[0]["startsAt"] == "2027-01-15T08:00:00.000Z"
        receiver.resend()
    assert len(instance.asked) == 3


def test_after_the_clock_was_set_back_nothing_ends_in_the_time_that_was() -> None:
    # The warning began at 08:00:00 and was critical from 08:00:05; then the clock was set back by an hour.
    now_ms = [NOW_MS]
    instance = Scripted()
    with alertmanager(instance) as receiver:
        receiver._clock_ms = lambda: now_ms[0]
        before = receiver.deliver(event(severity="warning"), "", False).reference
        before = receiver.deliver(event(tick_ms=1_800_000_005_000), before, False).reference
        # 08:00:10 less an hour.
        now_ms[0] = NOW_MS - 3_600_000
        receiver.resend()
        assert [(alert["startsAt"], alert["endsAt"]) for alert in last(instance)] == [
            # It goes on for four times 60 s from now.
            ("2027-01-15T07:00:10.000Z", "2027-01-15T07:04:10.000Z"),
            ("2027-01-15T07:00:10.000Z", "2027-01-15T07:00:10.000Z"),
        ]
        # The lifecycle dates its end just after what it has told before.
        now_ms[0] += 20_000
        receiver.deliver(replace(RESOLVED, tick_ms=1_800_000_005_001), before, False)
    assert {(alert["startsAt"], alert["endsAt"]) for alert in last(instance)} == {
        ("2027-01-15T07:00:30.000Z", "2027-01-15T07:00:30.000Z")
    }


def test_one_instance_that_takes_it_is_enough_and_the_others_get_what_they_missed() -> None:
    up, down = Scripted(), Scripted(Said(status=503), Said(status=503))
    with alertmanager(up, down) as receiver:
        receipt = receiver.deliver(event(), "", False)
        assert receipt.answer.startswith("1 of 2 took it; 127.0.0.1:")
        receiver.deliver(RESOLVED, receipt.reference, False)
        assert receiver.resend_in_s < 60
        receiver.resend()
        assert receiver.resend_in_s == 60
    assert (len(up.asked), len(down.asked)) == (2, 3)
    assert last(down)[0]["endsAt"] == "2027-01-15T08:00:08.000Z"


def test_no_instance_is_a_failure() -> None:
    instances = Scripted(Said(status=500)), Scripted(Said(status=400, body=b"bad"))
    with alertmanager(*instances) as receiver, pytest.raises(DeliveryError, match="answered 400 bad") as error:
        receiver.deliver(event(), "", False)
    assert not error.value.unsent


def test_an_alert_that_fired_before_a_restart_is_resent() -> None:
    instance = Scripted()
    with alertmanager(instance) as receiver:
        receiver.restore([(event(), json.dumps({"starts_at_ms": 1_799_999_990_000}))])
        receiver.resend()
        assert last(instance)[0]["startsAt"] == "2027-01-15T07:59:50.000Z"
        receiver.forget("a")
        receiver.resend()
    assert len(instance.asked) == 1


@contextmanager
def webhook(sink: Callable[[Asked], Said], secret: str | None = SECRET) -> Iterator[WebhookReceiver]:
    with serving(sink) as url:
        yield WebhookReceiver(WebhookSettings(url=f"{url}/hook", timeout_s=60), lambda: secret, Links(), lambda: NOW_MS)


def verified(asked: Asked) -> bool:
    signed = asked.headers[TIMESTAMP_HEADER].encode() + b"." + asked.body
    return asked.headers[SIGNATURE_HEADER] == "v1=" + hmac.new(SECRET.encode(), signed, hashlib.sha256).hexdigest()


def test_a_post_is_signed_and_a_second_one_has_the_same_key() -> None:
    sink = Scripted(Said(status=502))
    with webhook(sink) as receiver:
        with pytest.raises(DeliveryError, match="answered 502"):
            receiver.deliver(event(), "", False)
        assert receiver.deliver(event(), "", True).answer == "200 {}"
    assert all(map(verified, sink.asked))
    assert {asked.headers[KEY_HEADER] for asked in sink.asked} == {"a/1800000000000/firing/webhook"}
    assert sink.asked[0].headers[TIMESTAMP_HEADER] == "1800000010"
    assert sink.bodies()[0]["event"]["evidence"]["broker_id"] == 2
    assert sink.bodies()[0] == sink.bodies()[1]


def test_without_a_secret_nothing_is_signed() -> None:
    sink = Scripted()
    with webhook(sink, secret=None) as receiver:
        receiver.deliver(event(), "", False)
    assert SIGNATURE_HEADER not in sink.asked[0].headers


@pytest.mark.parametrize(
    ("said", "answer", "wait_s", "unsent"),
    [
        (Said(status=429, headers={"Retry-After": "7"}), "answered 429 {}", 7.0, True),
        (Said(status=503, headers={"Retry-After": "9"}), "answered 503 {}", 9.0, False),
        (Said(status=302, headers={"Location": "http://127.0.0.1:1/"}), "answered 302 {}", None, True),
        (Said(status=400, body=f"no {SECRET} here\nplease".encode()), "answered 400 no *** here please", None, True),
        (Said(lose=True), "closed the connection without an answer", None, False),
    ],
)
def test_a_failure_says_what_to_do_next_and_no_secret(
    said: Said, answer: str, wait_s: float | None, unsent: bool
) -> None:
    sink = Scripted(said)
    with webhook(sink) as receiver, pytest.raises(DeliveryError) as error:
        receiver.deliver(event(), "", False)
    assert error.value.answer.endswith(answer)
    assert (error.value.retry_after_s, error.value.unsent) == (wait_s, unsent)
    assert len(sink.asked) == 1


def test_a_refused_connection_is_surely_not_sent() -> None:
    def nobody(asked: Asked) -> Said:
        raise AssertionError

    with webhook(nobody) as receiver:
        pass
    with pytest.raises(DeliveryError, match="refused") as error:
        receiver.deliver(event(), "", False)
    assert error.value.unsent


def test_secrets_are_in_no_repr() -> None:
    settings: Sequence[object] = (WebhookSettings(secret=SECRET), AlertmanagerSettings(password=SECRET))
    assert SECRET not in repr(settings)
