"""Steps of the wall clock: their detection, and metrics that are read during a step."""

from __future__ import annotations

import logging
import time

import pytest

from headroom.cluster.collector.clock import Clock, ClockSteps, on_one_clock
from headroom.cluster.model import LogReading, Meter, Metrics, Reading
from headroom.schemas.keys import TopicPartition
from tests.unit.fakes.clocks import FakeTime

HOUR_MS = 3_600_000


@pytest.mark.parametrize(("step_ms", "words"), [(-HOUR_MS, "set back by 3600.0 s"), (20_000, "set forward by 20.0 s")])
def test_a_step_is_found_once_and_logged(step_ms: int, words: str, caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.WARNING, "headroom.cluster.collector.clock")
    now = FakeTime()
    steps = ClockSteps(now.clock)
    now.elapsed_s += 5
    assert steps.step_ms() == 0
    now.elapsed_s += 5
    now.set_ms += step_ms
    assert steps.step_ms() == step_ms
    now.elapsed_s += 5
    assert steps.step_ms() == 0
    assert caplog.text.count("the clock of this machine was set") == 1
    assert words in caplog.text


# A kernel slews by at most 500 ppm: 30 ms in a minute, 1.8 s in an hour. ntpd sets a clock that is off by 128 ms.
@pytest.mark.parametrize(
    ("passed_s", "off_ms", "step_ms"),
    [(60, 30, 0), (60, -30, 0), (3600, 1800, 0), (5, 128, 128), (5, -128, -128)],
)
def test_a_clock_that_is_slewed_is_not_stepped(passed_s: float, off_ms: int, step_ms: int) -> None:
    now = FakeTime()
    steps = ClockSteps(now.clock)
    now.elapsed_s += passed_s
    now.set_ms += off_ms
    assert steps.step_ms() == step_ms


def test_slewing_for_hours_never_adds_up_to_a_step() -> None:
    now = FakeTime()
    steps = ClockSteps(now.clock)
    for _ in range(1000):
        now.elapsed_s += 10
        now.set_ms += 5
        assert steps.step_ms() == 0


def test_a_process_that_has_to_wait_between_the_two_clocks_sees_no_step() -> None:
    now = FakeTime()
    waits_s = [0.0, 0.0, 0.0, 0.7, 0.0, 0.0]

    def wall_s() -> float:
        seconds = now.wall_ms() / 1000
        now.elapsed_s += waits_s.pop(0)
        return seconds

    steps = ClockSteps(Clock(wall_s, lambda: now.elapsed_s))
    assert steps.step_ms() == 0
    assert waits_s == []


@pytest.mark.skipif(not hasattr(time, "CLOCK_BOOTTIME"), reason="the system counts no time that the machine slept")
def test_a_sleep_of_the_machine_is_no_step() -> None:
    before_s = time.clock_gettime(time.CLOCK_BOOTTIME)
    assert before_s <= Clock().elapsed_s() <= time.clock_gettime(time.CLOCK_BOOTTIME)


@pytest.mark.parametrize("step_ms", [-HOUR_MS, HOUR_MS])
def test_readings_before_a_clock_step_are_shifted_to_the_new_clock(step_ms: int) -> None:
    # By the clock after the step the reading went from 10,000,000 to 10,000,800.
    early, late = 10_000_100 - step_ms, 10_000_700
    meter, gauge = Meter("m"), Meter("g")
    first, second = TopicPartition("t", 0), TopicPartition("t", 1)
    metrics = Metrics(
        7,
        {meter: Reading(early, 5)},
        {gauge: Reading(late, 1.5)},
        (),
        {first: LogReading(early, 3, 0, None), second: LogReading(late, 4, None, None)},
    )
    moved = on_one_clock(metrics, 10_000_000, 10_000_800, step_ms)
    assert moved.counters == {meter: Reading(10_000_100, 5)}
    assert moved.gauges == metrics.gauges
    assert moved.logs == {first: LogReading(10_000_100, 3, 0, None), second: metrics.logs[second]}
    # The start of a broker's process is a time of that broker's clock.
    assert moved.started_ms == 7
