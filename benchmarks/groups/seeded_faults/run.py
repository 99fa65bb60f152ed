"""Runs the tests of one fault in a copy of the code, and returns whether a test catches it."""

from __future__ import annotations

import shutil
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import dataclass

import psutil

from benchmarks.fixtures.processes import kill_tree
from benchmarks.groups.seeded_faults.fault import SeededFault, Tier
from benchmarks.groups.seeded_faults.outcome import PytestOutcome, PytestResult, outcome_of
from benchmarks.groups.seeded_faults.tree import CodeTree

# A fault that lets tests hang is not caught, because nothing would name it.
_TIMEOUT_S = {Tier.UNIT: 600.0, Tier.SPARK: 1800.0, Tier.INTEGRATION: 2400.0}
_OPTIONS = ("-x", "-q", "--no-header", "-p", "no:cacheprovider", "-o", "junit_family=xunit1", "-o", "addopts=")


@dataclass(frozen=True)
class FaultResult:
    """Result of one fault.

    Attributes:
        fault: the fault.
        caught_by: node id of the test that failed; empty if none did.
        reason: first line of the failure.
        seconds: duration of the tests.
        error: why the run shows nothing; None if it was caught or missed.
    """

    fault: SeededFault
    caught_by: str
    reason: str
    seconds: float
    error: str | None = None

    @property
    def is_missed(self) -> bool:
        """Return whether all tests passed in spite of the fault."""
        return self.error is None and not self.caught_by


def run_fault(fault: SeededFault, tree: CodeTree, targets: Sequence[str]) -> FaultResult:
    """Return the result of the tests with a fault.

    Args:
        fault: the fault.
        tree: copy of the code; it is as before afterwards.
        targets: pytest targets.

    Raises:
        HeadroomError: the fault does not fit the code.
    """
    began_s = time.monotonic()
    with tree.seeded(fault):
        outcome = run_pytest(tree, targets, fault.tier)
    seconds = time.monotonic() - began_s
    error = outcome.reason if outcome.result is PytestResult.ERROR else None
    return FaultResult(fault, outcome.test, "" if error else outcome.reason, seconds, error)


def clean_error(fault: SeededFault, tree: CodeTree, targets: Sequence[str]) -> str | None:
    """Return why the tests of a fault do not pass without it; None if they pass.

    Args:
        fault: the fault, which is not seeded.
        tree: copy of the code.
        targets: pytest targets.
    """
    outcome = run_pytest(tree, targets, fault.tier)
    if outcome.result is PytestResult.PASSED:
        return None
    return f"without the fault: {outcome.test} {outcome.reason}".strip()


def run_pytest(tree: CodeTree, targets: Sequence[str], tier: Tier) -> PytestOutcome:
    """Return the outcome of tests in a copy of the code; they stop at the first one that fails.

    Args:
        tree: copy of the code.
        targets: pytest targets.
        tier: tier of the tests. If they take too long for it, the outcome is an error.
    """
    timeout_s = _TIMEOUT_S[tier]
    report, temporary, log = (tree.scratch / name for name in ("report.xml", "pytest", "pytest.log"))
    report.unlink(missing_ok=True)
    command = [sys.executable, "-m", "pytest", *_OPTIONS, f"--basetemp={temporary}", f"--junitxml={report}", *targets]
    with log.open("wb") as output:
        # In a session of its own: tests of Ctrl-C must not reach this process.
        process = subprocess.Popen(
            command,
            cwd=tree.folder,
            env=tree.environment(with_jvm=tier is not Tier.UNIT),
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            exit_code = process.wait(timeout_s)
        except subprocess.TimeoutExpired:
            return PytestOutcome(PytestResult.ERROR, reason=f"the tests did not end within {timeout_s:g} s")
        finally:
            if process.poll() is None:
                kill_tree(psutil.Process(process.pid))
                process.wait()
            shutil.rmtree(temporary, ignore_errors=True)
    return outcome_of(exit_code, report)
