"""Group ``tests``: how long all tests take in a fresh clone, and how many fail by chance.

It runs no test itself: it reads the records that ``make test`` and ``make flaky`` leave in build/test-runs. Six whole
runs take hours, so ``benchmarks/parts/tests`` keeps the records that count, and later runs are added to them.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from benchmarks.fixtures.bench_cluster import OnProgress
from benchmarks.fixtures.part_records import write_record
from benchmarks.options.fields import NoOptions
from benchmarks.results import CHECKOUT, PARTS, Figure
from headroom.schemas.errors import HeadroomError

RECORDS = CHECKOUT / "build" / "test-runs"
FOLDER = PARTS / "tests"
_TIERS = ("unit", "spark", "integration")
# Whole runs in random order, and how many of them beside a busy process.
_RUNS, _BESIDE = 6, 3
_INTERRUPTED = 130

Record = dict[str, Any]


def measure(on_progress: OnProgress, _options: NoOptions) -> list[Figure]:
    """Return minutes of the last complete run in a fresh clone, and the tests that failed in the last runs by chance.

    Raises:
        HeadroomError: there is no such run.
    """
    records = {file.stem: _read(file) for folder in (FOLDER, RECORDS) for file in folder.glob("*.json")}
    in_order = sorted(records.items(), key=lambda entry: str(entry[1]["date"]))
    whole = {name: record for name, record in in_order if _is_whole(record)}
    fresh = [name for name, record in whole.items() if _is_fresh(record)][-1:]
    by_chance = [name for name, record in whole.items() if record["order"] is not None][-_RUNS:]
    _keep({name: whole[name] for name in (*fresh, *by_chance)})
    if not fresh:
        raise _missing("has no record of a run that passed in a fresh clone", "make test")
    return [
        *_minutes(whole[fresh[0]], on_progress),
        *_by_chance([whole[name] for name in by_chance], on_progress),
    ]


def _is_whole(record: Record) -> bool:
    return record["code"] != _INTERRUPTED and set(record["tiers"]) >= {"lint", "types", *_TIERS}


def _is_fresh(record: Record) -> bool:
    """Return whether it was `make test` in a fresh clone: in random order long modules may come last."""
    return bool(record["fresh"]) and record["code"] == 0 and not record["beside"] and record["order"] is None


def _keep(records: Mapping[str, Record]) -> None:
    for name, record in records.items():
        write_record(FOLDER, name, record)
    for file in FOLDER.glob("*.json"):
        if file.stem not in records:
            file.unlink()


def _minutes(last: Record, on_progress: OnProgress) -> list[Figure]:
    on_progress(f"fresh clone: {last['date']}, commit {last['commit']}, {_load(last)}")
    steps = {step["name"]: step["machine"]["seconds"] / 60 for step in last["steps"]}
    tests = {step["name"]: step["tests"] for step in last["steps"] if step["name"] in _TIERS}
    figures = [Figure("test_minutes_fresh", last["machine"]["seconds"] / 60, "min", 1)]
    return figures + [Figure(f"test_minutes_{name}", steps[name], "min", tests[name]) for name in _TIERS]


def _by_chance(last: list[Record], on_progress: OnProgress) -> list[Figure]:
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
        # A tier that ended without results, or not for its failed tests alone, counts as one failure.
        failed += [
            step["name"] for step in record["steps"] if step["code"] and not (step.get("failed") and step["code"] == 1)
        ]
        on_progress(
            f"order {record['order']}, beside {record['beside']}, commit {record['commit']}: {_load(record)};"
            f" failed: {failed or 'none'}"
        )
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
