"""Tables that a disk has damaged: found with the file and what is lost, and mended with nothing else lost."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headroom.schemas.alerts import AlertEvent
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.damage import damages
from headroom.streaming.delta.query import rows
from headroom.streaming.durability.mend import mend

ROWS, COMMITS = 3, 5


def event(number: int) -> AlertEvent:
    return AlertEvent(
        f"id-{number}", "no_data", "critical", "firing", "orders", "ticks", "…", "{}", "{}", number, number
    )


@pytest.fixture
def table(tmp_path: Path) -> Path:
    """A table of five commits of three rows each."""
    path = tmp_path / "store" / "alerts" / "events"
    delta_append.create(str(path), ALERT_EVENTS)
    for commit in range(COMMITS):
        append(path, commit)
    return path


def append(path: Path, commit: int) -> None:
    records = [event(ROWS * commit + n) for n in range(ROWS)]
    delta_append.append(DeltaTable(str(path)), records, ALERT_EVENTS)


def commit_file(path: Path, version: int) -> Path:
    return path / "_delta_log" / f"{version:020d}.json"


def cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) * 2 // 3])


def numbers(path: Path) -> list[int]:
    found = rows({"data": str(path)}, "SELECT tick_ms FROM data ORDER BY tick_ms")
    return [row["tick_ms"] for row in found]


def of_commits(*commits: int) -> list[int]:
    return [ROWS * commit + n for commit in commits for n in range(ROWS)]


def data_file(path: Path, commit: int) -> Path:
    (added,) = [json.loads(line)["add"] for line in commit_file(path, commit + 1).open() if '"add"' in line]
    return path / str(added["path"])


def test_a_table_that_is_whole_or_not_there_has_no_damage(table: Path, tmp_path: Path) -> None:
    assert damages(str(table)) == damages(str(tmp_path / "none")) == mend(str(table)) == []
    assert numbers(table) == of_commits(*range(COMMITS))


@pytest.mark.parametrize(
    ("harm", "fault"),
    [
        (Path.unlink, "is missing"),
        (cut, "has "),
        (lambda file: file.write_bytes(bytes(file.stat().st_size)), "is no Parquet file"),
    ],
)
def test_a_damaged_data_file_loses_only_its_own_rows(table: Path, harm: Callable[[Path], None], fault: str) -> None:
    file = data_file(table, 2)
    harm(file)
    (found,) = damages(str(table))
    assert (found.file, found.lost) == (file.name, "3 rows")
    assert found.fault.startswith(fault)
    assert mend(str(table)) == [found]
    assert damages(str(table)) == []
    assert numbers(table) == of_commits(0, 1, 3, 4)


@pytest.mark.parametrize("version", [3, COMMITS])
@pytest.mark.parametrize("harm", [cut, lambda file: file.write_bytes(bytes(400)), Path.unlink])
def test_a_damaged_commit_loses_only_its_own_rows(table: Path, version: int, harm: Callable[[Path], None]) -> None:
    harm(commit_file(table, version))
    if version == COMMITS and not commit_file(table, version).exists():
        # As if it had never been made.
        assert damages(str(table)) == []
        return
    (found,) = damages(str(table))
    assert found.file == f"_delta_log/{version:020d}.json"
    mend(str(table))
    assert numbers(table) == of_commits(*(c for c in range(COMMITS) if c != version - 1))
    append(table, COMMITS)
    assert numbers(table)[-ROWS:] == of_commits(COMMITS)


def test_a_damaged_file_is_moved_aside_unchanged(table: Path) -> None:
    file = commit_file(table, 3)
    cut(file)
    before = file.read_bytes()
    mend(str(table))
    aside = table.parent / "_damaged" / table.name / "_delta_log" / file.name
    assert aside.read_bytes() == before


def test_which_batches_a_damaged_commit_has_is_still_known(table: Path) -> None:
    file = commit_file(table, 4)
    lines = file.read_text().splitlines()
    txn = '{"txn":{"appId":"stream","version":7}}'
    file.write_text("\n".join([txn, *lines])[:-40])
    mend(str(table))
    assert DeltaTable(str(table)).transaction_version("stream") == 7


def test_half_of_a_compaction_neither_doubles_nor_loses_rows(table: Path) -> None:
    DeltaTable(str(table)).optimize.compact()
    file = commit_file(table, COMMITS + 1)
    lines = file.read_text().splitlines()
    adds = [line for line in lines if '"add"' in line]
    assert adds
    assert all('"dataChange":false' in line for line in lines if '"add"' in line or '"remove"' in line)
    for half in ([*adds, '{"remove":{"pa'], [line for line in lines if '"remove"' in line] + ['{"add":{"pa']):
        file.write_text("\n".join(half))
        mend(str(table))
        assert numbers(table) == of_commits(*range(COMMITS))


@pytest.mark.parametrize("lines_left", [1, 2, 3, 5])
def test_a_compaction_that_is_cut_between_two_lines_is_found_and_loses_no_row(table: Path, lines_left: int) -> None:
    DeltaTable(str(table)).optimize.compact()
    file = commit_file(table, COMMITS + 1)
    lines = file.read_text().splitlines()
    assert lines_left < len(lines)
    file.write_text("\n".join(lines[:lines_left]))
    (found,) = damages(str(table))
    assert "is cut off: it has 0 of 1 files added" in found.fault
    mend(str(table))
    assert numbers(table) == of_commits(*range(COMMITS))
    assert damages(str(table)) == []


def test_a_commit_that_is_cut_after_its_first_line_is_found(table: Path) -> None:
    file = commit_file(table, 3)
    file.write_text(file.read_text().splitlines()[0])
    (found,) = damages(str(table))
    assert found.fault == "is cut off: it has 0 of 1 files added"
    mend(str(table))
    assert numbers(table) == of_commits(0, 1, 3, 4)
    assert damages(str(table)) == []


@pytest.mark.parametrize(("rows_written", "fault"), [("3", None), ("4", "is cut off: it has 3 of 4 rows added")])
def test_an_append_of_spark_is_compared_by_its_rows(table: Path, rows_written: str, fault: str | None) -> None:
    # Spark counts files without rows, which it leaves out, and writes counts as text.
    file = commit_file(table, 3)
    info, *rest = file.read_text().splitlines()
    metrics = {"numFiles": "2", "numOutputRows": rows_written, "numOutputBytes": "4537"}
    info = json.dumps({"commitInfo": json.loads(info)["commitInfo"] | {"operationMetrics": metrics}})
    file.write_text("\n".join([info, *rest]))
    assert [damage.fault for damage in damages(str(table))] == ([fault] if fault else [])


@pytest.mark.parametrize(("left", "what"), [(1, "the protocol"), (2, "the columns")])
def test_a_first_commit_without_columns_is_found_and_loses_no_row(table: Path, left: int, what: str) -> None:
    file = commit_file(table, 0)
    file.write_text("\n".join(file.read_text().splitlines()[:left]))
    (found,) = damages(str(table))
    assert what in found.fault
    mend(str(table))
    assert numbers(table) == of_commits(*range(COMMITS))
    assert damages(str(table)) == []


def test_a_damaged_checkpoint_is_not_needed_while_its_commits_are_there(table: Path) -> None:
    DeltaTable(str(table)).create_checkpoint()
    append(table, COMMITS)
    (checkpoint,) = (table / "_delta_log").glob("*.checkpoint.parquet")
    cut(checkpoint)
    assert {damage.file.split("/")[1] for damage in damages(str(table))} == {checkpoint.name, "_last_checkpoint"}
    mend(str(table))
    assert numbers(table) == of_commits(*range(COMMITS + 1))


def test_a_damaged_commit_that_a_checkpoint_includes_is_no_damage(table: Path) -> None:
    DeltaTable(str(table)).create_checkpoint()
    cut(commit_file(table, 2))
    assert damages(str(table)) == []
    assert numbers(table) == of_commits(*range(COMMITS))


def test_several_files_are_mended_at_once(table: Path) -> None:
    data_file(table, 0).unlink()
    cut(data_file(table, 1))
    cut(commit_file(table, 4))
    assert [damage.file for damage in damages(str(table))] == [f"_delta_log/{4:020d}.json"]
    assert len(mend(str(table))) == 3
    assert numbers(table) == of_commits(2, 4)


def test_another_table_without_its_first_commit_cannot_be_mended_and_is_left_as_it_is(table: Path) -> None:
    table = table.rename(table.with_name("of_another_program"))
    commit_file(table, 0).write_text('{"protocol":{"minReaderVersion"')
    before = sorted(table.rglob("*"))
    with pytest.raises(HeadroomError, match="cannot be mended") as caught:
        mend(str(table))
    assert str(table) in caught.value.remedy
    assert sorted(table.rglob("*")) == before


def test_a_log_without_commits_is_damaged(table: Path) -> None:
    for file in (table / "_delta_log").glob("*.json"):
        file.unlink()
    assert [damage.file for damage in damages(str(table))] == ["_delta_log"]
    (table / "_delta_log" / "_last_checkpoint").write_text('{"version": 3}')
    assert any(damage.whole for damage in damages(str(table)))
    mend(str(table))
    assert numbers(table) == of_commits(*range(COMMITS))
    another = table.rename(table.with_name("of_another_program"))
    for file in (another / "_delta_log").glob("*.json"):
        file.unlink()
    assert damages(str(another)) == []
    (another / "_delta_log" / "_last_checkpoint").write_text('{"version": 3}')
    assert not all(damage.can_be_mended for damage in damages(str(another)))


def test_tables_of_other_formats_at_the_place_are_not_touched(tmp_path: Path) -> None:
    folder = tmp_path / "photos"
    folder.mkdir()
    (folder / "one.json").write_text("{")
    assert damages(str(folder)) == mend(str(folder)) == []
    shutil.rmtree(folder)
