"""Faults that the unit tests catch."""

from __future__ import annotations

from benchmarks.groups.seeded_faults.fault import SeededFault, Tier

_UNIT = Tier.UNIT

UNIT_FAULTS = (
    SeededFault(
        name="credential-alone-shown",
        layer="schemas",
        what="An answer that repeats the credential without its scheme is shown with the secret.",
        path="schemas/redaction.py",
        old='secrets += [authorization, authorization.partition(" ")[2]]',
        new="secrets += [authorization]",
        tier=_UNIT,
        tests=("tests/unit/alerts/delivery/test_exchange.py",),
    ),
    SeededFault(
        name="entries-go-while-metadata-is-old",
        layer="planning",
        what="List entries of a move that was just submitted are removed while the metadata does not show it yet.",
        path="planning/reassignments/run/changes.py",
        old="return not snapshot.moves(name) and name not in record.unended_moves",
        new="return not snapshot.moves(name)",
        tier=_UNIT,
        tests=("tests/unit/planning/reassignments/run", "tests/unit/cluster/reassignment"),
    ),
    SeededFault(
        name="batch-beyond-broker-limit",
        layer="planning",
        what="A batch of elections moves one leader more per broker than allowed.",
        path="planning/elections/batching.py",
        old="if self._leader_changes[broker] == self._per_broker:",
        new="if self._leader_changes[broker] > self._per_broker:",
        tier=_UNIT,
        tests=("tests/unit/planning/elections/test_planner.py",),
    ),
    SeededFault(
        name="counter-reset-unnoticed",
        layer="cluster",
        what="A counter that starts again at 0 keeps its earlier sample, so that its rate is negative.",
        path="cluster/collector/samples/sample_columns.py",
        old="        self._drop_fallen(now)\n",
        new="",
        tier=_UNIT,
        tests=("tests/unit/cluster/collector/test_sample_columns.py",),
    ),
    SeededFault(
        name="throttle-before-journal",
        layer="cluster",
        what="The throttle of a batch is set before the journal has it, so that a killed run leaves it behind.",
        path="cluster/reassignment/execution/throttling.py",
        old="        self._journal.write([*self._no_longer_own(changes.rates), *steps])\n        if changes.entries:",
        new="        if changes.entries:",
        tier=_UNIT,
        tests=("tests/unit/cluster/reassignment/test_executor.py",),
    ),
    SeededFault(
        name="sent-before-recorded",
        layer="alerts",
        what="An attempt to notify is not recorded before it is made, so that a crash repeats it as new.",
        path="alerts/delivery/worker.py",
        old="[self._journal.attempt(p, AttemptState.SENDING, p.attempts + 1) for p in batch.pending]",
        new="[]",
        tier=_UNIT,
        tests=("tests/unit/alerts/delivery/test_outbox.py",),
    ),
    SeededFault(
        name="repeated-batch-appended",
        layer="streaming",
        what="A micro-batch that runs again after a restart appends its events again.",
        path="streaming/store/low_latency_table.py",
        old="done >= once[1]",
        new="done > once[1]",
        tier=_UNIT,
        tests=("tests/unit/streaming/store/test_delivery_table.py",),
    ),
    SeededFault(
        name="failed-check-exits-0",
        layer="cli",
        what="headroom check exits with 0 although a check failed.",
        path="cli/check/command.py",
        old="exit_code=any(row.answer is CheckStatus.FAILED for row in checks),",
        new="exit_code=all(row.answer is CheckStatus.FAILED for row in checks),",
        tier=_UNIT,
        tests=("tests/unit/cli/check",),
    ),
)
