"""Alerts on the page: the text of a terminal, their state, and who was notified."""

from __future__ import annotations

import json
import shlex
from typing import Any

import pytest
from click.testing import CliRunner

from headroom.alerts.engine import AlertEngine
from headroom.alerts.text.terminal import render_event
from headroom.cli.main import headroom
from headroom.dashboard.views.alerts import alerts
from headroom.dashboard.views.blocks import AlertCard, DataTable, Paragraph, Tone
from headroom.dashboard.views.headline import headline
from headroom.schemas.alerts import AlertEvent, AlertKind, Severity
from headroom.schemas.config import AlertSettings, ClusterSettings, Settings
from headroom.schemas.keys import Role
from headroom.schemas.text import printable
from tests.unit.builders.dashboard_store import TICK_MS, DashboardStore, at, event, values
from tests.unit.builders.throttle_status import partition, status
from tests.unit.dashboard.markup import Markup

# Names of others: markup, quotes, escape sequences, writing direction, line breaks.
NAMES = ("orders", "<script>alert(1)</script>", 'a"><img src=x>', "\x1b[31mred", "\u202eevil", "two\nlines", "ünï 数")


def cards(store: DashboardStore, at_ms: int | None = None) -> list[AlertCard]:
    return [block for block in alerts(store.site(), at(at=at_ms)) if isinstance(block, AlertCard)]


def table(store: DashboardStore, name: str, at_ms: int | None = None) -> DataTable:
    blocks = alerts(store.site(), at(at=at_ms))
    (found,) = [block for block in blocks if isinstance(block, DataTable) and block.name == name]
    return found


def stored_alert(number: int, kind: AlertKind, severity: Severity) -> AlertEvent:
    """Return an alert whose parts vary with its number."""
    name = NAMES[number % len(NAMES)]
    evidence: dict[str, Any] = {"role": (None, "leader", "follower")[number % 3], "broker_id": number}
    evidence |= {"throttle_bytes_per_s": (None, 5.6e6, 0)[number % 3], "required_bytes_per_s": 1e6 * number}
    evidence |= {"in_sync_bytes_per_s": None if number % 4 else 3.25e6, "remaining_bytes": number * 10**8}
    of_partition = {
        "topic": name,
        "partition": number,
        "write_bytes_per_s": 2e6,
        "followers": 2,
        "in_sync_followers": 1,
    }
    evidence |= {"partitions": [of_partition] * (number % 5), "counting_partitions": number}
    commands = [f"headroom throttle apply --rate {number} --topic '{name}'", "kafka-configs.sh --alter"][: number % 3]
    advice: dict[str, Any] = {"action": "raise_throttle", "reason": name if number % 2 else "", "commands": commands}
    advice |= {"throttle_bytes_per_s": 9_600_000 if number % 4 else None, "finish_s": 60.0 if number % 5 else None}
    return event(
        f"a{number}",
        kind=kind.value,
        severity=severity.value,
        subject=f"topic {name}",
        summary=f"The move of {name} will not finish",
        evidence=json.dumps(evidence) if number % 11 else "{",
        recommendation=json.dumps(advice),
    )


ALL = [(kind, severity) for kind in AlertKind for severity in Severity]
EVENTS = [stored_alert(number, kind, severity) for number, (kind, severity) in enumerate(ALL)]


def test_there_are_alerts_of_every_kind() -> None:
    assert len(EVENTS) == 3 * len(AlertKind) >= 50


def terminal_lines(of: AlertEvent) -> list[str]:
    return [line.strip() for line in render_event(of).splitlines()[1:]]


def test_a_card_has_the_lines_of_a_terminal(store: DashboardStore) -> None:
    store.alerts(*EVENTS)
    found = {card.alert_id: card for card in cards(store)}
    for one in EVENTS:
        card = found[one.alert_id]
        lines = [card.summary, *card.details, *(f"$ {command}" for command in card.commands)]
        assert list(map(printable, lines)) == terminal_lines(one), one.kind


def test_the_page_shows_these_lines_and_no_other(store: DashboardStore) -> None:
    store.alerts(*EVENTS)
    shown = sorted(lines_of_cards(Markup(store.client().get("/alerts").text)))
    assert shown == sorted(terminal_lines(one) for one in EVENTS)


def lines_of_cards(page: Markup) -> list[list[str]]:
    """Return the texts of each card: its summary, without the shape of its tone, its details and its commands."""
    cards: list[list[str]] = []
    for element in page.elements:
        text = element.text.strip()
        if element.tag == "article":
            cards.append([])
        elif not cards:
            continue
        elif element.tag == "section":
            # The tables below the cards.
            break
        elif element.tag == "h2":
            assert text[:2] in ("▲ ", "■ ", "– ")
            cards[-1].append(text[2:])
        elif element.tag == "code" and "-quiet-" not in (element.attributes["id"] or ""):
            cards[-1].append(f"$ {text}")
        elif element.tag == "p" and not element.attributes:
            cards[-1].append(text)
    return cards


def real_events() -> list[AlertEvent]:
    """Return what the rules make of some throttles: too low, none, unknown, at risk, stalled."""
    settings = Settings(cluster=ClusterSettings(name="prod"), alerts=AlertSettings(hold_s=0, no_data_s=0))
    events = []
    for throttle_mb, required_mb, in_sync_mb in ((5.6, 8, 4), (3.0, 8, 4), (None, 8, 4), (12, None, None), (8.5, 8, 4)):
        for role in Role:
            for one in (partition(), partition(stalled=True), partition(leader=2, previous_leader=1, switch_tick_ms=1)):
                found = status(2, role, throttle_mb, required_mb, one, in_sync_mb=in_sync_mb)
                events += AlertEngine(settings, lambda: TICK_MS).evaluate("prod", TICK_MS, [found])
    return events


def test_what_the_rules_found_reads_as_on_a_terminal_in_card_and_headline(store: DashboardStore) -> None:
    found = {one.alert_id: one for one in real_events() if one.state == "firing"}
    assert len({one.kind for one in found.values()}) >= 4
    store.alerts(*found.values())
    for card in cards(store):
        lines = [card.summary, *card.details, *(f"$ {command}" for command in card.commands)]
        assert list(map(printable, lines)) == terminal_lines(found[card.alert_id])
    store.throttles(status(1, Role.LEADER, 12, 10))
    first = headline(store.site(), at())
    summaries = {terminal_lines(one)[0] for one in found.values()}
    assert {printable(term.text) for term in first.alerts[:3]} <= summaries
    assert first.commands is not None
    assert f"$ {first.commands.commands[0]}" in {line for one in found.values() for line in terminal_lines(one)}


def test_without_a_table_of_events_no_alert_is_known(store: DashboardStore) -> None:
    (only,) = alerts(store.site(), at())
    assert isinstance(only, Paragraph)
    assert (only.tone, only.text[:18]) == (Tone.UNKNOWN, "No alert is known:")


def test_pending_and_firing_alerts_are_cards_and_ended_ones_a_table(store: DashboardStore) -> None:
    store.alerts(
        event("p", "pending", severity="warning"),
        event("f", "pending", TICK_MS - 3000),
        event("f", "firing", TICK_MS - 1000),
        event("r", "firing", TICK_MS - 9000),
        event("r", "resolved", TICK_MS - 2000),
        event("c", "pending", TICK_MS - 9000),
        event("c", "resolved", TICK_MS - 4000),
        event("o", cluster="other"),
    )
    assert [(card.alert_id, card.tone, card.is_open) for card in cards(store)] == [
        ("p", Tone.WARNING, False),
        ("f", Tone.CRITICAL, True),
    ]
    assert [card.head.split(":")[0] for card in cards(store)] == ["pending warning", "firing critical"]
    ended = table(store, "ended")
    assert values(ended.rows, "alert_id", "tick_ms", "fired") == [
        ("r", TICK_MS - 2000, "yes"),
        ("c", TICK_MS - 4000, "cleared before"),
    ]


def test_an_alert_that_was_announced_again_is_not_said_to_be_newer(store: DashboardStore) -> None:
    store.alerts(event("f", "firing", TICK_MS - 60_000), event("f", "firing", TICK_MS))
    (card,) = cards(store)
    assert card.head.endswith("last changed 2027-01-15 08:00:00 UTC")


def test_no_alert_says_so(store: DashboardStore) -> None:
    store.alerts(event("r", "resolved"))
    first = alerts(store.site(), at())[0]
    assert isinstance(first, Paragraph)
    assert first.text == "No alert is pending or firing."


ACK = {"mark_id": "1", "action": "ack", "alert_id": "a", "severity": "critical", "by": "ann@host", "note": "on it"}
ACK |= {"kind": "throttle_below_leader_write", "subject": "broker 1 as leader"}
SILENCE = {"mark_id": "2", "action": "silence", "kind": "throttle_below_leader_write", "starts_ms": 1}


def test_acknowledgement_and_silence_are_on_the_card(store: DashboardStore) -> None:
    store.alerts(event(), event("b", kind="under_replicated"))
    # In the year 2200.
    store.suppressions(ACK | {"mark_ms": TICK_MS}, SILENCE | {"ends_ms": 7_258_118_400_000})
    notes = {card.alert_id: list(card.notes) for card in cards(store)}
    assert notes["a"][0] == "Acknowledged by ann@host at 2027-01-15 08:00:00 UTC: on it"
    assert notes["a"][1].startswith("Silenced until ")
    assert notes["b"] == []


def test_an_acknowledgement_is_not_shown_at_a_moment_before_it(store: DashboardStore) -> None:
    store.alerts(event(tick_ms=TICK_MS - 60_000))
    store.suppressions(ACK | {"mark_ms": TICK_MS})
    assert [list(card.notes) for card in cards(store, TICK_MS - 1)] == [[]]
    assert [len(card.notes) for card in cards(store, TICK_MS)] == [1]


def test_a_silence_is_shown_at_the_moments_that_it_covers(store: DashboardStore) -> None:
    store.alerts(event(tick_ms=TICK_MS - 600_000))
    store.suppressions(SILENCE | {"mark_ms": TICK_MS - 60_000, "starts_ms": TICK_MS - 60_000, "ends_ms": TICK_MS})
    (inside,) = cards(store, TICK_MS - 30_000)
    assert list(inside.notes) == ["Silenced until 2027-01-15 08:00:00 UTC"]
    assert [list(card.notes) for card in cards(store, TICK_MS - 61_000)] == [[]]
    assert [list(card.notes) for card in cards(store, TICK_MS + 1000)] == [[]]


def test_alerts_of_a_moment_are_those_of_then(store: DashboardStore) -> None:
    store.alerts(event("a", "firing", TICK_MS), event("a", "resolved", TICK_MS + 5000), event("b", tick_ms=TICK_MS + 1))
    assert [card.alert_id for card in cards(store, TICK_MS)] == ["a"]
    assert [card.alert_id for card in cards(store)] == ["b"]


@pytest.mark.parametrize("table_path", ["alerts/events", "alerts/marks", "alerts/deliveries"])
def test_a_table_of_alerts_that_cannot_be_read_is_said(store: DashboardStore, table_path: str) -> None:
    store.alerts(event())
    store.suppressions(ACK)
    store.deliveries({})
    for file in (store.path / table_path).glob("*.parquet"):
        file.write_bytes(b"PAR1")
    answer = store.client().get("/alerts")
    assert answer.status_code == 200
    assert "This cannot be shown: " in answer.text
    assert table_path in answer.text


def test_deliveries_are_the_newest_first_up_to_the_moment(store: DashboardStore) -> None:
    store.alerts(event())
    store.deliveries(
        {"state": "sending", "answer": "", "delivery_ms": TICK_MS},
        {"state": "failed", "answer": "=HTTP 500", "delivery_ms": TICK_MS + 10, "attempt": 1},
        {"state": "delivered", "delivery_ms": TICK_MS + 20, "attempt": 2},
        {"cluster": "other", "delivery_ms": TICK_MS + 30},
    )
    rows = values(table(store, "deliveries").rows, "state", "attempt", "answer")
    assert rows == [("delivered", 2, "ok"), ("failed", 1, "=HTTP 500"), ("sending", 1, "")]
    assert values(table(store, "deliveries", TICK_MS + 10).rows, "state") == [("failed",), ("sending",)]


def test_an_alert_has_the_commands_that_acknowledge_and_silence_it_unless_it_is(store: DashboardStore) -> None:
    store.alerts(event("a1", subject="broker 2 as leader"))
    (card,) = cards(store)
    assert card.quieting == [
        "headroom alerts ack a1 --config orders.toml",
        "headroom alerts silence --cluster prod --kind throttle_below_leader_write --subject 'broker 2 as leader' "
        "--for 1h --note 'seen; being worked on' --config orders.toml",
    ]
    store.suppressions({"action": "ack", "alert_id": "a1", "severity": "critical"})
    (card,) = cards(store)
    assert [command.split()[2] for command in card.quieting] == ["silence"]


def test_the_commands_of_an_alert_are_commands_of_headroom(store: DashboardStore) -> None:
    store.alerts(event("a1", subject="broker 2 as leader; rm -rf /"))
    (card,) = cards(store)
    for command in card.quieting:
        words = shlex.split(command)[1:]
        # Parsed as a shell would, up to the store, which is not there.
        done = CliRunner().invoke(headroom, words)
        assert not isinstance(done.exception, SystemExit), done.output
