"""Output of the alert path: terminal and metrics get the same events, including those of an earlier run."""

from __future__ import annotations

import sys
from dataclasses import replace
from typing import Any

import pytest

from headroom.alerts.delivery.outbox import DeliveryFigures
from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.cli.watch.pipeline import start_alert_output
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.keys import Role
from headroom.streaming.jobs.listener import AlertPathListener
from tests.unit.builders.throttle_status import TICK_MS, partition, status
from tests.unit.fakes.alert_path_listener import CallingListener
from tests.unit.fakes.prometheus_scrape import Scene, event


class FakePipeline:
    """Keeps the listener; one alert was still firing when the last run ended."""

    batch_s = 4.0
    listeners: AlertPathListener

    @property
    def engine(self) -> FakePipeline:
        return self

    def active(self) -> list[AlertEvent]:
        return [event("firing", subject="broker 9 as leader")]

    def deliveries(self) -> list[DeliveryFigures]:
        return [DeliveryFigures("slack", 2, None)]

    def quarantined_messages(self) -> int:
        return 3

    def start_alert_path(self, listeners: AlertPathListener) -> None:
        self.listeners = listeners


def test_terminal_and_metrics_get_the_same_events(capsys: Any) -> None:
    scene, pipeline, people = Scene(), FakePipeline(), []
    listener = CallingListener(lambda cluster, tick_ms, statuses: people.append(tick_ms), people.extend)
    start_alert_output(pipeline, VerdictPrinter("json"), listener, scene.live)  # type: ignore[arg-type]
    assert "broker 9 as leader" in capsys.readouterr().out
    pipeline.listeners.on_tick("orders", TICK_MS, [])
    pipeline.listeners.on_events([event("firing")])
    pipeline.listeners.on_batch(1.0)
    assert people == [TICK_MS, event("firing")]
    # The alert of the earlier run, and the new one.
    assert scene.values("headroom_alerts", state="firing") == [2]
    assert scene.values("headroom_tick_age_seconds") == [0]
    assert scene.values("headroom_batch_seconds_count") == [1]
    assert scene.values("headroom_undelivered_events", receiver="slack") == [2]
    assert scene.values("headroom_quarantined_messages") == [3]
    assert scene.snapshot().batch_s == 4.0


def _printed(capsys: Any, *statuses: ThrottleStatus, printer: VerdictPrinter | None = None) -> str:
    (printer or VerdictPrinter("text")).print_tick("orders", TICK_MS, statuses)
    return str(capsys.readouterr().out)


def test_a_rate_that_could_not_be_read_is_not_printed_as_none(capsys: Any) -> None:
    unread = status(2, Role.LEADER, None, 4, partition(), throttle_known=False)
    assert " no_data     throttle unknown, requires 4.00 MB/s" in _printed(capsys, unread)
    # Its rate is known: there is none. What is unknown is a list.
    lists = replace(unread, throttle_source="none")
    assert " no_data     throttle none, " in _printed(capsys, lists)
    assert " unthrottled throttle none, " in _printed(capsys, status(2, Role.LEADER, None, 4, partition()))


def test_replicas_that_no_throttle_limits_are_not_printed_as_in_sync(capsys: Any) -> None:
    printer = VerdictPrinter("text")
    well = status(3, Role.FOLLOWER, None, 0, limited=0)
    behind = replace(well, alive=False, lost_replicas=7)
    assert _printed(capsys, well, printer=printer).endswith(" orders: 1 brokers, no replica is out of sync\n")
    assert _printed(capsys, behind, printer=printer).endswith(
        " orders: 1 brokers, no copy of a move or behind a throttle, but replicas of broker 3 are out of sync\n"
    )
    # Their number changes with every tick while they catch up.
    assert _printed(capsys, replace(behind, lost_replicas=6), printer=printer) == ""
    assert _printed(capsys, well, printer=printer).endswith("no replica is out of sync\n")


@pytest.mark.parametrize(
    ("environment", "in_colour"),
    [({"TERM": "xterm"}, True), ({"TERM": "xterm", "NO_COLOR": "1"}, False), ({"TERM": "dumb"}, False)],
)
def test_alerts_are_in_colour_where_the_terminal_has_colours_and_they_are_wanted(
    environment: dict[str, str], in_colour: bool, capsys: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("NO_COLOR", raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    VerdictPrinter("text").print_events([event("firing")])
    assert ("\x1b[31m" in capsys.readouterr().out) is in_colour
