"""The collector after unexpected errors: each costs one tick, and the next tick succeeds."""

from __future__ import annotations

import logging
import threading
from typing import Any

import pytest

import headroom.cluster.collector.collector
from headroom.cluster.collector.collector import Collector, TickReport
from headroom.cluster.collector.publisher import PublishError, SentMessages
from headroom.cluster.collector.rows.encoder import Message
from headroom.cluster.metrics.mbeans import ReadPlan
from headroom.cluster.model import Metrics
from headroom.schemas.config import ClusterSettings, CollectSettings, Settings
from tests.unit.fakes.admin_connection import ManyTopics


class Brokers(ManyTopics):
    """Three brokers; counts how often the connections were closed."""

    def __init__(self) -> None:
        super().__init__({"a": 2})
        self.closed = 0

    def client(self) -> None:
        pass

    def close(self) -> None:
        self.closed += 1


class Source:
    def start(self) -> None:
        pass

    def stop(self) -> None:
        pass

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        return Metrics(7, {}, {}, (), {})


class Failing:
    """A sink that raises the given errors one by one, then writes ticks."""

    def __init__(self, *errors: Exception) -> None:
        self._errors = list(errors)

    def open(self) -> None:
        pass

    def close(self) -> None:
        pass

    def send(self, messages: list[Message]) -> SentMessages:
        if self._errors:
            raise self._errors.pop(0)
        return SentMessages({}, 0, 0)

    def send_end(self, cluster: str, tick_ms: int, seq: int, end: dict[str, Any]) -> None:
        pass


def run(monkeypatch: pytest.MonkeyPatch, *errors: Exception) -> tuple[list[TickReport], Brokers]:
    """Run a collector until a tick is written, and return the report of each tick."""
    brokers, reports, stop = Brokers(), [], threading.Event()
    monkeypatch.setattr(headroom.cluster.collector.collector, "AdminConnection", lambda settings: brokers)
    monkeypatch.setattr(headroom.cluster.collector.collector, "metrics_sources", lambda collect: (Source(), Source()))

    def on_tick(report: TickReport) -> None:
        reports.append(report)
        if report.failed is None or len(reports) > len(errors):
            stop.set()

    settings = Settings(
        cluster=ClusterSettings(bootstrap_servers="h:1", name="c"),
        collect=CollectSettings(interval_s=0.1, load_interval_s=0.0, log_dirs_interval_s=0.0),
    )
    Collector(settings, Failing(*errors), on_tick).run(stop)
    return reports, brokers


@pytest.mark.parametrize("error", [RuntimeError("loop closed"), ValueError("no number"), KeyError("topic")])
def test_an_unexpected_error_costs_a_tick_and_its_connections(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, error: Exception
) -> None:
    with caplog.at_level(logging.ERROR, "headroom.cluster.collector.collector"):
        reports, brokers = run(monkeypatch, error)
    assert [report.failed for report in reports] == [f"unexpected {type(error).__name__}: {error}", None]
    (record,) = (record for record in caplog.records if record.name == "headroom.cluster.collector.collector")
    assert record.exc_info is not None
    # Once to reconnect, and at the end the connections of ticks and of loads.
    assert brokers.closed == 3


def test_an_expected_error_does_not_close_the_connections(monkeypatch: pytest.MonkeyPatch) -> None:
    reports, brokers = run(monkeypatch, PublishError("late"))
    assert [report.failed for report in reports] == ["late", None]
    assert brokers.closed == 2
