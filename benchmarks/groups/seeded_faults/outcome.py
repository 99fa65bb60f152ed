"""Outcome of pytest: passed, failed with the test that failed, or an error that says nothing about a fault."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from dataclasses import dataclass
from enum import Enum
from pathlib import Path

# pytest.ExitCode, other than passed and failed.
_ERRORS = {
    2: "it was interrupted, as by an error of collection",
    3: "it had an internal error",
    4: "it was called with wrong arguments, as a test that does not exist",
    5: "it found no test",
}
_PASSED, _FAILED = 0, 1
_REASON_CHARS = 160


class PytestResult(str, Enum):
    """Result of a pytest run."""

    PASSED = "passed"
    FAILED = "failed"
    ERROR = "error"


@dataclass(frozen=True)
class PytestOutcome:
    """What a pytest run shows.

    Attributes:
        result: passed, failed or error.
        test: node id of the first test that failed, also in its set-up; empty if none did.
        reason: first line of its failure, or why the run is an error.
    """

    result: PytestResult
    test: str = ""
    reason: str = ""


def outcome_of(exit_code: int, report: Path) -> PytestOutcome:
    """Return the outcome of a pytest run.

    A run without a single test that was executed is an error: skipped tests catch nothing.

    Args:
        exit_code: exit code of pytest; negative if a signal ended it.
        report: its report in JUnit's XML of the family xunit1; it may be missing.
    """
    if exit_code not in (_PASSED, _FAILED):
        return _error(_ERRORS.get(exit_code, f"it ended with code {exit_code}"))
    cases = list(ET.parse(report).getroot().iter("testcase")) if report.is_file() else []
    if exit_code == _PASSED:
        if all(case.find("skipped") is not None for case in cases):
            return _error("no test was executed")
        return PytestOutcome(PytestResult.PASSED)
    for case in cases:
        found = case.find("failure")
        # Not "if found": an element without children is false.
        found = case.find("error") if found is None else found
        if found is not None:
            return PytestOutcome(PytestResult.FAILED, _node_id(case), _first_line(found))
    return _error("it failed without a test that failed")


def _error(reason: str) -> PytestOutcome:
    return PytestOutcome(PytestResult.ERROR, reason=reason)


def _node_id(case: ET.Element) -> str:
    return f"{case.get('file', '')}::{case.get('name', '')}"


def _first_line(element: ET.Element) -> str:
    text = (element.get("message") or "").strip().partition("\n")[0]
    return text[:_REASON_CHARS]
