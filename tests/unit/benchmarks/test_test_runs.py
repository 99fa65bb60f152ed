"""Figures of test runs come from the records of runs that count."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from benchmarks.groups.tests import group
from benchmarks.options.fields import NoOptions
from headroom.schemas.errors import HeadroomError

TIERS = ["lint", "types", "unit", "spark", "integration"]
MACHINE = {"seconds": 600.0, "cores": 2, "busy_cores": 1.9, "waiting_ratio": 0.6}


def run(date: str, **more: Any) -> dict[str, Any]:
    """Return the record of a run of ten minutes, two of them for each tier of tests, in which all passed."""
    steps = [{"name": name, "code": 0, "machine": MACHINE | {"seconds": 120.0}} for name in TIERS]
    for step in steps[2:]:
        step |= {"tests": 10, "failed": []}
    record = {"date": date, "commit": "abc", "fresh": False, "tiers": TIERS, "code": 0, "machine": MACHINE}
    return record | {"steps": steps, "beside": 0, "order": None} | more


def kept(folder: Path, *records: dict[str, Any]) -> None:
    for number, record in enumerate(records):
        (folder / f"{number}.json").write_text(json.dumps(record))


@pytest.fixture(autouse=True)
def records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setattr(group, "RECORDS", tmp_path / "runs")
    monkeypatch.setattr(group, "FOLDER", tmp_path / "parts")
    (tmp_path / "runs").mkdir()
    return tmp_path / "runs"


def chance_runs(*failing: dict[str, Any]) -> list[dict[str, Any]]:
    runs = [run(f"2026-01-02T0{n}:00:00Z", order=n, beside=n % 2) for n in range(6)]
    return [*runs[len(failing) :], *failing]


def figures() -> dict[str, float]:
    return {figure.name: figure.value for figure in group.measure(lambda text: None, NoOptions())}


def test_minutes_are_those_of_the_last_whole_run_that_passed_in_a_fresh_clone(records: Path) -> None:
    later = run("2026-01-01T02:00:00Z", fresh=True, machine=MACHINE | {"seconds": 900.0})
    others = [
        run("2026-01-01T03:00:00Z", fresh=True, code=1),
        run("2026-01-01T04:00:00Z", fresh=True, tiers=["unit"]),
        run("2026-01-01T05:00:00Z", fresh=True, beside=1),
        run("2026-01-01T06:00:00Z"),
    ]
    kept(records, run("2026-01-01T01:00:00Z", fresh=True), later, *others, *chance_runs())
    assert figures() == {
        "test_minutes_fresh": 15.0,
        "test_minutes_unit": 2.0,
        "test_minutes_spark": 2.0,
        "test_minutes_integration": 2.0,
        "test_red_by_chance": 0,
    }


def test_a_failed_test_and_a_tier_without_results_count_as_red(records: Path) -> None:
    red, crashed = run("2026-01-03T01:00:00Z", order=8, code=1), run("2026-01-03T02:00:00Z", order=9, code=1, beside=1)
    red["steps"][3] |= {"code": 1, "failed": [{"test": "a", "reason": "r"}, {"test": "b", "reason": "r"}]}
    crashed["steps"][4] |= {"code": 3, "tests": None}
    # pytest itself failed after a test did.
    crashed["steps"][2] |= {"code": 3, "failed": [{"test": "a", "reason": "r"}]}
    kept(records, run("2026-01-01T01:00:00Z", fresh=True), *chance_runs(red, crashed))
    assert figures()["test_red_by_chance"] == 5


def test_a_run_that_was_interrupted_counts_as_none(records: Path) -> None:
    cut = run("2026-01-03T01:00:00Z", order=8, code=130)
    cut["steps"] = cut["steps"][:3]
    cut["steps"][2] |= {"code": 130, "failed": []}
    kept(records, run("2026-01-01T01:00:00Z", fresh=True), *chance_runs(), cut)
    assert figures()["test_red_by_chance"] == 0


def test_too_few_runs_give_no_figure(records: Path) -> None:
    kept(records, run("2026-01-01T01:00:00Z", fresh=True), *chance_runs()[:5])
    printed: list[str] = []
    names = {figure.name for figure in group.measure(printed.append, NoOptions())}
    assert ("test_minutes_fresh" in names, "test_red_by_chance" in names) == (True, False)
    assert "5 runs in random order, 2 beside others. Run `make flaky` first" in printed[-1]


def test_runs_of_several_days_and_checkouts_are_added_up(records: Path) -> None:
    kept(records, run("2026-01-01T01:00:00Z", fresh=True), *chance_runs()[:3])
    figures()
    for file in records.iterdir():
        file.unlink()
    (records / "later.json").write_text(json.dumps(run("2026-01-03T01:00:00Z", fresh=True)))
    for number, record in enumerate(chance_runs()[3:]):
        (records / f"later{number}.json").write_text(json.dumps(record))
    assert figures()["test_red_by_chance"] == 0
    assert len(list(group.FOLDER.iterdir())) == 7


def test_without_a_run_in_a_fresh_clone_there_are_no_minutes(records: Path) -> None:
    kept(records, run("2026-01-01T01:00:00Z", code=1, fresh=True))
    with pytest.raises(HeadroomError, match="fresh clone"):
        figures()
