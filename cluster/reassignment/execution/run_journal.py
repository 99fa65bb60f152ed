"""The journal of one run: every step is written before it is taken, and the record of the run follows it."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from headroom.cluster.reassignment.execution.control import JournalStore
from headroom.planning.reassignments.run.journal import JournalRow, JournalStep
from headroom.planning.reassignments.run.record import RecordedRun


class RunJournal:
    """Writes the rows of one run.

    Args:
        store: the journal of all runs.
        record: the run so far.
        cluster: name of the cluster.
        command: command that makes the changes.
        by: user and host.
        clock_ms: returns the time now, epoch milliseconds.

    Attributes:
        record: the run so far, with every row that was written.
    """

    def __init__(
        self, store: JournalStore, record: RecordedRun, cluster: str, command: str, by: str, clock_ms: Callable[[], int]
    ) -> None:
        self._store = store
        self._cluster = cluster
        self._command = command
        self._by = by
        self._clock_ms = clock_ms
        self.record = record

    def write(self, steps: Sequence[JournalStep]) -> None:
        """Write steps in one commit; they are durable when this returns.

        Raises:
            HeadroomError: the journal cannot be written.
        """
        if not steps:
            return
        at_ms, first = self._clock_ms(), self.record.rows + 1
        rows = [
            JournalRow(
                run_id=self.record.run_id,
                seq=seq,
                cluster=self._cluster,
                command=self._command,
                step=step.step.value,
                state=step.state.value,
                subject=step.subject,
                before=step.before,
                after=step.after,
                by=self._by,
                at_ms=at_ms,
            )
            for seq, step in enumerate(steps, start=first)
        ]
        self._store.append(rows)
        self.record = self.record.after(rows)
