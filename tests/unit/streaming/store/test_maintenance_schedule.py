"""The schedule of maintenance: soon after the start, again and again, whatever fails."""

from __future__ import annotations

import threading

from headroom.streaming.store.maintenance import MaintenanceSchedule


def test_a_run_that_fails_does_not_end_the_schedule() -> None:
    runs = 0
    third = threading.Event()

    def run() -> None:
        nonlocal runs
        runs += 1
        if runs == 3:
            third.set()
        raise RuntimeError("this one fails")

    schedule = MaintenanceSchedule(run, 0.01)
    schedule.start()
    try:
        assert third.wait(60), f"{runs} runs"
    finally:
        schedule.stop()


def test_the_first_run_does_not_wait_for_a_whole_period() -> None:
    ran = threading.Event()
    # A tenth of the period is over long before the wait, a whole one is not.
    schedule = MaintenanceSchedule(ran.set, 30.0)
    schedule.start()
    try:
        assert ran.wait(25)
    finally:
        schedule.stop()
