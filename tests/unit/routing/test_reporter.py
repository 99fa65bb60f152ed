"""Reports of a router: what it keeps of leaders, and of an earlier process with its name."""

from __future__ import annotations

from typing import Any, cast

import pytest
from kafka.errors import MessageSizeTooLargeError

from headroom.routing import reporter as module
from headroom.routing.reporter import NameTakenError, Reporter
from headroom.schemas.errors import HeadroomError
from headroom.schemas.migrations import KEPT_EPOCHS, AcknowledgedEnd, RouterReport, read_migration_record


class _Answer:
    def get(self, timeout: float) -> None:
        """Succeed at once."""


class _Producer:
    """Keeps the newest report."""

    def __init__(self) -> None:
        self.reports: list[RouterReport] = []
        self.sizes: list[int] = []
        self.most_bytes = 10**9

    def send(self, topic: str, key: bytes, value: bytes, partition: int) -> _Answer:
        self.sizes.append(len(value))
        if len(value) > self.most_bytes:
            raise MessageSizeTooLargeError
        report = read_migration_record(0, key, value)
        assert isinstance(report, RouterReport)
        self.reports.append(report)
        return _Answer()


def end(partition: int, epoch: int, offset: int) -> AcknowledgedEnd:
    return AcknowledgedEnd("orders", partition, epoch, offset)


def noted(reporter: Reporter) -> tuple[AcknowledgedEnd, ...]:
    """What the reporter writes of leaders."""
    reporter.write()
    producer = cast(_Producer, reporter._producer)
    return producer.reports[-1].acknowledged


def incomplete(producer: _Producer) -> list[str]:
    """Migrations of which the newest report has dropped notes."""
    return list(producer.reports[-1].incomplete)


def new_reporter(producer: _Producer | None = None) -> Reporter:
    return Reporter("shop-1", "producer", "1", cast(Any, producer or _Producer()))


def test_notes_on_all_leaders_stay_and_one_of_a_leader_replaces_the_one_before() -> None:
    reporter = new_reporter()
    for one in (end(0, 0, 5), end(1, 0, 7), end(0, 1, 9), end(0, 1, 11)):
        reporter.acknowledged(one)
    assert set(noted(reporter)) == {end(0, 0, 5), end(1, 0, 7), end(0, 1, 11)}


NOTE_BYTES = len('{"end":10,"leader_epoch":0,"partition":0,"topic":"orders"},')


def test_what_does_not_fit_is_dropped_first_of_earlier_leaders_and_then_of_others_and_that_is_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "_MOST_BYTES", 4 * NOTE_BYTES)
    producer = _Producer()
    reporter = new_reporter(producer)
    reporter.agree({"move": 1})
    reporter.acknowledged(end(1, 0, 17))
    for epoch in range(3):
        reporter.acknowledged(end(0, epoch, 10 + epoch))
    assert len(noted(reporter)) == 4
    assert incomplete(producer) == []
    reporter.acknowledged(end(0, 3, 13))
    reporter.acknowledged(end(0, 4, 14))
    assert set(noted(reporter)) == {end(1, 0, 17), end(0, 2, 12), end(0, 3, 13), end(0, 4, 14)}
    assert incomplete(producer) == ["move"]
    for partition in range(2, 6):
        reporter.acknowledged(end(partition, 0, 20))
    # The oldest one of those that are the newest of their partitions has gone too.
    assert set(noted(reporter)) == {end(partition, 0, 20) for partition in range(2, 6)}


def test_a_report_on_thousands_of_partitions_fits_into_a_record() -> None:
    """15,000 notes of about 120 bytes, after the brokers of the origin were restarted one after another."""
    producer = _Producer()
    reporter = new_reporter(producer)
    reporter.agree({"move": 1})
    for partition in range(15_000):
        reporter.acknowledged(AcknowledgedEnd("orders", partition, 7, 10**9, None, "PbVGRJQYSiKgHFhsSOUx0Q" * 2))
    reporter.write()
    (size,) = producer.sizes
    assert 890_000 < size < 1_000_000
    (report,) = producer.reports
    assert list(report.incomplete) == ["move"]
    # The newest are those that stay.
    assert [one.partition for one in report.acknowledged][-1] == 14_999


def test_a_report_that_is_too_long_for_the_cluster_is_shorter_at_the_next_try() -> None:
    producer = _Producer()
    producer.most_bytes = 2_000
    reporter = new_reporter(producer)
    reporter.agree({"move": 1})
    for partition in range(100):
        reporter.acknowledged(end(partition, 0, 20))
    for _ in range(2):
        with pytest.raises(HeadroomError, match="MessageSizeTooLargeError"):
            reporter.write()
    reporter.write()
    first, second, third = producer.sizes
    assert first > second > producer.most_bytes >= third
    assert incomplete(producer) == ["move"]
    assert producer.reports[-1].acknowledged[-1] == end(99, 0, 20)


def test_that_notes_were_dropped_is_kept_by_the_next_process_until_the_migration_ends() -> None:
    producer = _Producer()
    reporter = new_reporter(producer)
    reporter.check_name({"shop-1": RouterReport("shop-1", "another", "producer", "1", incomplete=("gone", "move"))})
    reporter.agree({"move": 1, "next": 1})
    reporter.write()
    assert incomplete(producer) == ["move"]
    reporter.agree({"next": 1})
    reporter.write()
    assert incomplete(producer) == []


def test_a_recreated_topic_has_notes_of_its_own() -> None:
    """Its epochs begin at 0 again, so that those of the one before are no newer ones."""
    reporter = new_reporter()
    for epoch in range(KEPT_EPOCHS, 2 * KEPT_EPOCHS):
        reporter.acknowledged(AcknowledgedEnd("orders", 0, epoch, 50, None, "i"))
    reporter.acknowledged(AcknowledgedEnd("orders", 0, 0, 5, None, "j"))
    assert noted(reporter)[-1] == AcknowledgedEnd("orders", 0, 0, 5, None, "j")


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
