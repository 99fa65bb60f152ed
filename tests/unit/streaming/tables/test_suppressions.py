"""Table of suppressions on a local disk: concurrent writers lose nothing, and a follower passes on changes."""

from __future__ import annotations

import logging
import subprocess
import sys
from dataclasses import asdict
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headroom.alerts.delivery.suppression import SuppressionRecord, Suppressions
from headroom.schemas.config import DAYS, MaintenanceWindow
from headroom.schemas.records import record
from headroom.schemas.tables import ALERT_MARKS
from headroom.streaming.delta import small_table
from headroom.streaming.delta.properties import properties
from headroom.streaming.delta.query import rows
from headroom.streaming.tables import suppressions as table
from headroom.streaming.tables.suppressions import ALL_SQL, SuppressionFollower, append_record
from tests.support.waiting import until
from tests.unit.alerts.delivery.test_suppression import NOW_MS, ack, silence
from tests.unit.fakes.receivers import event

REPOSITORY = Path(__file__).resolve().parents[4]
WINDOW = MaintenanceWindow(DAYS, "00:00", 3600)
# One of the writers of the race.
WRITER = """
import sys
from headroom.streaming.tables.suppressions import append_record
from tests.unit.alerts.delivery.test_suppression import silence
sys.stdin.read(1)
for number in range(5):
    append_record(sys.argv[1], silence(f"{sys.argv[2]}-{number}"))
"""


@pytest.fixture
def location(tmp_path: Path) -> str:
    return str(tmp_path / "alerts" / "marks")


def found(location: str) -> list[str]:
    return sorted(row["mark_id"] for row in rows({"data": location}, ALL_SQL))


def test_a_suppression_is_read_back_unchanged_and_its_table_matches_the_schema(location: str) -> None:
    append_record(location, silence(kind="no_data"))
    append_record(location, ack())
    read = {row["mark_id"]: record(SuppressionRecord, row) for row in rows({"data": location}, ALL_SQL)}
    assert read == {mark.mark_id: mark for mark in (silence(kind="no_data"), ack())}
    made = DeltaTable(location)
    assert made.metadata().configuration == properties(ALERT_MARKS)
    assert [field.name for field in made.schema().fields] == ALERT_MARKS.names() == list(asdict(ack()))


def test_writers_that_make_the_table_and_write_at_once_lose_no_row(location: str) -> None:
    writers = [
        subprocess.Popen([sys.executable, "-c", WRITER, location, name], stdin=subprocess.PIPE, cwd=REPOSITORY)
        for name in "ab"
    ]
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write(b"\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0, 0]
    assert found(location) == sorted(f"{name}-{number}" for name in "ab" for number in range(5))


def test_many_small_files_are_put_together(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(small_table, "_MOST_FILES", 3)
    for number in range(5):
        append_record(location, silence(str(number)))
    assert len(DeltaTable(location).file_uris()) < 4
    assert found(location) == ["0", "1", "2", "3", "4"]


def test_a_suppression_is_stored_even_if_compaction_fails(
    location: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    def full(*_: object) -> None:
        raise OSError("disk full")

    monkeypatch.setattr(small_table, "_compact_if_large", full)
    append_record(location, silence())
    assert found(location) == ["s"]
    assert "could not be compacted: disk full" in caplog.text


class Following:
    """A follower that the test polls, and what it passed on."""

    def __init__(self, location: str) -> None:
        self.now_ms = NOW_MS
        self.received: list[Suppressions] = []
        self.follower = SuppressionFollower(location, [WINDOW], self.received.append, lambda: self.now_ms)

    def poll(self, after_s: float = 0) -> int:
        self.now_ms += round(after_s * 1000)
        self.follower.poll()
        return len(self.received)


def test_a_follower_hands_over_what_has_changed_and_nothing_else(location: str) -> None:
    following = Following(location)
    assert (following.poll(), following.poll(), following.received[0]) == (1, 1, Suppressions(windows=[WINDOW]))
    append_record(location, silence())
    assert (following.poll(), following.poll()) == (2, 2)
    assert following.received[-1].is_suppressed(event(), NOW_MS)
    append_record(location, ack())
    assert following.poll() == 3
    assert following.received[-1] == Suppressions.of([silence(), ack()], [WINDOW])


def test_silences_of_long_ago_are_not_handed_over(location: str) -> None:
    append_record(location, silence())
    following = Following(location)
    following.poll(8 * 86_400)
    assert following.received[-1].silences == ()


def test_unreadable_silences_stay_in_force_for_a_minute_and_then_only_windows_do(
    location: str, caplog: pytest.LogCaptureFixture
) -> None:
    append_record(location, silence())
    following = Following(location)
    assert following.poll() == 1
    log = Path(location) / "_delta_log" / f"{DeltaTable(location).version() + 1:020}.json"
    log.write_text("{")
    # The last read is in force for a minute, and then only the windows are.
    assert following.poll(59) == 1
    assert caplog.text == ""
    assert following.poll(1) == 2
    assert following.received[-1] == Suppressions(windows=[WINDOW])
    assert (following.poll(600), caplog.text.count("cannot be read, so silences")) == (2, 1)
    log.unlink()
    assert following.poll() == 3
    assert following.received[-1].is_suppressed(event(), NOW_MS)


def test_unreadable_silences_at_the_start_suppress_nothing(location: str, caplog: pytest.LogCaptureFixture) -> None:
    Path(location, "_delta_log").mkdir(parents=True)
    Path(location, "_delta_log", f"{0:020}.json").write_text("{")
    following = Following(location)
    with caplog.at_level(logging.WARNING):
        assert (following.poll(), following.poll()) == (1, 1)
    assert following.received == [Suppressions(windows=[WINDOW])]
    assert caplog.text.count("cannot be read") == 1


def test_a_follower_looks_by_itself_and_stops(location: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(table, "_EVERY_S", 0.01)
    following = Following(location)
    following.follower.start()
    append_record(location, silence())
    until(lambda: following.received[-1].is_suppressed(event(), NOW_MS), lambda: following.received)
    following.follower.stop()
    until(lambda: not following.follower._task._thread.is_alive())
