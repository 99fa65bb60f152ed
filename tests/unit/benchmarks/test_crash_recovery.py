"""Recording receivers across a kill, and counts of lost and doubled events."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import islice
from pathlib import Path

import pytest

from benchmarks.faults.schedule import in_rounds
from benchmarks.fixtures.receivers.alert_events import announced_again
from benchmarks.fixtures.receivers.recording_receivers import HOOK_PATH, SLACK_PATH, Recorder, lost_and_doubled, read
from benchmarks.groups.crash_recovery import VICTIMS
from headroom.alerts.delivery.delivery_log import event_key
from headroom.alerts.delivery.receivers.slack_api import metadata
from headroom.alerts.delivery.receivers.webhook import KEY_HEADER
from headroom.schemas.alerts import AlertEvent
from tests.unit.fakes.receivers import Asked, event

FIRED, ENDED = event("a", "firing", 1000), event("a", "resolved", 2000)


def post(fired: AlertEvent, key: str | None = None) -> Asked:
    body = json.dumps({"event": fired.as_objects()}).encode()
    return Asked(HOOK_PATH, {KEY_HEADER: key or event_key(fired)}, body)


def message(fired: AlertEvent) -> Asked:
    body = json.dumps({"channel": "C0", "text": "t", "metadata": metadata([event_key(fired)])}).encode()
    return Asked(f"{SLACK_PATH}chat.postMessage", {"Authorization": "Bearer t"}, body)


def test_complete_requests_survive_a_kill_and_truncated_ones_do_not(tmp_path: Path) -> None:
    journal = tmp_path / "received.jsonl"
    first = Recorder(journal)
    for asked in (post(FIRED), message(FIRED)):
        assert first(asked).status == 200
    with journal.open("a", encoding="utf-8") as file:
        file.write('{"path": "/ho')
    again = Recorder(journal)
    again(message(ENDED))
    shown = read(journal)[0].shown()
    assert shown == {"webhook": {event_key(FIRED): 1}, "slack": {event_key(FIRED): 1, event_key(ENDED): 1}}


def test_a_post_under_a_known_key_is_not_shown_again_and_a_message_is(tmp_path: Path) -> None:
    journal = tmp_path / "received.jsonl"
    recorder = Recorder(journal)
    for asked in (post(FIRED), post(FIRED), message(FIRED), message(FIRED)):
        recorder(asked)
    assert read(journal)[0].shown() == {"webhook": {event_key(FIRED): 1}, "slack": {event_key(FIRED): 2}}
    recorder(post(FIRED, "another key"))
    assert read(journal)[0].shown()["webhook"] == {event_key(FIRED): 2}


def test_reads_of_slack_are_answered_from_the_journal_and_not_recorded(tmp_path: Path) -> None:
    journal = tmp_path / "received.jsonl"
    Recorder(journal)(message(FIRED))
    kept = journal.read_text(encoding="utf-8")
    asked = Asked(f"{SLACK_PATH}conversations.history", {"Authorization": "Bearer t"}, b"include_all_metadata=true")
    answer = json.loads(Recorder(journal)(asked).body)
    assert [m["metadata"] for m in answer["messages"]] == [metadata([event_key(FIRED)])]
    assert journal.read_text(encoding="utf-8") == kept


@pytest.mark.parametrize(
    ("slack", "lost", "doubled"),
    [([FIRED, ENDED], 0, 0), ([FIRED], 1, 0), ([FIRED, FIRED, FIRED, ENDED], 0, 2), ([], 2, 0)],
)
def test_missing_events_are_lost_and_repeated_ones_doubled(slack: list[AlertEvent], lost: int, doubled: int) -> None:
    shown = {"webhook": Counter(map(event_key, (FIRED, ENDED))), "slack": Counter(map(event_key, slack))}
    assert lost_and_doubled([FIRED, ENDED], shown) == (lost, doubled)


def fires(alert_id: str, tick_ms: int, severity: str = "warning", throttle: float | None = 5.0) -> AlertEvent:
    advice = json.dumps({"throttle_bytes_per_s": throttle})
    fields = vars(event(alert_id, "firing", tick_ms)) | {"severity": severity, "recommendation": advice}
    return AlertEvent(**fields)


@pytest.mark.parametrize(
    ("events", "starved", "again"),
    [
        ([fires("a", 1), ENDED, fires("b", 9)], 2, 0),
        # One starved, and two alerts of it.
        ([fires("a", 1), ENDED, fires("b", 9)], 1, 1),
        ([fires("a", 1), fires("a", 2)], 1, 1),
        ([fires("a", 1), fires("a", 2, "critical")], 1, 0),
        ([fires("a", 1, throttle=None), fires("a", 2), fires("a", 3, throttle=6.0), fires("a", 4, throttle=6.0)], 1, 1),
    ],
)
def test_a_repeat_is_needless_unless_the_alert_is_worse(events: list[AlertEvent], starved: int, again: int) -> None:
    assert announced_again(events, starved) == again


def test_every_process_is_killed_once_before_any_is_repeated_in_a_fixed_order() -> None:
    chosen, again = (list(islice(in_rounds(list(VICTIMS), random.Random(1)), 20)) for _ in range(2))
    assert chosen == again
    assert Counter(chosen) == dict.fromkeys(("collector", "watch", "history", "receivers"), 5)
    assert len(set(chosen[:4])) == 4
