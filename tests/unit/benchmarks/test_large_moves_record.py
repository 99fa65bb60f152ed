"""Records of scenes: which ones count, and the figures over them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.fixtures.part_records import PartRecords
from benchmarks.groups.large_moves.group import figures
from benchmarks.groups.large_moves.scenes.base import MoveScene
from benchmarks.groups.large_moves.scenes.near import NearThreshold
from benchmarks.results import code


def record(**changes: Any) -> dict[str, Any]:
    true = {"wrong": None, "doubled": False}
    scene = {
        "void": None,
        "alerts": [true, true, true | {"wrong": "nothing of the kind was wrong then", "doubled": True}],
        "causes": [{"required": True, "missing": False}, {"required": False, "missing": True}],
        "advice": [{"lines": [{"code": 0}, {"code": 1}], "resolves": True, "repaged": True, "lowered": ["x"]}],
        "checked_numbers": 4,
        "wrong_numbers": ["x"],
    }
    return scene | changes


def test_figures_are_over_the_scenes_that_count() -> None:
    found = {figure.name: (figure.value, figure.n) for figure in figures([record(), record(void="no alert came")])}
    assert found == {
        "alert_precision_large": (pytest.approx(2 / 3), 3),
        "alert_recall_large": (1.0, 1),
        "advice_runs_ratio": (0.5, 2),
        "advice_resolves_ratio": (1.0, 1),
        "alert_causes_doubled": (1, 1),
        "advice_repaged": (1, 1),
        "advice_lowered": (1, 1),
        "numbers_wrong": (1, 4),
        "nasty_scenes": (1, 2),
        "nasty_scenes_void": (1, 2),
    }


def test_a_counted_scene_is_recorded_and_a_void_one_runs_again(tmp_path: Path) -> None:
    records: PartRecords[MoveScene] = PartRecords(lambda scene: tmp_path)
    scene = NearThreshold.drawn(2)
    assert records.without_record([scene]) == [scene]
    path = tmp_path / "near-2.json"
    path.write_text(json.dumps(record(void="the lag did not grow")))
    assert records.without_record([scene]) == [scene]
    path.write_text(json.dumps(record()))
    assert records.without_record([scene]) == []
    assert records.read(scene) == record()
    assert records.read(NearThreshold.drawn(3)) is None


def test_the_name_of_the_code_is_the_same_until_it_changes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "alerts").mkdir()
    for name in ("ivy.xml", "requirements.lock", "alerts/engine.py"):
        (tmp_path / name).write_text("1")
    monkeypatch.setattr("benchmarks.results.CHECKOUT", tmp_path)
    before = code()
    (tmp_path / "README.md").write_text("more")
    assert code() == before
    (tmp_path / "alerts" / "engine.py").write_text("2")
    assert code() != before
