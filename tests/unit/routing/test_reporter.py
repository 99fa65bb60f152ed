"""Reports of a router: what it keeps of leaders, and of an earlier process with its name."""

from __future__ import annotations

from typing import Any, cast

import pytest

from headroom.routing import reporter as module
from headroom.routing.reporter import NameTakenError, Reporter
from headroom.schemas.migrations import KEPT_EPOCHS, AcknowledgedEnd, RouterReport


class _Answer:
    def get(self, timeout: float) -> None:
        """Succeed at once."""


class _Producer:
    """Keeps the newest report."""

    def __init__(self) -> None:
        self.reports: list[bytes] = []

    def send(self, topic: str, key: bytes, value: bytes, partition: int) -> _Answer:
        self.reports.append(value)
        return _Answer()


def end(partition: int, epoch: int, offset: int) -> AcknowledgedEnd:
    return AcknowledgedEnd("orders", partition, epoch, offset)


def noted(reporter: Reporter) -> tuple[AcknowledgedEnd, ...]:
    return reporter._report.acknowledged


def new_reporter(producer: _Producer | None = None) -> Reporter:
    return Reporter("shop-1", "producer", "1", cast(Any, producer or _Producer()))


def test_notes_on_all_leaders_stay_and_one_of_a_leader_replaces_the_one_before() -> None:
    reporter = new_reporter()
    for one in (end(0, 0, 5), end(1, 0, 7), end(0, 1, 9), end(0, 1, 11)):
        reporter.acknowledged(one)
    assert set(noted(reporter)) == {end(0, 0, 5), end(1, 0, 7), end(0, 1, 11)}


def test_the_oldest_notes_on_earlier_leaders_are_dropped_but_the_newest_of_no_partition(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_EARLIER", 2)
    reporter = new_reporter()
    reporter.acknowledged(end(1, 0, 7))
    for epoch in range(5):
        reporter.acknowledged(end(0, epoch, 10 * epoch))
    assert set(noted(reporter)) == {end(1, 0, 7), end(0, 2, 20), end(0, 3, 30), end(0, 4, 40)}


def test_of_a_partition_the_newest_epochs_are_kept() -> None:
    reporter = new_reporter()
    for epoch in range(KEPT_EPOCHS + 3):
        reporter.acknowledged(end(0, epoch, epoch))
    assert [one.leader_epoch for one in noted(reporter)] == list(range(3, KEPT_EPOCHS + 3))


def test_a_new_process_keeps_the_notes_under_its_name_and_its_own_are_newer() -> None:
    reporter = new_reporter()
    reporter.acknowledged(end(0, 3, 50))
    before = RouterReport("shop-1", "another", "producer", "1", acknowledged=(end(0, 2, 40), end(0, 3, 45)))
    reporter.check_name({"shop-1": before, "shop-2": RouterReport("shop-2", "x", "producer", "1")})
    assert set(noted(reporter)) == {end(0, 2, 40), end(0, 3, 50)}


def test_a_process_whose_name_is_taken_later_stops() -> None:
    producer = _Producer()
    reporter = new_reporter(producer)
    reporter.check_name({})
    reporter.write()
    reporter.check_name({"shop-1": reporter._report})
    with pytest.raises(NameTakenError, match="another process"):
        reporter.check_name({"shop-1": RouterReport("shop-1", "another", "producer", "1")})
