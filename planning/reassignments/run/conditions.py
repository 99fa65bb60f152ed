"""Conditions under which a run may begin, and under which its next batch may."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from headroom.planning.reassignments.plan import ReassignmentPlan
from headroom.planning.reassignments.run.changes import BatchChanges
from headroom.planning.reassignments.run.record import RecordedRun, RunState
from headroom.planning.reassignments.run.snapshot import LostReplicas, RunSnapshot
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import join_names
from headroom.schemas.text.names import broker_names

# Partitions that a text names; the others are counted.
_SHOWN = 3


def partitions_text(names: Iterable[TopicPartition]) -> str:
    """Return a text with the first partitions and the number of the others."""
    ordered = sorted(names)
    return join_names([str(name) for name in ordered[:_SHOWN]], len(ordered), _SHOWN)


def is_moved_by_others(name: TopicPartition, snapshot: RunSnapshot, record: RecordedRun) -> bool:
    """Return whether a partition is reassigned, but not by this run: later than by it, or to other replicas."""
    if not snapshot.moves(name):
        return False
    if record.is_remade(name.topic, snapshot.topic_ids):
        return True
    return name not in record.unended_moves or snapshot.partitions[name].target != record.submitted[name].after


def foreign_moves(snapshot: RunSnapshot, record: RecordedRun) -> list[TopicPartition]:
    """Return the partitions that are reassigned, but not by this run."""
    return sorted(name for name in snapshot.partitions if is_moved_by_others(name, snapshot, record))


def leads_to_elect(
    batches: Iterable[ReassignmentPlan], snapshot: RunSnapshot, record: RecordedRun
) -> list[TopicPartition]:
    """Return the partitions with their target replicas that the first of these does not lead."""
    targets = {a.name: a.replicas for batch in batches for a in batch}
    return [
        name
        for name, target in targets.items()
        if (p := snapshot.partitions.get(name)) is not None
        and (p.replicas == target and p.leader != target[0])
        and not record.is_remade(name.topic, snapshot.topic_ids)
    ]


def electable_leads(
    batches: Iterable[ReassignmentPlan], snapshot: RunSnapshot, record: RecordedRun
) -> list[TopicPartition]:
    """Return those of ``leads_to_elect`` whose first replica is alive and in sync."""
    leads = ((name, snapshot.partitions[name]) for name in leads_to_elect(batches, snapshot, record))
    return [name for name, p in leads if p.replicas[0] in p.isr and p.replicas[0] in snapshot.alive]


def require_no_foreign_moves(snapshot: RunSnapshot, record: RecordedRun) -> None:
    """Check that nothing moves that this run has not submitted.

    Raises:
        HeadroomError: a reassignment of others is running.
    """
    foreign = foreign_moves(snapshot, record)
    if foreign:
        rule = "is being reassigned, but not by this run: its traffic is not part of what was estimated"
        remedy = "Wait for its end, or run with --adopt: the run then goes on beside it."
        raise HeadroomError(partitions_text(foreign), rule, remedy)


def require_only_run(records: Sequence[RecordedRun], run_id: str | None, clean_command: str) -> None:
    """Check that no other run is unfinished.

    Args:
        records: runs of the cluster.
        run_id: the run that is about to begin or to go on; None if it has no id yet.
        clean_command: command that ends unfinished runs.

    Raises:
        HeadroomError: another run is unfinished.
    """
    others = [r for r in records if r.state is RunState.UNFINISHED and r.run_id != run_id]
    if others:
        rule = f"is unfinished ({others[0].command}, begun by {others[0].by})"
        remedy = f"Let it end, or end it with: {clean_command}"
        raise HeadroomError(f"run {others[0].run_id}", rule, remedy)


def require_known_moves(snapshot: RunSnapshot) -> None:
    """Check that the reassignments were read: those of an earlier look may be from before a submission.

    Raises:
        HeadroomError: no controller answered.
    """
    if not snapshot.reassignments_read:
        rule = "could not be read, so what to cancel is unknown"
        raise HeadroomError("the reassignments", rule, "Wait until a controller is elected, then try again.")


def require_known_rates(changes: BatchChanges) -> None:
    """Check that every broker which a batch throttles reports its rates: what is not read back may not be in force.

    Raises:
        HeadroomError: a broker is up and does not report them.
    """
    if changes.unknown_rates:
        brokers = broker_names(sorted({name.broker for name in changes.unknown_rates}))
        rule = "were not reported, so that the batch could move without its throttle"
        remedy = (
            "See that this user may DescribeConfigs on brokers, and that they answer: headroom check. To move without "
            "a throttle, run without its option."
        )
        raise HeadroomError(f"the throttle rates of {brokers}", rule, remedy)


def lost_replicas(before: LostReplicas, now: RunSnapshot) -> str | None:
    """Return which replicas were lost since the run began, as text; None if none was.

    Args:
        before: those that were lost when the run began.
        now: the cluster now, while nothing of the run moves.
    """
    offline = now.offline - before.offline
    if offline:
        return f"replicas of {partitions_text(offline)} are offline: a broker is down, or a disk has failed or is full"
    lost = now.under_replicated - before.under_replicated
    return f"replicas of {partitions_text(lost)} are no longer in sync" if lost else None
