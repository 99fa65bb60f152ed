"""Figures of the group cuts: what counts as lost, and that a disk that cannot be cut is an error."""

from __future__ import annotations

import errno
from pathlib import Path

import pytest

from benchmarks.faults import disks
from benchmarks.faults.disks import CutDisk
from benchmarks.groups.durability.power_cuts import Announced, CutOutcome, Stored, figures, lost_announcements
from headroom.schemas.errors import HeadroomError

ANNOUNCED = Announced({"a", "b"}, {"a"}, {0: 4, 1: 5})


@pytest.mark.parametrize(
    ("stored", "lost"),
    [
        (Stored({"a", "b", "c"}, {"a"}, {0: "[4]", 1: "[5]", 2: "[4]"}), set()),
        (Stored({"a"}, {"a"}, {0: "[4]", 1: "[5]"}), {"event b"}),
        (Stored({"a", "b"}, set(), {0: "[4]", 1: "[5]"}), {"delivery of a"}),
        # The newest submission of partition 1 is the one before, to the other broker.
        (Stored({"a", "b"}, {"a"}, {0: "[4]", 1: "[4]"}), {"move of runs-1 to broker 5"}),
        (Stored({"a", "b"}, {"a"}, {0: "[4]"}), {"move of runs-1 to broker 5"}),
        (
            Stored(None, None, None),
            {"event a", "event b", "delivery of a", "move of runs-0 to broker 4", "move of runs-1 to broker 5"},
        ),
    ],
)
def test_announced_changes_that_are_not_stored_count_as_lost(stored: Stored, lost: set[str]) -> None:
    assert lost_announcements(ANNOUNCED, stored) == lost


def test_the_number_of_announcements_and_of_cuts_is_beside_the_figures() -> None:
    outcome = CutOutcome({"0: event a"}, announcements=40, not_started=1, cuts=20, emptied=7)
    found = {figure.name: (figure.value, figure.n) for figure in figures(outcome)}
    assert found["power_cut_lost_durable"] == (1, 40)
    assert found["power_cut_not_started"] == (1, 20)
    assert found["power_cut_emptied_files"] == (7, 20)


def test_a_machine_that_may_not_mount_ends_the_group_with_the_reason(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("mkfs.ext4", "mount"):
        (tmp_path / name).write_text("#!/bin/sh\necho only root can do that >&2\nexit 32\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")
    disk = CutDisk(tmp_path)
    with pytest.raises(HeadroomError, match="needs root, and the right to mount: only root can do that"):
        disk.make()
    disk.close()
    assert not (tmp_path / "disk.img").exists()


def test_only_the_disk_of_the_group_is_ever_cut(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ioctl(*_: object) -> None:
        raise OSError(errno.ENOTTY, "not supported")

    # Never the real one: this folder is on the disk of the machine.
    monkeypatch.setattr(disks.fcntl, "ioctl", ioctl)
    (tmp_path / "disk").mkdir()
    with pytest.raises(HeadroomError, match="is not mounted"):
        CutDisk(tmp_path).cut()
    monkeypatch.setattr(disks.os.path, "ismount", lambda path: True)
    with pytest.raises(HeadroomError, match=r"cannot be cut here \(not supported\): needs root"):
        CutDisk(tmp_path).cut()


def test_the_file_that_was_not_synced_decides_whether_a_cut_was_one(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir()
    disk = CutDisk(tmp_path)
    disk.write_control()
    assert not disk.lost_control()
    assert disk.lost_control()
    disk.write_control()
    (tmp_path / "disk" / "unsynced").write_text("")
    assert disk.lost_control()


def test_empty_files_of_tables_are_counted_and_locks_are_not(tmp_path: Path) -> None:
    disk = CutDisk(tmp_path)
    (disk.store / "_checkpoints").mkdir(parents=True)
    for name in ("_checkpoints/alerts.lock", "a.json", "_checkpoints/7"):
        (disk.store / name).touch()
    (disk.store / "b.json").write_text("{}")
    assert disk.emptied_files() == 2
