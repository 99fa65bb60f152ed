"""The journal of a cluster's store beside its specification, ``tests/support/journal_specification.py``."""

from __future__ import annotations

from benchmarks.fixtures.bench_cluster import BenchCluster, OnProgress
from headroom.streaming.tables.journal import ActionJournal
from tests.support.journal_specification import JournalTrace


class CheckedJournal:
    """Checks what runs of plans have written since the last check.

    Args:
        bench: the cluster.
    """

    def __init__(self, bench: BenchCluster) -> None:
        self._bench = bench
        self._traces = 0
        self._violations: set[str] = set()

    def check(self, on_progress: OnProgress) -> dict[str, int]:
        """Return how many runs are new, and how many violations of the specification; each violation is reported.

        Raises:
            HeadroomError: the journal cannot be read.
        """
        trace = JournalTrace()
        trace.add(ActionJournal(self._bench.store).rows(self._bench.settings.cluster.name))
        traces, violations = trace.traces(), set(trace.violations())
        new = sorted(violations - self._violations)
        for violation in new:
            on_progress(violation)
        counts = {"traces": len(traces) - self._traces, "trace_violations": len(new)}
        self._traces, self._violations = len(traces), violations
        return counts
