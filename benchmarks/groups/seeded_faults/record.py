"""Record of the last run of each fault: one small file for the checkout, and one for each commit that was asked for."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.fixtures.part_records import read_record, write_record
from benchmarks.groups.seeded_faults.run import FaultResult
from benchmarks.results import PARTS, Figure

FOLDER = PARTS / "seeded"


def merged_record(known: Mapping[str, Any] | None, results: Sequence[FaultResult]) -> dict[str, Any]:
    """Return the record with these results in place of earlier ones of the same faults.

    Args:
        known: record before; None if there is none.
        results: results without an error.
    """
    return dict(sorted({**(known or {}), **{result.fault.name: _entry(result) for result in results}}.items()))


def _entry(result: FaultResult) -> dict[str, Any]:
    fault = result.fault
    return {
        "layer": fault.layer,
        "path": fault.path,
        "tier": fault.tier.value,
        "caught_by": result.caught_by or None,
        "seconds": round(result.seconds, 1),
    }


def store_results(results: Sequence[FaultResult], name: str, folder: Path = FOLDER) -> None:
    """Write results into the record of the checkout or of a commit.

    Args:
        results: results; those with an error are left out.
        name: ``checkout``, or the commit.
        folder: folder of the records.
    """
    shown = [result for result in results if result.error is None]
    write_record(folder, name, merged_record(read_record(folder, name), shown))


def seeded_figures(results: Sequence[FaultResult]) -> list[Figure]:
    """Return the figures of results without errors."""
    count = len(results)
    missed = sum(result.is_missed for result in results)
    return [Figure("seeded_faults", count, "faults", count), Figure("seeded_faults_missed", missed, "faults", count)]
