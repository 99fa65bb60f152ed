"""Output of the alert path: terminal and metrics get the same events, including those of an earlier run."""

from __future__ import annotations

from typing import Any

from headroom.alerts.delivery.outbox import DeliveryFigures
from headroom.cli.watch.output.printer import VerdictPrinter
from headroom.cli.watch.pipeline import start_alert_output
from headroom.schemas.alerts import AlertEvent
from headroom.streaming.jobs.listener import AlertPathListener
from tests.unit.builders.throttle_status import TICK_MS
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
