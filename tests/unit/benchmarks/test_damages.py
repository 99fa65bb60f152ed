"""Damages of the group damages: each is one that Headroom finds, and what counts as not repaired."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from deltalake import DeltaTable

from benchmarks.faults.store_files import (
    FILES,
    HARMS,
    DamagedPlace,
    PlannedDamage,
    do_damage,
    lock_owner,
    path_of,
    rows_by_file,
)
from benchmarks.groups.durability import damages as group
from benchmarks.groups.durability.damages import DamageRound, figures
from benchmarks.groups.durability.schedule import ROUNDS
from benchmarks.groups.durability.upgrades import write_row
from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ACTION_JOURNAL, ALERT_EVENTS, ALL_TABLES, LEADER_IMBALANCE
from headroom.streaming.delta.append import create
from headroom.streaming.delta.damage import damages
from headroom.streaming.durability.mend import mend
from headroom.streaming.durability.query_checkpoints import query_checkpoint
from tests.unit.streaming.durability.test_checkpoint import checkpoint_at

PLANNED = [damage for planned in ROUNDS for damage in planned]
OF_TABLES = [damage for damage in PLANNED if damage.place is DamagedPlace.TABLE]
OF_CHECKPOINTS = [damage for damage in PLANNED if damage.place is DamagedPlace.CHECKPOINT]
TABLES = {table.path: table for table in ALL_TABLES}
ROWS = 3


def written(store: Path, path: str) -> Path:
    """A table with three rows in as many commits, without a checkpoint of its log."""
    create(str(store / path), TABLES[path])
    for number in range(ROWS):
        write_row(store, TABLES[path], number)
    return store / path


@pytest.mark.parametrize("damage", OF_TABLES, ids=str)
def test_every_damage_of_a_table_is_found_and_repaired_and_loses_no_more_rows_than_counted(
    tmp_path: Path, damage: PlannedDamage
) -> None:
    location = written(tmp_path, damage.name)
    at_risk = do_damage(damage, path_of(damage, tmp_path, tmp_path / "_checkpoints"))
    assert damages(str(location), thorough=True) != []
    mend(str(location))
    assert group._faults_of_table(location, ROWS - at_risk) == []
    # The repair may save more, but what counts is at risk is not everything where one file is damaged.
    assert at_risk <= 1 or damage.file in ("folder", "_delta_log")


@pytest.mark.parametrize("damage", OF_CHECKPOINTS, ids=str)
def test_every_damage_of_a_checkpoint_is_found(tmp_path: Path, damage: PlannedDamage) -> None:
    folder = checkpoint_at(tmp_path / damage.name)
    assert do_damage(damage, path_of(damage, tmp_path, tmp_path)) == 0
    assert query_checkpoint(str(folder), lambda table: str(tmp_path / table.path)).damage() is not None


def test_there_are_thirty_damages_and_no_two_of_a_round_are_in_one_place() -> None:
    assert len(PLANNED) == 30
    assert all(len({(one.place, one.name) for one in planned}) == len(planned) for planned in ROUNDS)
    assert {one.harm for one in PLANNED} == HARMS.keys()
    assert {one.file for one in PLANNED} == FILES.keys()


def test_a_newest_commit_is_one_that_no_checkpoint_of_the_log_includes(tmp_path: Path) -> None:
    location = written(tmp_path, ALERT_EVENTS.path)
    DeltaTable(str(location)).create_checkpoint()
    do_damage(PlannedDamage(DamagedPlace.TABLE, ALERT_EVENTS.path, "newest commit", "emptied"), location)
    assert [damage.fault for damage in damages(str(location))] == ["is empty"]


@pytest.mark.parametrize(
    ("path", "file", "rows"),
    [
        (ACTION_JOURNAL.path, "data file", 1),
        (ACTION_JOURNAL.path, "newest commit", 1),
        (ACTION_JOURNAL.path, "checkpoint of the log", 0),
        # The rows of a table that promises rest on are read from its files; those of the history are not.
        (ACTION_JOURNAL.path, "_delta_log", 0),
        (LEADER_IMBALANCE.path, "_delta_log", ROWS),
        (ACTION_JOURNAL.path, "folder", ROWS),
    ],
)
def test_rows_at_risk_are_those_of_the_damaged_file(tmp_path: Path, path: str, file: str, rows: int) -> None:
    assert do_damage(PlannedDamage(DamagedPlace.TABLE, path, file, "removed"), written(tmp_path, path)) == rows


def test_a_table_with_fewer_rows_than_were_undamaged_is_not_repaired(tmp_path: Path) -> None:
    location = written(tmp_path, ACTION_JOURNAL.path)
    assert sum(rows_by_file(location).values()) == ROWS
    assert group._faults_of_table(location, ROWS + 1) == ["has 3 rows, and 4 were undamaged"]
    (location / "_delta_log" / f"{0:020d}.json").write_text("{")
    assert group._faults_of_table(location, 0)[0].startswith("cannot be read")


def test_damage_that_is_not_possible_ends_the_group(tmp_path: Path) -> None:
    with pytest.raises(HeadroomError, match="lock alerts: lock zeroed is not possible"):
        do_damage(PlannedDamage(DamagedPlace.LOCK, "alerts", "lock", "zeroed"), tmp_path / "alerts.lock")


def test_a_lock_names_its_process_or_nobody(tmp_path: Path) -> None:
    lock = tmp_path / "alerts.lock"
    assert lock_owner(lock) is None
    lock.write_text('{"pid": 7}')
    assert lock_owner(lock) == 7
    for text in ("", "\0\0", "[]", '{"pid": "7"}', "{}"):
        lock.write_text(text)
        assert lock_owner(lock) is None


def named() -> Iterator[tuple[PlannedDamage, str, bool]]:
    table, checkpoint, lock = OF_TABLES[0], OF_CHECKPOINTS[0], ROUNDS[0][-1]
    yield table, f"table {table.name} is damaged", True
    yield table, "table alerts/deliveries is damaged", False
    yield checkpoint, f"checkpoint {checkpoint.name} was damaged", True
    yield checkpoint, f'[{{"table": "_checkpoints/{checkpoint.name}"}}]', True
    yield checkpoint, "", False
    yield lock, f"_checkpoints/{lock.name}.lock is a folder", True
    yield lock, lock.name, False


@pytest.mark.parametrize(("damage", "text", "is_named"), list(named()))
def test_damage_is_silent_unless_the_log_or_the_repair_names_it(
    damage: PlannedDamage, text: str, is_named: bool
) -> None:
    assert group._is_named(damage, text) is is_named


def test_a_fault_counts_once_per_damage_and_a_round_without_an_alert_counts_whole() -> None:
    first = DamageRound({damage: [] for damage in ROUNDS[0]})
    group._note(first, ROUNDS[0][0].name, "still damaged")
    group._note(first, ROUNDS[0][0].name, "not repaired")
    group._note(first, "gold/other", "still damaged")
    second = DamageRound({damage: [] for damage in ROUNDS[1]})
    second.all_failed("no alert")
    # One of the first round, a table that was not damaged, and the six of the second.
    failed, count = figures([first, second])
    assert (failed.name, failed.value, failed.n, count.value) == ("damage_not_repaired", 8, 12, 12)
