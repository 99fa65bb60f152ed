"""Slack, against a server that speaks its protocol."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import pytest

from headroom.alerts.delivery.message_fields import Links
from headroom.alerts.delivery.receiver import DeliveryError
from headroom.alerts.delivery.receivers.slack import SlackReceiver
from headroom.alerts.delivery.receivers.slack_api import SlackApi
from headroom.alerts.delivery.receivers.slack_blocks import (
    BLOCKS_MOST,
    MESSAGE_LEAST,
    MESSAGE_MOST,
    SECTION_MOST,
    alert_blocks,
    digest_blocks,
    escape_text,
)
from headroom.alerts.delivery.receivers.slack_webhook import SlackWebhookReceiver
from headroom.schemas.config import SlackSettings
from headroom.schemas.errors import HeadroomError
from tests.unit.fakes.receivers import Asked, FakeSlack, Said, Scripted, event, serving, texts_of

TOKEN = "xoxb-not-to-be-told"
LINKS = Links("https://boards/d?cluster={cluster}", "https://runbooks/{kind}")
RESOLVED = event(state="resolved", tick_ms=1_800_000_060_000)
GROWN = event(tick_ms=1_800_000_030_000, summary="It grew")


@contextmanager
def slack_of(fake: Callable[[Asked], Said], token: str = TOKEN, **more: Any) -> Iterator[SlackReceiver]:
    with serving(fake) as url:
        settings = SlackSettings(channel="C0123456", api_url=f"{url}/api/", timeout_s=60, **more)
        yield SlackReceiver(SlackApi(settings, lambda: token), "C0123456", 2, LINKS, settings.mention)


def test_one_message_per_alert_is_edited_with_its_changes_in_the_thread() -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        reference = slack.deliver(event(), "", False).reference
        assert "FIRING" in fake.roots()[0]["text"]
        slack.deliver(GROWN, reference, False)
        slack.deliver(RESOLVED, reference, False)
    (root,) = fake.roots()
    assert "RESOLVED" in root["text"]
    assert [reply["thread_ts"] for reply in fake.replies()] == [root["ts"]] * 2
    assert "It grew" in fake.replies()[0]["text"]
    assert "resolved at" in fake.replies()[1]["text"]
    assert fake.tokens == {f"Bearer {TOKEN}"}


@pytest.mark.parametrize("others", [0, 5])
def test_a_message_that_arrived_unanswered_is_found_and_not_sent_twice(others: int) -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        for number in range(others):
            slack.deliver(event(f"other{number}"), "", False)
        fake.script = [Said(lose=True)]
        with pytest.raises(DeliveryError) as lost:
            slack.deliver(event(), "", False)
        assert not lost.value.unsent
        receipt = slack.deliver(event(), "", True)
        assert len(fake.roots()) == others + 1
        assert receipt.answer == "was there already"
        slack.deliver(RESOLVED, receipt.reference, False)
    assert "RESOLVED" in fake.messages[json.loads(receipt.reference)["ts"]]["text"]


def test_a_reply_that_arrived_unanswered_is_found_and_not_sent_twice() -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        reference = slack.deliver(event(), "", False).reference
        for change in (GROWN, RESOLVED):
            slack.deliver(change, reference, True)
            slack.deliver(change, reference, True)
    assert len(fake.replies()) == 2


def test_a_message_that_did_not_arrive_is_sent_again() -> None:
    fake = FakeSlack(Said(status=500, body=b"oops"))
    with slack_of(fake) as slack:
        with pytest.raises(DeliveryError) as error:
            slack.deliver(event(), "", False)
        assert (error.value.answer, error.value.unsent) == ("slack: answered 500", False)
        slack.deliver(event(), "", True)
    assert len(fake.roots()) == 1


def test_a_rate_limit_says_how_long_to_wait() -> None:
    said = Said(status=429, headers={"Retry-After": "17"})
    with slack_of(FakeSlack(said)) as slack, pytest.raises(DeliveryError) as error:
        slack.deliver(event(), "", False)
    assert (error.value.retry_after_s, error.value.unsent) == (17.0, True)


def test_a_refusal_of_slack_is_reported_with_its_error_code() -> None:
    refusal = Said(body=b'{"ok": false, "error": "channel_not_found"}')
    with slack_of(FakeSlack(refusal)) as slack, pytest.raises(DeliveryError) as error:
        slack.deliver(event(), "", False)
    assert (error.value.answer, error.value.unsent) == ("slack: channel_not_found", True)


def test_a_deleted_message_is_posted_again() -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        reference = slack.deliver(event(), "", False).reference
        fake.messages.clear()
        slack.deliver(RESOLVED, reference, False)
    assert "RESOLVED" in fake.roots()[0]["text"]


def test_many_alerts_share_one_message_and_end_in_its_thread() -> None:
    fake = FakeSlack()
    many = [event(f"a{number}") for number in range(40)]
    with slack_of(fake) as slack:
        receipts = slack.deliver_together(many, False)
        assert len(fake.roots()) == 1
        # Once more, as after a crash, with one that is new.
        again = slack.deliver_together([*many, event("new")], True)
        assert [r.reference for r in again[:40]] == [r.reference for r in receipts]
        assert len(fake.roots()) == 2
        before = fake.roots()[0]["text"]
        slack.deliver(event("a7", "resolved", 1_800_000_060_000), receipts[7].reference, False)
    assert fake.roots()[0]["text"] == before
    assert len(fake.replies()) == 1


def test_a_bot_that_may_not_read_sends_rather_twice_than_not_at_all() -> None:
    fake = FakeSlack()

    def blind(asked: Asked) -> Said:
        return Said(body=b'{"ok": false, "error": "missing_scope"}') if "conversations" in asked.path else fake(asked)

    with slack_of(blind) as slack:
        slack.deliver(event(), "", True)
    assert len(fake.roots()) == 1


def test_the_token_is_in_no_error_no_log_and_no_repr(caplog: pytest.LogCaptureFixture) -> None:
    error_texts = []
    with caplog.at_level(logging.DEBUG):
        for script in (Said(lose=True), Said(status=500, body=TOKEN.encode()), Said(body=TOKEN.encode())):
            with slack_of(FakeSlack(script)) as slack, pytest.raises(DeliveryError) as error:
                slack.deliver(event(), "", False)
            error_texts.append(repr(error.value))
        with slack_of(FakeSlack(), f"{TOKEN}\n!") as slack, pytest.raises(HeadroomError) as wrong:
            slack.deliver(event(), "", False)
    assert TOKEN not in "".join(error_texts) + str(wrong.value) + caplog.text
    assert TOKEN not in repr(SlackSettings(token=TOKEN, webhook_url=TOKEN))


def test_the_blocks_say_numbers_command_and_links() -> None:
    said = json.dumps(alert_blocks(event(), LINKS), ensure_ascii=False)
    for part in (
        "critical",
        "*Required*\\n3.00 MB/s",
        "3.60 MB/s (3600000)",
        "1 min 30 s",
        "```headroom throttle apply",
    ):
        assert part in said
    assert "<https://boards/d?cluster=orders|dashboard>" in said
    assert "<https://runbooks/throttle_below_leader_write|runbook>" in said


def test_names_that_users_gave_are_text_and_nothing_else() -> None:
    said = json.dumps(alert_blocks(event(cluster="<!channel> & co", summary="<@U1>"), LINKS))
    assert "<!channel>" not in said
    assert "<@U1>" not in said
    assert "&lt;!channel&gt; &amp; co" in said


def test_the_limits_of_slack_are_kept_and_no_command_is_cut() -> None:
    long = json.dumps({"reason": "r" * 9000, "commands": ["echo " + "x" * 3000]})
    for of in (event(summary="&" * 9000, recommendation=long), event(state="resolved", summary="<" * 9000)):
        texts = [b["text"]["text"] for b in alert_blocks(of, LINKS) if "text" in b]
        assert max(map(len, texts)) <= SECTION_MOST
        assert not any("echo" in text for text in texts)
    blocks = digest_blocks([event(f"a{n}", subject="s" * 900) for n in range(100)], LINKS, most=100_000)
    assert len(blocks) <= BLOCKS_MOST
    assert max(len(b["text"]["text"]) for b in blocks if "text" in b) <= SECTION_MOST


def test_cut_text_breaks_no_entity() -> None:
    # "a" and two entities of five characters would be eleven; one fits with the mark.
    assert escape_text("a&&", 10) == "a&amp;…"
    assert escape_text("a&&", 11) == "a&amp;&amp;"


def test_an_incoming_webhook_gets_each_event_and_its_url_stays_secret() -> None:
    sink = Scripted(Said(status=404, body=b"no_service"))
    with serving(sink) as url:
        secret = f"{url}/services/T0/B0/not-to-be-told"
        slack = SlackWebhookReceiver(SlackSettings(timeout_s=60), lambda: secret, LINKS)
        with pytest.raises(DeliveryError) as error:
            slack.deliver(event(), "", False)
        slack.deliver(event(), "", True)
    assert "404 no_service" in error.value.answer
    assert "not-to-be-told" not in repr(error.value)
    assert "FIRING" in sink.bodies()[1]["text"]


GROUP = "<!subteam^S123>"
LONG = {"subject": "s" * 900, "summary": "<" * 9000}


def test_a_digest_of_many_alerts_with_long_names_is_one_message_that_counts_the_rest() -> None:
    fake = FakeSlack()
    many = [event(f"a{number}", **LONG) for number in range(100)]
    with slack_of(fake) as slack:
        receipts = slack.deliver_together(many, False)
    (root,) = fake.roots()
    text = "".join(texts_of(root["blocks"]))
    shown = text.count("• ")
    assert 0 < shown < 100
    assert f"{100 - shown} more; all with numbers and commands" in text
    assert len({receipt.reference for receipt in receipts}) == 1


@pytest.mark.parametrize("most", [6000, 3000])
def test_a_message_too_long_for_slack_is_shortened_until_it_is_accepted(most: int) -> None:
    fake = FakeSlack()
    fake.most = most
    many = [event(f"a{number}", **LONG) for number in range(100)]
    advice = json.dumps({"reason": "r" * 900, "commands": ["echo " + "x" * 2900]})
    with slack_of(fake) as slack:
        slack.deliver_together(many, False)
        reference = slack.deliver(event(recommendation=advice, **LONG), "", False).reference
        slack.deliver(event(tick_ms=1_800_000_030_000, recommendation=advice, **LONG), reference, False)
    assert len(fake.roots()) == 2
    assert not any("echo" in text for text in texts_of(fake.roots()[1]["blocks"]))
    assert any("headroom alerts" in text for text in texts_of(fake.roots()[1]["blocks"]))


def test_a_message_that_slack_refuses_at_every_length_is_a_delivery_error() -> None:
    fake = FakeSlack()
    fake.most = 10
    with slack_of(fake) as slack, pytest.raises(DeliveryError) as error:
        slack.deliver(event(), "", False)
    assert (error.value.answer, error.value.unsent) == ("slack: msg_blocks_too_long", True)
    assert len(fake.calls) == 3


@pytest.mark.parametrize("most", [MESSAGE_MOST, MESSAGE_LEAST])
def test_the_texts_of_a_message_are_bounded_together(most: int) -> None:
    advice = json.dumps({"reason": "r" * 900, "commands": ["echo " + "x" * 2900]})
    numbers = {"required_bytes_per_s": 1e300, "in_sync_bytes_per_s": 1e300, "throttle_bytes_per_s": 1e300}
    evidence = json.dumps(numbers | {"role": "leader", "broker_id": 2, "remaining_bytes": 1})
    long = [event(f"a{n}", recommendation=advice, evidence=evidence, **LONG) for n in range(100)]
    for blocks in (
        alert_blocks(long[0], LINKS, GROUP, most),
        alert_blocks(event(state="resolved", **LONG), LINKS, GROUP, most),
        digest_blocks(long, LINKS, GROUP, most),
    ):
        assert sum(map(len, texts_of(blocks))) <= most


def test_a_rise_to_critical_is_shown_in_the_channel_with_the_mention_of_critical_alerts() -> None:
    fake = FakeSlack()
    with slack_of(fake, mention_critical=GROUP) as slack:
        reference = slack.deliver(event(severity="warning"), "", False).reference
        assert GROUP not in json.dumps(fake.roots())
        slack.deliver(event(severity="warning", tick_ms=1_800_000_010_000), reference, False)
        slack.deliver(event(tick_ms=1_800_000_020_000), reference, False)
        slack.deliver(event(tick_ms=1_800_000_030_000), reference, False)
        slack.deliver(RESOLVED, reference, False)
    assert [reply["reply_broadcast"] for reply in fake.replies()] == [False, True, False, False]
    assert [GROUP in reply["text"] for reply in fake.replies()] == [False, True, False, False]


def test_a_rise_whose_reply_did_not_arrive_is_seen_with_the_next_attempt() -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        reference = slack.deliver(event(severity="warning"), "", False).reference
        fake.script = [Said(body=b'{"ok": true}'), Said(status=500)]
        with pytest.raises(DeliveryError):
            slack.deliver(GROWN, reference, False)
        slack.deliver(GROWN, reference, True)
    assert [reply["reply_broadcast"] for reply in fake.replies()] == [True]


def test_an_escalation_is_seen_in_the_channel() -> None:
    fake = FakeSlack()
    evidence = json.dumps({"role": "leader", "broker_id": 2, "escalation": 1, "escalated_tick_ms": GROWN.tick_ms})
    with slack_of(fake, mention_warning=GROUP) as slack:
        reference = slack.deliver(event(severity="warning"), "", False).reference
        for tick_ms in (GROWN.tick_ms, GROWN.tick_ms + 10_000):
            slack.deliver(event(severity="warning", tick_ms=tick_ms, evidence=evidence), reference, False)
    assert [reply["reply_broadcast"] for reply in fake.replies()] == [True, False]


# The event of the escalation itself was dropped in a silence; the newest one is sent at its end.
def test_an_escalation_during_a_silence_is_seen_in_the_channel_at_its_end() -> None:
    fake = FakeSlack()
    evidence = json.dumps({"role": "leader", "broker_id": 2, "escalation": 1, "escalated_tick_ms": GROWN.tick_ms})
    with slack_of(fake) as slack:
        reference = slack.deliver(event(severity="warning"), "", False).reference
        for tick_ms in (GROWN.tick_ms + 10_000, GROWN.tick_ms + 20_000):
            slack.deliver(event(severity="warning", tick_ms=tick_ms, evidence=evidence), reference, False)
    assert [reply["reply_broadcast"] for reply in fake.replies()] == [True, False]


def test_after_a_restart_a_change_of_a_critical_alert_is_seen_once() -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        reference = slack.deliver(event(), "", False).reference
    with slack_of(fake) as slack:
        for tick_ms in (GROWN.tick_ms, GROWN.tick_ms + 10_000):
            slack.deliver(event(tick_ms=tick_ms), reference, False)
    assert [reply["reply_broadcast"] for reply in fake.replies()] == [True, False]


def test_a_new_alert_mentions_by_its_severity_and_a_digest_all_of_its_severities() -> None:
    fake = FakeSlack()
    with slack_of(fake, mention_critical=GROUP, mention_warning="<@U1>") as slack:
        slack.deliver(event(severity="warning"), "", False)
        slack.deliver_together([event("b"), event("c", severity="warning"), event("d", severity="info")], False)
    first, digest = (next(texts_of(root["blocks"])) for root in fake.roots())
    assert first.endswith(" <@U1>")
    assert digest.endswith(f" {GROUP} <@U1>")


def test_a_reference_of_a_newer_version_names_the_same_message() -> None:
    fake = FakeSlack()
    with slack_of(fake) as slack:
        reference = json.loads(slack.deliver(event(), "", False).reference)
        slack.deliver(RESOLVED, json.dumps(reference | {"more": 1}), False)
    assert len(fake.roots()) == 1


def test_a_webhook_mentions_with_each_event_that_fires() -> None:
    sink = Scripted()
    with serving(sink) as url:
        settings = SlackSettings(timeout_s=60, mention_critical=GROUP)
        slack = SlackWebhookReceiver(settings, lambda: f"{url}/services", LINKS)
        for one in (event(), RESOLVED):
            slack.deliver(one, "", False)
    assert [GROUP in json.dumps(body) for body in sink.bodies()] == [True, False]
