"""Each kind of file of a table, damaged in each way: one line of error, and a repair that keeps all other rows."""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Callable
from itertools import count
from pathlib import Path
from types import FrameType

import pytest
from deltalake import DeltaTable

from headroom.planning.reassignments.run.journal import JournalRow
from headroom.schemas.alerts import AlertEvent
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ACTION_JOURNAL, ALERT_EVENTS, LEADER_IMBALANCE
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.damage import UNKNOWN, UNREADABLE_REMEDY, damages, describe_damage, error_of_damage
from headroom.streaming.delta.files.table_files import data_files
from headroom.streaming.delta.query_table import query
from headroom.streaming.delta.small_table import append_durably, append_or_error
from headroom.streaming.durability import mend as mending
from headroom.streaming.durability.mend import mend
from tests.unit.streaming.delta.files.test_sync import journal_row
from tests.unit.streaming.durability.test_checkpoint import cut, empty, into_folder, zero

COMMITS = 4


def event(number: int) -> AlertEvent:
    return AlertEvent(f"id-{number}", "no_data", "critical", "firing", "orders", "ticks", "…", "{}", "{}", number, 1)


@pytest.fixture
def store(tmp_path: Path) -> Path:
    """A store with the events of four commits, a checkpoint of its log after the third."""
    path = str(tmp_path / ALERT_EVENTS.path)
    delta_append.create(path, ALERT_EVENTS)
    for number in range(COMMITS):
        delta_append.append(DeltaTable(path), [event(number)], ALERT_EVENTS)
        if number == COMMITS - 2:
            DeltaTable(path).create_checkpoint()
    return tmp_path


def flip_data(file: Path) -> None:
    """Flip one bit in the length of the footer, which every reader needs; ends and size stay as they are."""
    content = bytearray(file.read_bytes())
    content[-8] ^= 0x10
    file.write_bytes(bytes(content))


def flip(file: Path) -> None:
    if file.suffix == ".parquet":
        flip_data(file)
        return
    content = bytearray(file.read_bytes())
    content[content.index(b"{")] ^= 0x40
    file.write_bytes(bytes(content))


def remove(file: Path) -> None:
    file.unlink()


def log_of(store: Path) -> Path:
    return store / ALERT_EVENTS.path / "_delta_log"


def newest_data(store: Path) -> Path:
    path = str(store / ALERT_EVENTS.path)
    (added,) = {*DeltaTable(path).file_uris()} - {*DeltaTable(path, version=COMMITS - 1).file_uris()}
    return Path(added)


# Kind of file to the file, and whether a row is lost with it.
KINDS: dict[str, tuple[Callable[[Path], Path], bool]] = {
    "data file": (newest_data, True),
    "newest commit": (lambda store: max(log_of(store).glob("*.json")), True),
    "checkpoint of the log": (lambda store: next(log_of(store).glob("*.checkpoint.parquet")), False),
    "hint to the checkpoint": (lambda store: log_of(store) / "_last_checkpoint", False),
}
HARMS = {"cut": cut, "emptied": empty, "zeroed": zero, "flipped": flip, "removed": remove, "a folder": into_folder}
# What leaves a table as if the file had never been written, or is not needed.
UNDAMAGED = {("newest commit", "removed"), ("checkpoint of the log", "removed"), ("hint to the checkpoint", "removed")}


def kept(store: Path) -> list[int]:
    found = query(str(store), ALERT_EVENTS.path, "SELECT tick_ms FROM data ORDER BY tick_ms")
    return [row["tick_ms"] for row in found or []]


@pytest.mark.parametrize("harm", HARMS)
@pytest.mark.parametrize("kind", KINDS)
def test_a_damaged_file_is_reported_in_one_line_and_repaired(store: Path, kind: str, harm: str) -> None:
    file_of, is_lost = KINDS[kind]
    path = str(store / ALERT_EVENTS.path)
    HARMS[harm](file_of(store))
    found = damages(path, thorough=True)
    if (kind, harm) in UNDAMAGED - {("checkpoint of the log", "removed")}:
        assert found == []
        return
    assert found
    line = describe_damage(ALERT_EVENTS.path, found)
    assert "\n" not in line
    assert "headroom maintain --repair" in line
    assert mend(path)
    assert damages(path, thorough=True) == []
    # All whole lines of a commit are kept.
    has_lost = is_lost and (kind, harm) != ("newest commit", "flipped")
    assert kept(store) == list(range(COMMITS - has_lost))
    append_durably(path, [event(9)], ALERT_EVENTS)
    assert kept(store)[-1] == 9


@pytest.mark.parametrize("harm", ["cut", "emptied", "zeroed", "flipped", "removed", "a folder"])
def test_the_columns_of_a_table_of_headroom_are_known_without_its_first_commit(tmp_path: Path, harm: str) -> None:
    path = str(tmp_path / ALERT_EVENTS.path)
    for number in range(3):
        append_durably(path, [event(number)], ALERT_EVENTS)
    HARMS[harm](log_of(tmp_path) / f"{0:020d}.json")
    assert mend(path)
    assert damages(path, thorough=True) == []
    assert kept(tmp_path) == [0, 1, 2]


def lose_log(log: Path) -> None:
    shutil.rmtree(log)


def log_as_file(log: Path) -> None:
    shutil.rmtree(log)
    log.write_text("")


def torn(log: Path) -> None:
    """Cut the newest commit off within its last line; the entry of its file is in an earlier one."""
    newest = max(log.glob("*.json"))
    lines = newest.read_text("utf-8").splitlines()
    info = [line for line in lines if "commitInfo" in line]
    newest.write_text("\n".join([*(line for line in lines if line not in info), info[0][:-9]]), "utf-8")


def all_but_newest(log: Path) -> None:
    for commit in sorted(log.glob("*.json"))[:-1]:
        commit.unlink()


@pytest.mark.parametrize("harm", [lose_log, log_as_file, all_but_newest])
def test_rows_that_a_promise_rests_on_outlive_the_loss_of_their_log(
    tmp_path: Path, harm: Callable[[Path], None]
) -> None:
    path = tmp_path / ACTION_JOURNAL.path
    for number in range(4):
        append_durably(str(path), [journal_row(number)], ACTION_JOURNAL)
    # Its old files are still there, and their rows must not come back twice.
    DeltaTable(str(path)).optimize.compact()
    harm(path / "_delta_log")
    with pytest.raises(HeadroomError, match="is damaged"):
        append_or_error(str(path), [journal_row(9)], ACTION_JOURNAL, "")
    with pytest.raises(HeadroomError, match="is damaged"):
        query(str(tmp_path), ACTION_JOURNAL.path, "SELECT * FROM data")
    mend(str(path))
    append_durably(str(path), [journal_row(4)], ACTION_JOURNAL)
    rows = query(str(tmp_path), ACTION_JOURNAL.path, "SELECT * FROM data ORDER BY seq") or []
    assert [JournalRow(**row) for row in rows] == [journal_row(number) for number in range(5)]
    assert data_files(path.parent / "_damaged" / path.name)


def killed_at(line: int) -> Callable[[FrameType, str, object], object]:
    """Return a trace function that ends a repair before its n-th line, as a kill does."""
    left = line

    def trace(frame: FrameType, event: str, _: object) -> object:
        nonlocal left
        if frame.f_code.co_filename != mending.__file__:
            return None
        left -= event == "line"
        if left < 0:
            raise Killed
        return trace

    return trace


@pytest.mark.parametrize("error", [OSError(28, "No space left on device"), OSError("No space left on device")])
def test_a_repair_on_a_full_disk_changes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: OSError
) -> None:
    path = tmp_path / ACTION_JOURNAL.path
    append_durably(str(path), [journal_row(1)], ACTION_JOURNAL)
    lose_log(path / "_delta_log")

    def full(*_: object) -> None:
        raise error

    with monkeypatch.context() as patched:
        patched.setattr(mending, "create", full)
        with pytest.raises(HeadroomError, match=r"cannot be mended \(.*No space left on device\)") as caught:
            mend(str(path))
        assert "free space on its disk" in caught.value.remedy
    mend(str(path))
    assert len(query(str(tmp_path), ACTION_JOURNAL.path, "SELECT seq FROM data") or []) == 1


class Killed(BaseException):
    pass


@pytest.mark.parametrize("harm", [lose_log, log_as_file, all_but_newest, torn])
def test_a_repair_that_is_killed_at_any_moment_loses_no_row(tmp_path: Path, harm: Callable[[Path], None]) -> None:
    whole = tmp_path / "whole"
    path = whole / ACTION_JOURNAL.path
    for number in range(3):
        append_durably(str(path), [journal_row(number)], ACTION_JOURNAL)
    harm(path / "_delta_log")
    for line in count():
        store = tmp_path / str(line)
        shutil.copytree(whole, store)
        before = sys.gettrace()
        sys.settrace(killed_at(line))
        try:
            mend(str(store / ACTION_JOURNAL.path))
            ended = True
        except Killed:
            ended = False
        finally:
            sys.settrace(before)
        mend(str(store / ACTION_JOURNAL.path))
        assert damages(str(store / ACTION_JOURNAL.path), thorough=True) == [], line
        rows = query(str(store), ACTION_JOURNAL.path, "SELECT seq FROM data ORDER BY seq") or []
        assert [row["seq"] for row in rows] == [0, 1, 2], line
        shutil.rmtree(store)
        if ended:
            break
    assert line > 10


def test_history_without_its_log_begins_again_and_is_kept_aside(tmp_path: Path) -> None:
    path = tmp_path / LEADER_IMBALANCE.path
    delta_append.create(str(path), LEADER_IMBALANCE)
    (path / "date=2026-11-27").mkdir()
    (path / "date=2026-11-27" / "part-0.parquet").write_bytes(b"PAR1PAR1")
    lose_log(path / "_delta_log")
    (damage,) = mend(str(path))
    assert damage.lost == "its rows: the files are kept"
    assert damages(str(path)) == []
    assert data_files(path.parent / "_damaged" / path.name)


def test_a_file_in_the_place_of_a_table_is_moved_away(tmp_path: Path) -> None:
    path = tmp_path / ALERT_EVENTS.path
    path.parent.mkdir()
    path.write_text("")
    (damage,) = mend(str(path))
    assert damage.fault == "is a file, and must be a folder"
    append_durably(str(path), [event(1)], ALERT_EVENTS)
    assert kept(tmp_path) == [1]


def test_an_empty_commit_that_readers_skip_is_an_error_with_the_command(store: Path) -> None:
    empty(max(log_of(store).glob("*.json")))
    with pytest.raises(HeadroomError, match="is empty") as caught:
        kept(store)
    assert "headroom maintain --repair" in caught.value.remedy


def test_an_undamaged_table_has_no_error(store: Path) -> None:
    assert error_of_damage(str(store / ALERT_EVENTS.path)) is None
    assert kept(store) == list(range(COMMITS))


def test_a_table_that_may_not_be_read_is_not_taken_for_damaged(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    for name in ("open", "read_bytes", "iterdir"):
        with monkeypatch.context() as patched:
            patched.setattr(Path, name, refused)
            (unknown,) = damages(str(store / ALERT_EVENTS.path), thorough=True)
            assert (unknown.lost, unknown.can_be_mended) == (UNKNOWN, False)
            assert error_of_damage(str(store / ALERT_EVENTS.path)) is None
            with pytest.raises(HeadroomError, match="Permission denied") as caught:
                mend(str(store / ALERT_EVENTS.path))
            assert caught.value.remedy == UNREADABLE_REMEDY


@pytest.mark.parametrize("harm", [lose_log, log_as_file, torn])
def test_files_made_by_a_repair_belong_to_the_owner_of_the_table(
    tmp_path: Path, harm: Callable[[Path], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / ACTION_JOURNAL.path
    append_durably(str(path), [journal_row(1)], ACTION_JOURNAL)
    harm(path / "_delta_log")
    before = {file.stat().st_ino for file in (tmp_path, *tmp_path.rglob("*"))}
    given = set()
    monkeypatch.setattr(os, "chown", lambda file, user, group: given.add(Path(file).stat().st_ino))
    mend(str(path))
    made = {file for file in tmp_path.rglob("*") if file.stat().st_ino not in before}
    assert made
    assert [file for file in made if file.stat().st_ino not in given] == []


def test_a_table_that_may_not_be_changed_is_an_error_with_a_remedy(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def move(*_: object) -> None:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(shutil, "move", move)
    newest_data(store).write_bytes(b"")
    with pytest.raises(HeadroomError, match="cannot be mended") as caught:
        mend(str(store / ALERT_EVENTS.path))
    assert "store.path" in caught.value.remedy
