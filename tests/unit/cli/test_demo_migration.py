"""The migration's demo: how its records are counted, what it checks, and its applications."""

from __future__ import annotations

import itertools
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from click.testing import CliRunner
from kafka import TopicPartition as KafkaName

from headroom.cli.config.load import load_settings
from headroom.cli.demo.beside import CommandBeside
from headroom.cli.demo.command import demo
from headroom.cli.demo.migration.answers import AnsweredRecord, Read, RecordAnswers, RecordCounts, count_records
from headroom.cli.demo.migration.applications import BillingReader, OrderWriter
from headroom.cli.demo.migration.outcome import KilledBroker, MigrationOutcome, SwitchedPartition, check_migration
from headroom.cli.demo.migration.scenario import config_sections
from headroom.cli.demo.migration.seen import newest_progress
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition

DEADLINE_S = 120


def answered(*offsets: int) -> RecordAnswers:
    """Return the answers to records 0, 1, ...: each at its offset, at 10 s plus 1 s for each offset."""
    return RecordAnswers(len(offsets), {n: AnsweredRecord(offset, 10.0 + offset) for n, offset in enumerate(offsets)})


def test_records_that_all_came_once_and_in_order_have_no_faults() -> None:
    read = {0: [Read(0, 0), Read(1, 1)], 1: [Read(0, 0)]}
    assert count_records({0: answered(0, 1), 1: answered(0)}, read) == RecordCounts(3, 0, 3, 0, 0, 0, 0)


@pytest.mark.parametrize(
    ("read", "faults"),
    [
        # Lost, doubled, out of order, misplaced.
        ([Read(0, 0), Read(2, 2)], (1, 0, 0, 0)),
        ([Read(0, 0), Read(1, 1), Read(1, 1), Read(2, 2)], (0, 1, 0, 0)),
        ([Read(0, 0), Read(2, 2), Read(1, 1)], (0, 0, 1, 0)),
        ([Read(0, 0), Read(1, 7), Read(2, 2)], (0, 0, 0, 1)),
        # Read again from the start: doubled, and in order.
        ([Read(0, 0), Read(1, 1), Read(2, 2), Read(0, 0), Read(1, 1)], (0, 2, 0, 0)),
        ([], (3, 0, 0, 0)),
    ],
)
def test_each_fault_is_counted_once(read: list[Read], faults: tuple[int, ...]) -> None:
    counts = count_records({0: answered(0, 1, 2)}, {0: read})
    assert (counts.lost, counts.doubled, counts.out_of_order, counts.misplaced) == faults


def test_a_record_that_failed_may_be_read_or_not() -> None:
    answers = answered(0, 1)
    answers.sent, answers.failed = 4, ["KafkaTimeoutError", "KafkaTimeoutError"]
    counts = count_records({0: answers}, {0: [Read(0, 0), Read(1, 1), Read(2, 2)]})
    assert counts == RecordCounts(2, 2, 3, 0, 0, 0, 0)


def test_a_partition_switches_with_the_first_answer_from_its_end_offset_on() -> None:
    answers = answered(0, 1, 2, 3)
    assert answers.switched_s(2) == 12.0
    assert answers.switched_s(4) is None
    # RecordAnswers at 10, 11, 12 and 13 s.
    assert answers.longest_pause_s(10.0, 14.0) == 1.0
    assert answers.longest_pause_s(12.5, 14.0) is None


def partition(number: int, **changes: Any) -> SwitchedPartition:
    made = SwitchedPartition(
        TopicPartition("orders", number),
        "migrated",
        end_offset=100,
        predicted_s=1_000.0,
        switched_s=1_000.5,
        pause_s=0.08,
        on_target=20,
    )
    return replace(made, **changes)


def event(kind: str, severity: str = "warning", alert_id: str = "a") -> AlertEvent:
    return AlertEvent(
        alert_id=alert_id,
        kind=kind,
        severity=severity,
        state="firing",
        cluster="new",
        subject="migration move",
        summary="",
        evidence="{}",
        recommendation="{}",
        tick_ms=1,
        event_ms=2,
    )


# Both partitions have 100 records on the origin and 20 on the target.
GOOD = RecordCounts(240, 0, 240, 0, 0, 0, 0)
KILLED = KilledBroker(TopicPartition("orders", 0), 2, 3, killed_s=970.0, led_again_s=9.5, pause_s=9.7)


def outcome(**changes: Any) -> MigrationOutcome:
    return replace(MigrationOutcome([partition(0), partition(1)], KILLED, GOOD, []), **changes)


def test_a_migration_as_predicted_has_no_failures() -> None:
    checked = check_migration(outcome())
    assert (checked.failed, checked.late) == ([], [])
    rows = dict(checked.rows)
    assert (rows["Lost records"], rows["Doubled records"], rows["Records out of order"]) == ("0", "0", "0")
    assert rows["Acknowledged records"] == "240, of these 40 on new"
    # 1,000 s after the epoch.
    assert rows["Switch of orders-1 at E 100"] == "predicted 00:16:40, real 00:16:40 (0.5 s late)"
    # 0.5 s of 60 s.
    assert rows["Largest error of the forecast"] == "0.5 s (0.83 % of the 60 s ahead)"
    assert rows["Longest pause of the producer at a switch"] == "80 ms"
    assert rows["Leader switch on old before"] == "broker 2 killed, broker 3 leads orders-0 after 9.5 s"
    assert (rows["Alerts that fired"], rows["Alerts for information"]) == ("0", "none")


@pytest.mark.parametrize(
    ("counts", "said"),
    [
        ({"lost": 1_234}, "1,234 acknowledged records were not read"),
        ({"doubled": 1}, "1 records were read twice"),
        ({"out_of_order": 2}, "2 records were read out of order"),
        ({"misplaced": 3}, "3 records were read at another offset than the acknowledged one"),
        ({"failed": 4, "acknowledged": 236}, "4 records were not acknowledged"),
        ({"acknowledged": 239}, "239 records were acknowledged, and the two logs have 240"),
    ],
)
def test_each_fault_of_records_is_a_failure(counts: dict[str, int], said: str) -> None:
    assert check_migration(outcome(counts=replace(GOOD, **counts))).failed == [said]


def test_a_demo_without_records_shows_nothing() -> None:
    empty = [partition(0, end_offset=0, on_target=0)]
    counts = RecordCounts(0, 0, 0, 0, 0, 0, 0)
    assert check_migration(outcome(partitions=empty, counts=counts)).failed == ["no record was acknowledged"]


def test_a_partition_that_is_not_on_the_target_is_a_failure() -> None:
    partitions = [partition(0), partition(1, status="migrating")]
    assert check_migration(outcome(partitions=partitions)).failed == [
        "not all partitions are on the target: orders-1 is migrating"
    ]


def test_an_alert_is_a_failure_unless_it_informs_or_is_about_times() -> None:
    informing = outcome(fired=[event("migration_origin_removable", "info")])
    assert check_migration(informing).failed == []
    assert dict(check_migration(informing).rows)["Alerts for information"] == (
        "migration_origin_removable of migration move"
    )
    # Announced twice, it is one alert.
    lost = outcome(fired=[event("migration_records_lost"), event("migration_records_lost")])
    assert check_migration(lost).failed == ["alerts fired: migration_records_lost of migration move"]
    assert dict(check_migration(lost).rows)["Alerts that fired"] == "1"
    off_plan = check_migration(outcome(fired=[event("migration_switch_off_plan")]))
    assert (off_plan.failed, off_plan.late) == ([], ["a switch was off plan for some time, and an alert said so"])


def test_ticks_that_are_late_are_a_failure_unless_the_machine_is_overloaded() -> None:
    late = outcome(fired=[event("no_data")])
    assert check_migration(late).failed == ["alerts fired: no_data of migration move"]
    assert check_migration(late, overloaded=True).failed == []
    assert check_migration(late).late == ["ticks were evaluated late, and an alert said so"]


@pytest.mark.parametrize(
    ("changes", "late"),
    [
        # A tenth of 60 s is 6 s, early or late.
        ({"switched_s": 1_006.0}, []),
        ({"switched_s": 1_006.1}, ["a switch was 6.1 s off its predicted time"]),
        ({"switched_s": 993.5}, ["a switch was 6.5 s off its predicted time"]),
        ({"predicted_s": None}, ["a switch was an unknown time off its predicted time"]),
        ({"pause_s": 1.2}, ["the producer paused for 1.2 s at a switch"]),
        ({"pause_s": None}, ["the producer paused for an unknown time at a switch"]),
    ],
)
def test_times_that_were_not_kept_are_no_failure(changes: dict[str, Any], late: list[str]) -> None:
    checked = check_migration(outcome(partitions=[partition(0), partition(1, **changes)]))
    assert (checked.failed, checked.late) == ([], late)


def test_a_broker_that_was_killed_after_a_switch_proves_less() -> None:
    checked = check_migration(outcome(killed=replace(KILLED, killed_s=1_001.0)))
    assert checked.late == ["a partition had switched before the broker was killed"]


@pytest.mark.parametrize(("pause_s", "strict", "code"), [(0.08, True, 0), (1.2, False, 0), (1.2, True, 1)])
def test_the_command_plays_the_migration(
    pause_s: float, strict: bool, code: int, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    played: list[Path] = []

    def play(folder: Path) -> MigrationOutcome:
        played.append(folder)
        return outcome(partitions=[partition(0), partition(1, pause_s=pause_s)])

    monkeypatch.setattr("headroom.cli.demo.command.run_migration_demo", play)
    folder = tmp_path / "demo"
    options = ["--migration", "--dir", str(folder), *(["--strict"] if strict else [])]
    done = CliRunner().invoke(demo, options)
    assert (done.exit_code, played) == (code, [folder])
    said = done.output if code == 0 else str(done.exception)
    assert ("the producer paused for 1.2 s" in said) == (pause_s == 1.2)
    # Of a run that failed, all is kept.
    assert folder.exists() == (code == 1)
    assert ("gold/migration_progress" in done.output) == (code == 1)


def test_the_settings_of_the_demo_name_both_clusters(tmp_path: Path) -> None:
    file = tmp_path / "headroom.toml"
    target = '[cluster]\nname = "new"\nbootstrap_servers = "127.0.0.1:2"\n'
    file.write_text(target + config_sections("127.0.0.1:1,127.0.0.1:3"), encoding="utf-8")
    migration = load_settings(str(file)).migration
    assert (migration.origin.name, migration.origin.bootstrap_servers) == ("old", "127.0.0.1:1,127.0.0.1:3")
    assert migration.prepare == 60.0


def test_a_watch_that_has_written_nothing_yet_shows_nothing(tmp_path: Path) -> None:
    settings = Settings()
    empty = replace(settings, store=replace(settings.store, path=str(tmp_path)))
    assert newest_progress(empty, "move") == ()


class Log:
    """One partition of a cluster: producers append to it, and consumers read it from where they committed.

    Attributes:
        values: values of all records.
        committed: offset of the next record to read.
        closed: how many clients were closed.
    """

    def __init__(self) -> None:
        self.values: list[bytes] = []
        self.committed = self.closed = self.flushed = 0

    @contextmanager
    def producer(self) -> Iterator[Any]:
        yield self
        self.closed += 1

    @contextmanager
    def consumer(self) -> Iterator[Any]:
        self.position = self.committed
        yield self
        self.closed += 1

    def send(self, topic: str, value: bytes, *, partition: int) -> Any:
        self.values.append(value)
        return Answer(len(self.values) - 1)

    def flush(self, timeout: float | None = None) -> None:
        self.flushed += 1

    def poll(self, timeout_ms: int = 0) -> dict[Any, list[Any]]:
        new = self.values[self.position : self.position + 10]
        first, self.position = self.position, self.position + len(new)
        records = [SimpleNamespace(value=value, offset=first + place) for place, value in enumerate(new)]
        return {KafkaName("orders", 0): records} if records else {}

    def commit(self) -> None:
        self.committed = self.position


class Answer:
    """Future of a record that is acknowledged."""

    def __init__(self, offset: int) -> None:
        self._metadata = SimpleNamespace(offset=offset)

    def add_callback(self, call: Any, *args: Any) -> Answer:
        call(*args, self._metadata)
        return self

    def add_errback(self, call: Any, *args: Any) -> Answer:
        return self


def await_true(condition: Any) -> None:
    waiting = threading.Event()
    for _ in range(DEADLINE_S * 100):
        if condition():
            return
        waiting.wait(0.01)
    raise AssertionError("not in time")


def test_applications_lose_and_double_nothing_as_they_are_restarted() -> None:
    log = Log()
    with OrderWriter("shop-1", log.producer, {0: 500.0}) as writer, BillingReader("billing-1", log.consumer) as reader:
        for closed in (0, 2):
            await_true(lambda: writer.is_restarted and reader.is_restarted)
            count = reader.count
            await_true(lambda count=count: reader.count > count + 20)
            assert log.closed == closed
            writer.restart(log.producer)
            reader.restart(log.consumer)
            await_true(lambda closed=closed: log.closed == closed + 2)
        writer.end()
        await_true(lambda: reader.count >= writer.acknowledged)
        reader.end()
    # Each client is flushed before it is closed.
    assert log.flushed == 3
    counts = count_records(writer.answers, reader.read)
    assert counts.acknowledged == len(log.values) > 40
    assert counts == RecordCounts(counts.acknowledged, 0, counts.acknowledged, 0, 0, 0, 0)


def test_a_command_beside_passes_on_its_lines_and_then_its_exit_code(tmp_path: Path) -> None:
    lines: list[str] = []
    # Where there is no cluster, the settings are refused at once.
    words = ["migration", "run", "orders", "--name", "move", "--method", "routed", "--config", str(tmp_path / "none")]
    with CommandBeside(words, lines.append) as command:
        await_true(lambda: command.code is not None)
    assert command.code == 1
    assert any("none" in line for line in lines)
    assert not any(line.endswith("\n") for line in lines)


def test_an_application_that_fails_says_so() -> None:
    calls = itertools.count()

    @contextmanager
    def broken() -> Iterator[Any]:
        next(calls)
        raise ValueError("no cluster")
        yield

    with OrderWriter("shop-1", broken, {0: 1.0}) as writer:
        with pytest.raises(HeadroomError, match="application shop-1: failed: ValueError: no cluster"):
            await_true(lambda: writer.is_restarted)
        with pytest.raises(HeadroomError, match="no cluster"):
            writer.end()
    assert next(calls) == 1
