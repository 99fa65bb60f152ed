"""Alerts as text: what a person reads carries units, the evidence and the command."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import replace
from itertools import count

import pytest

from headroom.alerts.engine import AlertEngine
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.text.terminal import render_event
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import AlertSettings, ClusterSettings, Settings
from headroom.schemas.keys import Role
from tests.unit.builders.throttle_status import TICK_MS, partition, status

PROD = ClusterSettings(name="prod")


def last_event(*statuses: ThrottleStatus) -> AlertEvent:
    engine = AlertEngine(Settings(cluster=PROD, alerts=AlertSettings(hold_s=0, no_data_s=0)), lambda: TICK_MS)
    return engine.evaluate("prod", TICK_MS, statuses)[-1]


def clock(step_s: int) -> Callable[[], int]:
    """A clock that moves on at every look."""
    return count(TICK_MS, step_s * 1000).__next__


CAME = partition(leader=2, previous_leader=1, switch_tick_ms=TICK_MS)
FIRING = last_event(status(2, Role.LEADER, 5.6, 8, CAME, in_sync_mb=4))


def test_a_firing_alert_tells_what_why_and_what_to_do() -> None:
    lines = render_event(FIRING).splitlines()
    assert lines[0].startswith("[FIRING] warning throttle_below_leader_write  cluster prod, broker 2 as leader  ")
    # 1,800,000,000 s after the epoch
    assert "2027-01-15 08:00:00 UTC" in lines[0]
    assert FIRING.alert_id in lines[0]
    assert "throttled to 5.60 MB/s, but its leaders must send 8.00 MB/s" in lines[1]
    assert lines[2] == (
        "  throttle 5.60 MB/s; in-sync followers use 4.00 MB/s; all followers require 8.00 MB/s; still to copy 10.0 MB"
    )
    assert lines[3] == "    t-0: writes 2.00 MB/s x 2 follower(s), 1 in sync; leader 2, led by 1 before"
    # 8 MB/s x 1.2, and its exact number for the command
    assert lines[4].startswith("  Do: raise the throttle to 9.60 MB/s (9600000); the move then finishes in ")
    assert lines[5].startswith("    $ headroom throttle apply --rate 9600000 ")


def test_unknown_values_are_shown_as_unknown_and_never_as_zero() -> None:
    unknown = partition(write_bytes_per_s=None, leader=None)
    text = render_event(last_event(status(2, Role.LEADER, 5.6, None, unknown, in_sync_mb=None, remaining_bytes=None)))
    assert "in-sync followers use unknown; all followers require unknown; still to copy unknown" in text
    assert "writes unknown x 2 follower(s), 1 in sync; no leader" in text
    assert "No verdict on broker 2 as leader, which takes part in a move: write rate unknown" in text
    advice = "run `headroom check`, which names what cannot be read and the remedy; change no throttle until then"
    assert text.endswith(f"  Do: {advice}")


def test_a_resolved_alert_says_what_it_was() -> None:
    text = render_event(replace(FIRING, state="resolved"))
    assert text.startswith("[RESOLVED]")
    assert "Resolved. It was: The move will not finish" in text
    assert "$" not in text


def test_an_alert_that_cleared_before_firing_is_not_called_resolved() -> None:
    text = render_event(replace(FIRING, state="resolved"), fired=False)
    assert "Cleared before it fired. It was: The move will not finish" in text
    assert "Resolved" not in text


@pytest.mark.parametrize(
    "damaged",
    ["", "null", "[]", "3", "{", '"text"', '{"partitions": 3}', '{"role": "leader", "throttle_bytes_per_s": "many"}'],
)
def test_of_a_damaged_row_evidence_and_recommendation_are_unknown(damaged: str) -> None:
    shown = render_event(replace(FIRING, evidence=damaged))
    assert FIRING.summary in shown
    assert shown.endswith("Evidence and recommendation are unknown: the stored row is damaged.")
    row = json.loads(json.dumps(replace(FIRING, evidence=damaged).as_objects(), allow_nan=False))
    assert row["recommendation"] == json.loads(FIRING.recommendation)
    assert row["evidence"] is None or damaged.startswith("{")


def test_a_number_that_json_does_not_have_is_unknown() -> None:
    event = replace(FIRING, evidence='{"role": null, "required_bytes_per_s": NaN, "lag": Infinity}')
    assert event.as_objects()["evidence"] == {"role": None, "required_bytes_per_s": None, "lag": None}


def test_an_alert_on_missing_ticks_shows_no_rates() -> None:
    engine = AlertEngine(Settings(cluster=PROD, alerts=AlertSettings(no_data_s=0)), clock(90))
    first, *rest = render_event(engine.check_missing_ticks()[-1]).splitlines()[1:]
    assert first.startswith("  No verdict on any move: no tick of cluster prod was evaluated since the start")
    assert [line[:10] for line in rest] == ["  Do: look"]
