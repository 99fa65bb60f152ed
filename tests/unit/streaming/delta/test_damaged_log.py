"""Logs of tables in which a disk has changed something: nothing of it changes the rows without an error."""

from __future__ import annotations

import json
import os
import random
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import DeltaTable

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS, LEADER_IMBALANCE
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.damage import damages
from headroom.streaming.delta.query_table import query
from headroom.streaming.durability.mend import mend
from tests.unit.streaming.delta.test_damage import COMMITS, append, commit_file, data_file, numbers, of_commits, table

__all__ = ["table"]

_FLIPS = 60


def set_in_commit(file: Path, change: Callable[[dict[str, object]], object]) -> None:
    """Change each action of a commit in place, or replace it by what the function returns."""
    lines = [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]
    changed = [change(line) or line for line in lines]
    file.write_text("".join(f"{json.dumps(line)}\n" for line in changed), encoding="utf-8")


def rows_of(table: Path) -> list[dict[str, object]] | None:
    return query(str(table.parent.parent), ALERT_EVENTS.path, "SELECT * FROM data ORDER BY tick_ms")


@pytest.mark.parametrize("version", [0, 2])
def test_no_wrong_bit_in_a_commit_changes_rows_without_an_error(table: Path, version: int, tmp_path: Path) -> None:
    file, true_rows = commit_file(table, version), rows_of(table)
    assert true_rows is not None
    content = file.read_bytes()
    # Statistics decide which files a query skips, and no other file has their numbers.
    bits = [bit for bit in range(len(content) * 8) if not _is_in_statistics(content, bit // 8)]
    for bit in random.Random(version).sample(bits, _FLIPS):
        changed = bytearray(content)
        changed[bit // 8] ^= 1 << bit % 8
        file.write_bytes(bytes(changed))
        context = bytes(changed[max(0, bit // 8 - 30) : bit // 8 + 30])
        if damages(str(table)):
            damaged = tmp_path / "mended" / "alerts" / "events"
            shutil.copytree(table, damaged)
            mended = {damage.fault for damage in mend(str(damaged))}
            left = rows_of(damaged) or []
            assert all(row in true_rows for row in left), (context, mended)
            assert len(true_rows) - len(left) <= (0 if version == 0 else 3), (context, mended)
            shutil.rmtree(tmp_path / "mended")
        else:
            assert rows_of(table) == true_rows, context


def _is_in_statistics(content: bytes, at: int) -> bool:
    begin = content.find(b'"stats":')
    return 0 <= begin <= at < content.index(b'"tags":', begin)


@pytest.mark.parametrize(
    "content",
    [b"{}", b'{"a":1}', b'{"add":null}', b'{"add":{}}', b'{"aed":{"path":"a"}}', b"[]", b"3", b'{"add":{},"txn":{}}'],
)
def test_a_line_that_is_no_action_is_damage(table: Path, content: bytes) -> None:
    commit_file(table, 2).write_bytes(content + b"\n")
    (found,) = damages(str(table))
    assert found.file == f"_delta_log/{2:020d}.json"
    with pytest.raises(HeadroomError, match=r"is damaged.* has |is damaged.* is cut off"):
        rows_of(table)
    mend(str(table))
    assert numbers(table) == of_commits(0, 2, 3, 4)


@pytest.mark.parametrize("stats", ["{", "[]", "3"])
def test_statistics_that_are_no_object_are_damage(table: Path, stats: str) -> None:
    def change(line: dict[str, object]) -> None:
        if isinstance(added := line.get("add"), dict):
            added["stats"] = stats

    set_in_commit(commit_file(table, 2), change)
    assert "without what it needs" in damages(str(table))[0].fault
    mend(str(table))
    assert numbers(table) == of_commits(0, 2, 3, 4)


@pytest.mark.parametrize(
    ("old", "new", "fault"),
    [
        ('\\"name\\":\\"alert_id\\"', '\\"name\\":\\"alert_ie\\"', "alert_id is missing"),
        ('\\"name\\":\\"summary\\"', '\\"name\\":\\"summarx\\"', "summarx is none of them, but summary is"),
        ('\\"tick_ms\\",\\"type\\":\\"long\\"', '\\"tick_ms\\",\\"type\\":\\"string\\"', "tick_ms has another type"),
        ('\\"type\\":\\"struct\\"', '\\"type\\":\\"strucu\\"', "without what it needs"),
    ],
)
def test_columns_that_the_table_never_had_are_damage_and_come_back(table: Path, old: str, new: str, fault: str) -> None:
    true_rows, file = rows_of(table), commit_file(table, 0)
    before = file.read_text(encoding="utf-8")
    assert old in before
    head, _, columns = before.partition('{"metaData"')
    file.write_text(f'{head}{{"metaData"{columns.replace(old, new, 1)}', encoding="utf-8")
    (found,) = damages(str(table))
    assert fault in found.fault
    assert mend(str(table)) == [found]
    assert rows_of(table) == true_rows


def test_columns_of_another_version_are_no_damage(tmp_path: Path) -> None:
    path = tmp_path / LEADER_IMBALANCE.path
    delta_append.create(str(path), LEADER_IMBALANCE)

    def without(kept: Callable[[int], bool], extra: int = 0) -> None:
        def change(line: dict[str, object]) -> None:
            if isinstance(metadata := line.get("metaData"), dict):
                schema = json.loads(metadata["schemaString"])
                new = [{**schema["fields"][-1], "name": f"new_{n}"} for n in range(extra)]
                schema["fields"] = [f for n, f in enumerate(schema["fields"]) if kept(n)] + new
                metadata["schemaString"] = json.dumps(schema)

        set_in_commit(commit_file(path, 0), change)

    without(lambda _: True, extra=2)
    assert damages(str(path)) == []
    delta_append.create(str(path), LEADER_IMBALANCE) if not path.exists() else None
    shutil.rmtree(path)
    delta_append.create(str(path), LEADER_IMBALANCE)
    last = len(LEADER_IMBALANCE.columns) - 1
    without(lambda n: n != last)
    assert damages(str(path)) == []


def test_a_table_of_a_newer_delta_is_not_moved_away(table: Path) -> None:
    def change(line: dict[str, object]) -> None:
        if isinstance(protocol := line.get("protocol"), dict):
            protocol["minReaderVersion"] = 99

    set_in_commit(commit_file(table, 0), change)
    (found,) = damages(str(table))
    assert "needs reader version 99 of Delta: a newer program has written it" in found.fault
    assert not found.can_be_mended


def loop(file: Path) -> None:
    """Let a file be one that no program can read."""
    file.unlink()
    file.symlink_to(file)


def dangle(file: Path) -> None:
    file.unlink()
    file.symlink_to(file.with_name("gone"))


@pytest.mark.parametrize("harm", [loop, dangle])
def test_a_commit_that_the_disk_cannot_read_is_damage(table: Path, harm: Callable[[Path], None]) -> None:
    harm(commit_file(table, 2))
    with pytest.raises(HeadroomError, match="cannot be read"):
        rows_of(table)
    mend(str(table))
    assert numbers(table) == of_commits(0, 2, 3, 4)


@pytest.mark.parametrize("harm", [loop, dangle])
def test_a_data_file_that_the_disk_cannot_read_costs_its_rows(table: Path, harm: Callable[[Path], None]) -> None:
    harm(data_file(table, 1))
    assert [damage.lost for damage in mend(str(table))] == ["3 rows"]
    assert numbers(table) == of_commits(0, 2, 3, 4)


@pytest.mark.parametrize("hint", ['{"version":[1]}', '{"version":{}}', '{"version":true}', "3", None])
def test_a_hint_that_names_no_checkpoint_is_damage(table: Path, hint: str | None) -> None:
    file = table / "_delta_log" / "_last_checkpoint"
    if hint is None:
        file.symlink_to(file)
    else:
        file.write_text(hint, encoding="utf-8")
    assert [damage.file for damage in mend(str(table))] == ["_delta_log/_last_checkpoint"]
    assert numbers(table) == of_commits(*range(COMMITS))


def test_a_stray_file_far_behind_the_last_commit_is_moved_aside_alone(table: Path) -> None:
    stray = commit_file(table, 100_000)
    stray.write_bytes(commit_file(table, 1).read_bytes())
    (found,) = damages(str(table))
    assert f"does not follow {COMMITS}, the commit before it" in found.fault
    assert mend(str(table)) == [found]
    assert sorted(file.name for file in stray.parent.iterdir()) == [
        commit_file(table, version).name for version in range(COMMITS + 1)
    ]
    append(table, COMMITS)
    assert numbers(table) == of_commits(*range(COMMITS + 1))


def test_a_file_in_the_place_of_a_layer_is_moved_aside(table: Path) -> None:
    layer = table.parent
    shutil.rmtree(layer)
    layer.write_text("lost+found", encoding="utf-8")
    with pytest.raises(HeadroomError, match=r"alerts.* is a file, and must be a folder"):
        rows_of(table)
    mend(str(table))
    assert rows_of(table) == []
    assert (layer.parent / "_damaged" / "alerts").read_text(encoding="utf-8") == "lost+found"


def test_a_store_in_the_working_directory_is_checked_alike(table: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(table.parent.parent)
    shutil.rmtree(table / "_delta_log")
    assert [damage.file for damage in damages("alerts/events")] == ["_delta_log"]
    assert [damage.file for damage in damages(f".{os.sep}alerts/events")] == ["_delta_log"]
    mend("alerts/events")
    assert DeltaTable(str(table)).version() > 0
    assert numbers(table) == of_commits(*range(COMMITS))
