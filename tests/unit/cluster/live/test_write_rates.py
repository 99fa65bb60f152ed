"""Write rates of a run: a topic whose leaders have changed keeps the rate from before."""

from __future__ import annotations

import threading
from types import SimpleNamespace

import pytest

from headroom.cluster.elections.traffic import Traffic
from headroom.cluster.live import write_rates
from headroom.cluster.live.write_rates import WriteRates
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from tests.support.waiting import until

A, B = TopicPartition("a", 0), TopicPartition("b", 0)


class Measurements:
    """A cluster that is measured; the last measurement waits until the test has looked."""

    def __init__(self, *found: Traffic | Exception) -> None:
        self.found = list(found)
        self.looked = threading.Event()
        self.closed = threading.Event()

    def __call__(self, settings: Settings) -> Measurements:
        return self

    def __enter__(self) -> Measurements:
        return self

    def __exit__(self, *error: object) -> None:
        self.closed.set()

    def leadership_with_traffic(self) -> SimpleNamespace:
        if not self.found:
            self.looked.wait(120)
            return SimpleNamespace(traffic=Traffic())
        traffic = self.found.pop(0)
        if isinstance(traffic, Exception):
            raise traffic
        return SimpleNamespace(traffic=traffic)


def test_rates_from_before_a_switch_or_a_failure_stay(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = Measurements(
        Traffic({A: 5.0, B: 1.0}, cluster_written=6.0),
        HeadroomError("the cluster", "did not answer", "Wait."),
        # The leader of a changed meanwhile.
        Traffic({B: 2.0}, cluster_written=7.0),
    )
    monkeypatch.setattr(write_rates, "LiveCluster", measured)
    monkeypatch.setattr(write_rates, "_PAUSE_S", 0.0)
    rates = WriteRates(Settings())
    rates.start()
    until(lambda: rates.now()[1] == 7.0, rates.now)
    assert rates.now() == ({A: 5.0, B: 2.0}, 7.0)
    rates.stop()
    measured.looked.set()
    assert measured.closed.wait(60)


def test_any_other_error_does_not_end_the_measurements(monkeypatch: pytest.MonkeyPatch) -> None:
    # kafka-python has such errors, for example of an answer that it cannot decode.
    measured = Measurements(
        Traffic({A: 5.0}, cluster_written=5.0), KeyError("topics"), Traffic({A: 9.0}, cluster_written=9.0)
    )
    monkeypatch.setattr(write_rates, "LiveCluster", measured)
    monkeypatch.setattr(write_rates, "_PAUSE_S", 0.0)
    rates = WriteRates(Settings())
    rates.start()
    until(lambda: not measured.found, rates.now)
    until(lambda: rates.now()[0] == {A: 9.0}, rates.now)
    rates.stop()
    measured.looked.set()


def test_rates_that_are_not_measured_any_more_are_unknown_after_a_minute(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    now_s = [0.0]
    failures = [HeadroomError("the cluster", "did not answer", "Wait.") for _ in range(3)]
    measured = Measurements(Traffic({A: 5.0}, cluster_written=5.0), *failures)
    monkeypatch.setattr(write_rates, "LiveCluster", measured)
    monkeypatch.setattr(write_rates, "_PAUSE_S", 0.0)
    rates = WriteRates(Settings(), clock=lambda: now_s[0])
    rates.start()
    until(lambda: not measured.found, rates.now)
    assert rates.now() == ({A: 5.0}, 5.0)
    now_s[0] = 61.0
    assert rates.now() == ({}, None)
    rates.stop()
    measured.looked.set()
    assert measured.closed.wait(60)
    assert len(caplog.records) == 1
