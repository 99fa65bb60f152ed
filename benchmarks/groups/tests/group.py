"""Group ``tests``: how long all tests take in a fresh clone, and how many fail by chance.

It runs no test itself: it reads the records that ``make test`` and ``make flaky`` leave in build/test-runs.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.results import CHECKOUT, Figure
from schemas.errors import HeadroomError

RECORDS = CHECKOUT / "build" / "test-runs"
_TIERS = ("unit", "spark", "integration")
# Whole runs in random order, and how many of them beside a busy process.
_RUNS, _BESIDE = 6, 3
_INTERRUPTED = 130

Record = dict[str, Any]


def measure(on_progress: OnProgress) -> list[Figure]:
    """Return minutes of the last complete run in a fresh clone, and the tests that failed in the last runs by chance.

    Raises:
        HeadroomError: there is no such run.
    """
    records = sorted((_read(file) for file in RECORDS.glob("*.json")), key=lambda record: str(record["date"]))
    ended = [record for record in records if record["code"] != _INTERRUPTED]
    whole = [record for record in ended if set(record["tiers"]) >= {"lint", "types", *_TIERS}]
    return [*_minutes(whole, on_progress), *_by_chance(whole, on_progress)]


def _minutes(whole: list[Record], on_progress: OnProgress) -> list[Figure]:
    fresh = [record for record in whole if record["fresh"] and record["code"] == 0 and not record["beside"]]
    if not fresh:
        raise _missing("has no record of a run that passed in a fresh clone", "make test")
    last = fresh[-1]
    on_progress(f"fresh clone: {last['date']}, commit {last['commit']}, {_load(last)}")
    steps = {step["name"]: step["machine"]["seconds"] / 60 for step in last["steps"]}
    tests = {step["name"]: step["tests"] for step in last["steps"] if step["name"] in _TIERS}
    figures = [Figure("test_minutes_fresh", last["machine"]["seconds"] / 60, "min", 1)]
    return figures + [Figure(f"test_minutes_{name}", steps[name], "min", tests[name]) for name in _TIERS]


def _by_chance(whole: list[Record], on_progress: OnProgress) -> list[Figure]:
    last = [record for record in whole if record["order"] is not None][-_RUNS:]
    beside = [record for record in last if record["beside"]]
    if len(last) < _RUNS or len(beside) < _BESIDE:
        # The minutes are known all the same.
        on_progress(
            f"test_red_by_chance is not measured: {len(last)} runs in random order, {len(beside)} beside others."
            " Run `make flaky` first"
        )
        return []
    red, tests = 0, 0
    for record in last:
        failed = [one["test"] for step in record["steps"] for one in step.get("failed", [])]
        # A tier that ended without results counts as one failure.
        failed += [step["name"] for step in record["steps"] if step["code"] and not step.get("failed")]
        on_progress(f"order {record['order']}, beside {record['beside']}: {_load(record)}; failed: {failed or 'none'}")
        red += len(failed)
        tests += sum(step.get("tests") or 0 for step in record["steps"])
    return [Figure("test_red_by_chance", red, "tests", tests)]


def _load(record: Record) -> str:
    machine = record["machine"]
    return f"{machine['seconds'] / 60:.1f} min, {machine['busy_cores']} cores busy"


def _read(file: Path) -> Record:
    record: Record = json.loads(file.read_text(encoding="utf-8"))
    return record


def _missing(rule: str, command: str) -> HeadroomError:
    return HeadroomError(str(RECORDS), rule, f"Run `{command}` first")
