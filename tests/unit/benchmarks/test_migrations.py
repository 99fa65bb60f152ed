"""The benchmark of migrations: what it counts, its faults, and the notes of its clients."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from random import Random

import pytest

from benchmarks.fixtures.migrations.numbered import (
    NUMBERS_OF_A_LIFE,
    AcknowledgedRecord,
    Notes,
    ReadRecord,
    acknowledged_in,
    acknowledged_line,
    failed_line,
    read_in,
    read_line,
    value_of,
    writer_and_number,
)
from benchmarks.groups.migrations.record import MigrationRecord, SceneRecord, migration_figures, scene_figures
from benchmarks.groups.migrations.schedule import FaultKind, faults_of
from benchmarks.groups.migrations.tally import Tally, tally


def acknowledged(*numbers: int, writer: str = "a", partition: int = 0) -> list[AcknowledgedRecord]:
    """Records whose numbers are their client offsets."""
    return [AcknowledgedRecord(partition, writer, number, number) for number in numbers]


def read(*numbers: int, writer: str = "a", partition: int = 0) -> list[ReadRecord]:
    return [ReadRecord(partition, writer, number, number) for number in numbers]


def counts(found: Tally) -> tuple[int, int, int, int]:
    return found.lost, found.doubled, found.out_of_order, found.elsewhere


def test_records_that_are_read_once_and_in_order_are_well() -> None:
    assert tally(acknowledged(1, 2, 3), read(1, 2, 3)) == Tally(3, 0, 0, 0, 0, 0, 0)
    # In which order acknowledgements come does not matter.
    assert counts(tally(acknowledged(3, 1, 2), read(1, 2, 3))) == (0, 0, 0, 0)
    assert tally([], []) == Tally(0, 0, 0, 0, 0, 0, 0)


def test_an_acknowledged_record_that_is_not_read_is_lost() -> None:
    assert counts(tally(acknowledged(1, 2, 3), read(1, 3))) == (1, 0, 0, 0)
    assert tally(acknowledged(1, 2, 3), []).lost == 3


@pytest.mark.parametrize("elsewhere", [{"writer": "b"}, {"partition": 1}])
def test_the_same_number_of_another_writer_or_partition_is_another_record(elsewhere: dict[str, str | int]) -> None:
    own = read(7, **elsewhere)  # type: ignore[arg-type]
    found = tally(acknowledged(7), own)
    assert (found.lost, found.unknown, found.doubled) == (1, 1, 0)
    assert counts(tally(acknowledged(7), read(7) + own)) == (0, 0, 0, 0)


def test_each_further_reading_of_a_record_counts_as_doubled() -> None:
    assert counts(tally(acknowledged(1, 2), read(1, 1, 2, 1))) == (0, 2, 0, 0)


def test_a_record_behind_a_later_one_is_out_of_order() -> None:
    assert counts(tally(acknowledged(1, 2, 3), read(2, 1, 3))) == (0, 0, 1, 0)
    assert counts(tally(acknowledged(1, 2, 3), read(3, 1, 2))) == (0, 0, 2, 0)
    # Of two writers none is before the other.
    both = acknowledged(5, 6) + acknowledged(1, 2, writer="b")
    assert counts(tally(both, read(5) + read(1, 2, writer="b") + read(6))) == (0, 0, 0, 0)


def test_the_order_holds_over_restarts_of_a_writer() -> None:
    later = NUMBERS_OF_A_LIFE + 1
    assert counts(tally(acknowledged(8, later), read(8, later))) == (0, 0, 0, 0)
    assert counts(tally(acknowledged(8, later), read(later, 8))) == (0, 0, 1, 0)


def test_what_was_not_acknowledged_is_neither_lost_nor_doubled_nor_out_of_order() -> None:
    found = tally(acknowledged(1, 3), read(1, 2, 3, 2))
    assert counts(found) == (0, 0, 0, 0)
    assert (found.acknowledged, found.unknown, found.unknown_doubled) == (2, 1, 1)


def test_a_record_at_another_client_offset_counts() -> None:
    assert counts(tally(acknowledged(1, 2), [ReadRecord(0, "a", 1, 1), ReadRecord(0, "a", 2, 5)])) == (0, 0, 0, 1)


@pytest.mark.parametrize("seed", range(20))
def test_each_damage_is_counted_as_often_as_it_was_done(seed: int) -> None:
    chance = Random(seed)
    sent = [one for writer in "ab" for p in range(3) for one in acknowledged(*range(50), writer=writer, partition=p)]
    found = [ReadRecord(*one) for one in sent]
    lost = set(chance.sample(range(len(found)), 5))
    found = [one for index, one in enumerate(found) if index not in lost]
    doubled = chance.choices(found, k=4)
    found += doubled
    assert counts(tally(sent, found)) == (5, 4, 0, 0)


def test_values_and_notes_come_back(tmp_path: Path) -> None:
    value = value_of("shop-1", 3 * NUMBERS_OF_A_LIFE + 17)
    assert len(value) == 150
    assert writer_and_number(value) == ("shop-1", 3 * NUMBERS_OF_A_LIFE + 17)
    file = tmp_path / "writer.notes"
    Notes(file).add([acknowledged_line(2, 17, 900), failed_line(1, 18)])
    # Another life.
    Notes(file).add([acknowledged_line(0, NUMBERS_OF_A_LIFE, 901)])
    assert acknowledged_in(file, "w") == (
        [AcknowledgedRecord(2, "w", 17, 900), AcknowledgedRecord(0, "w", NUMBERS_OF_A_LIFE, 901)],
        1,
    )
    Notes(tmp_path / "reader.notes").add([read_line(2, 900, value)])
    assert read_in(tmp_path / "reader.notes") == [ReadRecord(2, "shop-1", 3 * NUMBERS_OF_A_LIFE + 17, 900)]
    assert read_in(tmp_path / "none") == []


def test_a_line_that_a_kill_has_cut_is_left_out(tmp_path: Path) -> None:
    file = tmp_path / "notes"
    file.write_text("0 1 1\n0 2 2\n0 3")
    assert acknowledged_in(file, "w")[0] == [AcknowledgedRecord(0, "w", 1, 1), AcknowledgedRecord(0, "w", 2, 2)]


def test_each_migration_has_its_own_faults_and_the_same_ones_again() -> None:
    assert faults_of(3) == faults_of(3)
    assert len({tuple(faults_of(number)) for number in range(20)}) == 20
    kinds = Counter(fault.kind for number in range(20) for fault in faults_of(number))
    assert kinds == {
        FaultKind.LEADER_SWITCH: 20,
        FaultKind.KILL_ON_ORIGIN: 20,
        FaultKind.KILL_ON_TARGET: 20,
        FaultKind.KILL_RUN: 20,
        FaultKind.KILL_WRITER: 14,
        FaultKind.KILL_READER: 6,
    }


def test_figures_add_up_what_migrations_have_recorded() -> None:
    records = [
        MigrationRecord(0, acknowledged=100, lost=1, skipped=2),
        MigrationRecord(1, failed="a broker died", acknowledged=50, doubled=3, out_of_order=4, elsewhere=5),
    ]
    found = {figure.name: (figure.value, figure.n) for figure in migration_figures(records)}
    assert found["migration_records"] == (150, 2)
    assert found["migration_failed"] == (1, 2)
    assert {name: found[f"migration_{name}"][0] for name in ("lost", "skipped", "doubled", "out_of_order")} == {
        "lost": 1,
        "skipped": 2,
        "doubled": 3,
        "out_of_order": 4,
    }
    assert found["migration_other_offset"] == (5, 150)


def test_an_error_of_what_is_reported_counts_whatever_its_direction() -> None:
    records = [
        SceneRecord(0, acknowledged=10, lost=4, reported=4),
        SceneRecord(1, acknowledged=10, lost=4, reported=6),
        SceneRecord(2, acknowledged=10, lost=4, reported=None),
        SceneRecord(3, acknowledged=10, lost=0, reported=1, acknowledged_all=7, lost_all=2),
        SceneRecord(4, failed="no leader", lost=9),
    ]
    found = {figure.name: (figure.value, figure.n) for figure in scene_figures(records)}
    assert found["acks1_lost_told_error_offsets"] == (2 + 4 + 1, 4)
    assert found["acks1_scenes_with_losses"] == (3, 4)
    assert found["acks1_lost"] == (12, 40)
    assert found["acks1_lost_unknown"] == (1, 4)
    assert found["acks_all_lost"] == (2, 7)
    assert found["acks_scenes_failed"] == (1, 5)
