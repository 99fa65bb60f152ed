"""Figures of the group idle, and what is counted in a store."""

from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.groups.idle.group import UsageSample, figures
from benchmarks.groups.idle.usage import Usage, commits_by_table, files_by_place


def test_cores_are_means_from_the_start_and_of_the_second_half() -> None:
    samples = [
        UsageSample(0.0, {"alerts": Usage()}),
        UsageSample(100.0, {"alerts": Usage(30.0, 900, 700)}),
        UsageSample(200.0, {"alerts": Usage(35.0, 800, 600), "history_jvm": Usage(5.0, 50, 40)}),
    ]
    found = {figure.name: figure.value for figure in figures(samples, 12)}
    # 40 s in 200 s; 10 s in the last 100 s, 5 s of each role.
    assert found["watch_cores_idle"] == pytest.approx(0.2)
    assert found["watch_cores_idle_steady"] == pytest.approx(0.1)
    assert found["watch_cores_idle_alerts"] == found["watch_cores_idle_history_jvm"] == pytest.approx(0.05)
    # The greatest sum, 900 bytes after 100 s; shared pages divided, 600 + 40 at the end.
    assert (found["watch_memory_bytes_idle"], found["watch_memory_bytes_idle_shared"]) == (900, 640)
    assert found["watch_files_idle"] == 12


def test_files_and_commits_are_counted_by_table_and_checkpoint(tmp_path: Path) -> None:
    for name in (
        "gold/a/_delta_log/00000000000000000000.json",
        "gold/a/_delta_log/00000000000000000003.json",
        "gold/a/_delta_log/.00000000000000000003.json.crc",
        "gold/a/date=2027-01-15/part-0.parquet",
        "_checkpoints/gold/offsets/7",
        "_checkpoints/alerts.lock",
    ):
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).touch()
    assert files_by_place(tmp_path) == {"gold/a": 4, "_checkpoints/gold": 1, "_checkpoints": 1}
    assert commits_by_table(tmp_path) == {"gold/a": 3}
