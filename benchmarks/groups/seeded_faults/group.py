"""Group ``seeded``: does a test catch each of 40 defects?

``seeded_faults`` is the number of defects that were seeded, one at a time, into a copy of the code.
``seeded_faults_missed`` is the number of them with which all of their tests pass. The defects are small and realistic:
a wrong unit, an off-by-one, a null taken for 0, a step that is not journalled, a swallowed error. They lie in all
layers, and each names the lowest tier of tests that catches it: unit, Spark or integration. After a change of the
tests, the group shows that nothing was lost.

A run whose tests are not found, cannot be collected, hang, or are all skipped is an error, not a caught defect. So is a
defect whose text is no longer in its file. ``benchmarks/parts/seeded`` has the test that caught each defect.

``--faults`` chooses defects by name or by tier. ``--commit`` runs the tests of a commit instead of those of the
checkout. ``--clean`` first runs the tests of each defect without it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import OnProgress, failure
from benchmarks.groups.seeded_faults.fault import SeededFault
from benchmarks.groups.seeded_faults.faults import FAULTS
from benchmarks.groups.seeded_faults.record import seeded_figures, store_results
from benchmarks.groups.seeded_faults.run import FaultResult, clean_error, run_fault
from benchmarks.groups.seeded_faults.tree import CodeTree, copied_tree
from benchmarks.options.fields import TEXT, CheckedText, flag, option
from benchmarks.results import Figure

_CHECKOUT = "checkout"


@dataclass(frozen=True)
class SeededOptions:
    """Options of the group ``seeded``."""

    faults: str = option(
        "", CheckedText(lambda text: chosen_faults(FAULTS, text)), "Names or tiers, comma-separated; default: all."
    )
    commit: str | None = option(None, TEXT, "Commit whose tests run; default: the checkout, with its changes.")
    clean: bool = flag("First run the tests of each defect without it.")


def measure(on_progress: OnProgress, options: SeededOptions) -> list[Figure]:
    """Return the figures.

    Raises:
        HeadroomError: a fault is unknown, does not fit the code, or its tests show nothing.
    """
    commit = options.commit
    results: list[FaultResult] = []
    faults = chosen_faults(FAULTS, options.faults)
    with copied_tree(commit) as tree:
        # One tree for all, and the cheap check first: a fault that does not fit would cost the run of the others.
        for fault in faults:
            fault.seeded_in(fault.file(tree.folder).read_text(encoding="utf-8"))
        for number, fault in enumerate(faults, start=1):
            results.append(_result(fault, tree, options))
            on_progress(f"{number} of {len(faults)}, {fault.tier.value}: {_outcome_text(results[-1])}")
            store_results(results[-1:], commit or _CHECKOUT)
    errors = [result for result in results if result.error is not None]
    if errors:
        raise failure("; ".join(f"{result.fault.name}: {result.error}" for result in errors))
    return seeded_figures(results)


def chosen_faults(faults: Sequence[SeededFault], chosen: str) -> list[SeededFault]:
    """Return the faults with the given names or of the given tiers, in their own order.

    Args:
        faults: all faults.
        chosen: names and tiers, comma-separated; empty: all faults.

    Raises:
        HeadroomError: a name is unknown.
    """
    words = {word.strip() for word in chosen.split(",")} - {""}
    known = {fault.tier.value: None for fault in faults} | {fault.name: None for fault in faults}
    unknown = words - known.keys()
    if unknown:
        raise failure(f"there is no fault {', '.join(sorted(unknown))}; there are {', '.join(known)}")
    return [fault for fault in faults if not words or words & {fault.name, fault.tier.value}]


def _result(fault: SeededFault, tree: CodeTree, options: SeededOptions) -> FaultResult:
    targets = fault.targets(of_commit=options.commit is not None)
    error = clean_error(fault, tree, targets) if options.clean else None
    return run_fault(fault, tree, targets) if error is None else FaultResult(fault, "", "", 0.0, error)


def _outcome_text(result: FaultResult) -> str:
    name, took = result.fault.name, f"({result.seconds:.0f} s)"
    if result.error is not None:
        return f"{name}: ERROR: {result.error} {took}"
    return f"{name}: MISSED {took}" if result.is_missed else f"{name}: caught by {result.caught_by} {took}"
