"""Ends a run that no process carries on: takes back what it set, exactly, and nothing else."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import partial

from headroom.cluster.reassignment.execution.control import ClusterControl, RunOutput, RunPolicy
from headroom.cluster.reassignment.execution.moves import RunMoves
from headroom.cluster.reassignment.execution.placement import RunPlacement
from headroom.cluster.reassignment.execution.retrying import Retrying
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.cluster.reassignment.execution.throttling import RunThrottle
from headroom.planning.reassignments.run.conditions import require_known_moves
from headroom.planning.reassignments.run.directories import copying_of
from headroom.planning.reassignments.run.journal import JournalStep, StepKind, StepState
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.keys import BrokerRate, TopicPartition

_POLL_S = 1.0


@dataclass(frozen=True)
class CleanOutcome:
    """Result of cleaning a run.

    Attributes:
        record: the run afterwards.
        moving: partitions that still move, between brokers or log directories, so that its throttle stays: its own, or
            those of another run that has not ended.
        kept_rates: rates of the run that stay, because others have changed them since; None for no rate.
    """

    record: RecordedRun
    moving: tuple[TopicPartition, ...]
    kept_rates: Mapping[BrokerRate, int | None] = field(default_factory=dict)


def clean_run(
    control: ClusterControl,
    journal: RunJournal,
    output: RunOutput,
    settle_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
    others: Collection[RecordedRun] = (),
) -> CleanOutcome:
    """Take back the entries and rates of a run, and finish a cancellation that it had begun.

    Entries of partitions that still move stay, and all of its rates with them: a throttle is never lifted while
    anything of the run moves, or of another one, which has not set a rate that it found to be enough.

    Args:
        control: the cluster.
        journal: the journal of the run.
        output: where it reports to.
        settle_s: longest wait for a cancellation, and how long the cluster and the journal may fail, seconds.
        clock: monotonic seconds.
        sleep: waits for the given seconds.
        others: other runs that have not ended.

    Raises:
        HeadroomError: the cluster refused, or it or the journal failed for too long.
    """
    moves = RunMoves(control, journal, settle_s, clock, sleep)
    # Nothing is requested here, so a replica that is not copied now will not be.
    placement = RunPlacement(control, journal, patience_s=0.0, clock=clock)
    throttle = RunThrottle(control, journal, RunPolicy(None), output)
    retrying = Retrying(settle_s, _POLL_S, output.note, clock, sleep)
    what = f"run {journal.record.run_id}"
    retrying.result(what, partial(moves.finish_cancellations, of_moving=True))

    def look() -> RunSnapshot:
        snapshot = control.read()
        # What others move is unknown while no controller answers, and entries stay while they do.
        require_known_moves(snapshot)
        moves.finish_ended_cancellations(snapshot)
        moves.note_ended(snapshot)
        placement.note_ended(snapshot)
        throttle.release(snapshot)
        return snapshot

    while True:
        snapshot = retrying.result(what, look)
        moving = sorted(journal.record.unended_moves)
        # Those that neither move nor have their target replicas: the metadata may be stale, which ends within seconds.
        if not moving or any(snapshot.moves(name) for name in moving):
            break
        sleep(_POLL_S)
    moving += [name for other in others for name in other.unended_moves if snapshot.moves(name)]
    copying = [replica.name for run in (journal.record, *others) for replica in copying_of(run, snapshot)]
    if moving or copying:
        return CleanOutcome(journal.record, tuple(sorted({*moving, *copying})))
    kept_rates = throttle.restore(snapshot)
    if journal.record.state is RunState.UNFINISHED:
        journal.write([JournalStep(StepKind.RUN, StepState.UNDONE, journal.record.fingerprint)])
    return CleanOutcome(journal.record, (), kept_rates)
