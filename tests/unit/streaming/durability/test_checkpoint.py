"""A checkpoint that a disk has damaged is moved aside whole, and one that is undamaged is left alone."""

from __future__ import annotations

import json
import logging
import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from deltalake import CommitProperties, DeltaTable, Transaction

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALERT_EVENTS, BRONZE_TICKS, Table
from headroom.streaming.delta import append as delta_append
from headroom.streaming.delta.damage import UNKNOWN
from headroom.streaming.durability import query_checkpoints
from headroom.streaming.durability.checkpoint import Checkpoint
from headroom.streaming.durability.query_checkpoints import CHECKPOINTS_OF_JOBS, query_checkpoint

ID = "0d6b0a1c-0000-4000-8000-000000000000"
FILES = ("metadata", "offsets/6", "offsets/7", "commits/6", "sources/0/0")


def cut(file: Path) -> None:
    content = file.read_bytes()
    file.write_bytes(content[: len(content) // 2])


def empty(file: Path) -> None:
    file.write_bytes(b"")


def zero(file: Path) -> None:
    file.write_bytes(bytes(file.stat().st_size))


def flip(file: Path) -> None:
    content = bytearray(file.read_bytes())
    at = content.index(b"{")
    content[at] ^= 0x40
    file.write_bytes(bytes(content))


def into_folder(file: Path) -> None:
    file.unlink()
    file.mkdir()


def checkpoint_at(path: Path, planned: int = 7, offset: object = None) -> Path:
    """A checkpoint as Spark writes it, with two batches, of which the last is planned and not written."""
    path.mkdir(parents=True)
    (path / "metadata").write_text(json.dumps({"id": ID}))
    for folder in ("offsets", "commits", "sources/0"):
        (path / folder).mkdir(parents=True)
    for batch in (planned - 1, planned):
        lines = ["v1", json.dumps({"batchWatermarkMs": 0}), json.dumps(offset or {"headroom.ticks": {"0": batch}})]
        (path / "offsets" / str(batch)).write_text("\n".join(lines))
    (path / "commits" / str(planned - 1)).write_text('v1\n{"nextBatchWatermarkMs":0}')
    (path / "sources" / "0" / "0").write_bytes(b'\0v1\n{"headroom.ticks":{"0":0}}')
    return path


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return checkpoint_at(tmp_path / "_checkpoints" / "gold")


def of(folder: Path) -> Checkpoint:
    return query_checkpoint(str(folder), lambda table: str(folder.parent.parent / table.path))


@pytest.mark.parametrize("name", FILES)
@pytest.mark.parametrize("harm", [cut, empty, zero, flip, into_folder])
def test_a_damaged_checkpoint_is_moved_aside_whole_and_reported_once(
    folder: Path, name: str, harm: Callable[[Path], None], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.ERROR)
    harm(folder / name)
    damage = of(folder).mend()
    assert damage is not None
    assert damage.file == name
    assert not folder.exists()
    (aside,) = (folder.parent / "_damaged").iterdir()
    assert aside.name.startswith("gold-")
    assert (aside / name).exists()
    (record,) = caplog.records
    assert "\n" not in record.getMessage()
    for part in ("checkpoint gold", name, damage.fault, str(aside), "lost: nothing that the topic still has"):
        assert part in record.getMessage()
    assert of(folder).mend() is None
    assert of(folder).is_new


@pytest.mark.parametrize("name", ["metadata", "offsets/6"])
def test_a_missing_file_that_spark_needs_is_damage(folder: Path, name: str) -> None:
    (folder / name).unlink()
    damage = of(folder).mend()
    assert damage is not None
    assert (damage.file, damage.fault) == (name, "is missing")


def test_a_batch_that_was_written_but_is_not_planned_any_more_is_damage(folder: Path) -> None:
    (folder / "commits" / "7").write_text('v1\n{"nextBatchWatermarkMs":0}')
    (folder / "offsets" / "7").unlink()
    damage = of(folder).damage()
    assert damage is not None
    assert damage.file == "offsets/7"


@pytest.mark.parametrize("name", ["offsets", "commits", "sources", "sources/0", "."])
def test_a_file_in_the_place_of_a_folder_is_damage(folder: Path, name: str) -> None:
    shutil.rmtree(folder / name)
    (folder / name if name != "." else folder).write_text("")
    assert of(folder).mend() is not None
    assert of(folder).is_new


def test_what_spark_can_continue_from_is_left_alone(folder: Path, tmp_path: Path) -> None:
    assert of(folder).mend() is None
    # The last batch was planned and not written, or not even planned.
    (folder / "commits" / "6").unlink()
    assert of(folder).mend() is None
    (folder / "offsets" / ".8.tmp").write_bytes(b"")
    assert of(folder).mend() is None
    new = tmp_path / "new"
    assert of(new).mend() is None
    new.mkdir()
    (new / "metadata").write_text(json.dumps({"id": ID}))
    assert of(new).mend() is None
    assert of(new).is_new
    assert not of(folder).is_new


def test_a_checkpoint_that_may_not_be_read_or_written_is_not_taken_for_damaged(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(*_: object, **__: object) -> None:
        raise PermissionError(13, "Permission denied")

    with monkeypatch.context() as patched:
        patched.setattr(Path, "read_bytes", refused)
        assert of(folder).mend() is None
        damage = of(folder).damage()
        assert damage is not None
        assert (damage.fault, damage.lost) == ("cannot be read (Permission denied)", UNKNOWN)
    with monkeypatch.context() as patched:
        patched.setattr(Path, "write_text", refused)
        with pytest.raises(HeadroomError, match="cannot be written"):
            of(folder).begin({})
    empty(folder / "metadata")
    with monkeypatch.context() as patched:
        patched.setattr(Path, "rename", refused)
        with pytest.raises(HeadroomError, match="cannot be moved away"):
            of(folder).mend()


def test_a_checkpoint_records_whether_its_tables_had_rows_before_it(folder: Path) -> None:
    assert of(folder).begun() is None
    of(folder).begin({"partitions": {"0": [5, 6]}})
    assert of(folder).begun() == {"partitions": {"0": [5, 6]}}
    assert of(folder).mend() is None
    empty(folder / "headroom_begun.json")
    assert of(folder).mend() is not None
    assert of(folder).begun() is None


def table_with(path: Path, table: Table, batches: dict[str, int]) -> None:
    """A table with the newest batch of some writers."""
    delta_append.create(str(path), table)
    for writer, batch in batches.items():
        once = CommitProperties(app_transactions=[Transaction(writer, batch)])
        opened = DeltaTable(str(path))
        opened.create_write_transaction([], "append", opened.schema(), list(table.partition_by), commit_properties=once)


@pytest.mark.parametrize(("batch", "damaged"), [(6, False), (7, False), (8, True)])
def test_a_checkpoint_that_is_older_than_the_events_would_let_new_ones_pass_for_stored(
    tmp_path: Path, batch: int, damaged: bool
) -> None:
    folder = checkpoint_at(tmp_path / "_checkpoints" / "alert_path")
    writer = f"{json.dumps({'id': ID})}/{ALERT_EVENTS.path}"
    table_with(tmp_path / ALERT_EVENTS.path, ALERT_EVENTS, {writer: batch})
    assert (of(folder).mend() is not None) is damaged


@pytest.mark.parametrize(
    ("batches", "damaged"), [({ID: 8}, True), ({ID: 7}, False), ({ID: 6}, False), ({ID: 5}, True), ({}, True)]
)
def test_bronze_and_its_checkpoint_have_the_same_batches(
    tmp_path: Path, batches: dict[str, int], damaged: bool
) -> None:
    folder = checkpoint_at(tmp_path / "_checkpoints" / "bronze")
    table_with(tmp_path / BRONZE_TICKS.path, BRONZE_TICKS, batches)
    assert (of(folder).mend() is not None) is damaged


@pytest.mark.parametrize(
    ("name", "lost"), [("alert_path", "alerts that still fire are announced again"), ("bronze", "it is read on")]
)
def test_a_removed_table_is_detected_by_its_checkpoint(tmp_path: Path, name: str, lost: str) -> None:
    folder = checkpoint_at(tmp_path / "_checkpoints" / name)
    damage = of(folder).mend()
    assert damage is not None
    assert "that is gone" in damage.fault
    assert lost in f"{damage.fault}; {damage.lost}"
    # Nothing was ever written.
    new = checkpoint_at(tmp_path / "_checkpoints" / name)
    for file in (new / "commits").iterdir():
        file.unlink()
    assert of(new).mend() is None


def test_silver_begins_again_when_bronze_is_another_table_or_has_lost_commits(tmp_path: Path) -> None:
    bronze = tmp_path / BRONZE_TICKS.path
    table_with(bronze, BRONZE_TICKS, {ID: 1})
    table_id = DeltaTable(str(bronze)).metadata().id
    cases = [(table_id, 2, False), (table_id, 1, False), (table_id, 3, True), ("other", 1, True)]
    for number, (reservoir, version, damaged) in enumerate(cases):
        offset = {"reservoirId": reservoir, "reservoirVersion": version, "index": -1}
        folder = checkpoint_at(tmp_path / f"{number}" / "_checkpoints" / "silver", offset=offset)
        checkpoint = query_checkpoint(str(folder), lambda table: str(tmp_path / table.path))
        assert (checkpoint.mend() is not None) is damaged


def test_a_table_that_cannot_be_read_contradicts_no_checkpoint(tmp_path: Path) -> None:
    folder = checkpoint_at(tmp_path / "_checkpoints" / "bronze")
    log = tmp_path / BRONZE_TICKS.path / "_delta_log"
    log.mkdir(parents=True)
    (log / f"{0:020d}.json").write_text("{")
    assert of(folder).mend() is None


def test_every_query_has_a_text_for_what_it_loses() -> None:
    names = {name for of_job in CHECKPOINTS_OF_JOBS.values() for name in of_job}
    assert names == set(query_checkpoints._LOST)


def test_checkpoints_at_urls_are_not_looked_at() -> None:
    checkpoint = query_checkpoint("s3a://bucket/_checkpoints/gold", lambda table: f"s3a://bucket/{table.path}")
    assert checkpoint.mend() is None
    assert not checkpoint.is_new
    assert checkpoint.begun() is None
