"""Log directories of a run: the replicas that a batch puts into named directories, and how far each of them is."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from headroom.planning.log_dirs.broker_logs import BrokerLogs
from headroom.planning.log_dirs.progress import DirectoryProgress, DirectoryState, directory_progress, replica_progress
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.record import DirectoryPlacement, RecordedRun
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.keys import ReplicaKey, TopicPartition


def named_partitions(plan: Iterable[TargetAssignment]) -> frozenset[TopicPartition]:
    """Return the partitions for which a plan names a log directory; ``any`` is no name."""
    return frozenset(assignment.name for assignment in plan if assignment.named_log_dirs)


def directory_states(plan: ReassignmentPlan, snapshot: RunSnapshot) -> list[DirectoryProgress]:
    """Return the state of every replica that a plan gives a named directory, in the order of the plan."""
    return [_without_unread(progress, snapshot) for progress in directory_progress(plan, snapshot.logs)]


def state_of_placement(replica: ReplicaKey, placement: DirectoryPlacement, snapshot: RunSnapshot) -> DirectoryProgress:
    """Return the state of a replica on its way to the directory that a run has requested."""
    path, logs = placement.after or "", snapshot.logs.get(replica.broker)
    return _without_unread(replica_progress(replica.name, replica.broker, path, logs), snapshot)


def _without_unread(progress: DirectoryProgress, snapshot: RunSnapshot) -> DirectoryProgress:
    """Return the state; absent where the broker was not read because it has no replica of the partition."""
    partition = snapshot.partitions.get(progress.name)
    has_replica = partition is not None and progress.broker in partition.replicas
    return progress if has_replica else replace(progress, state=DirectoryState.ABSENT)


def placements_of(
    batch: ReassignmentPlan, snapshot: RunSnapshot, record: RecordedRun
) -> dict[ReplicaKey, DirectoryPlacement]:
    """Return the replicas of a batch that are not in their named directory yet, those on their way included.

    Replicas that the batch removes from such partitions are included with their present directory, so that a rollback
    can put them there again.

    Args:
        batch: the batch.
        snapshot: the cluster now.
        record: the run so far.
    """
    placements: dict[ReplicaKey, DirectoryPlacement] = {}
    for state in directory_states(batch, snapshot):
        if state.name in snapshot.partitions and state.state is not DirectoryState.DONE:
            placements[ReplicaKey(state.name, state.broker)] = DirectoryPlacement(state.current, state.destination)
    for name in named_partitions(batch) & (snapshot.partitions.keys() - record.submitted.keys()):
        for broker in snapshot.partitions[name].before:
            log = snapshot.logs[broker].logs.get(name) if broker in snapshot.logs else None
            if broker not in batch.by_name[name].replicas and log is not None:
                placements[ReplicaKey(name, broker)] = DirectoryPlacement(log.path, None)
    return placements


def requested_of(places: Mapping[ReplicaKey, DirectoryPlacement]) -> dict[ReplicaKey, str]:
    """Return the directories to request, by replica."""
    return {replica: place.after for replica, place in sorted(places.items()) if place.after is not None}


def copying_brokers(replicas: Iterable[ReplicaKey], snapshot: RunSnapshot) -> frozenset[int]:
    """Return the brokers that copy replicas between their own directories: those that have the replica already.

    Args:
        replicas: replicas that are not in their directory yet.
        snapshot: the cluster now.
    """
    return frozenset(
        replica.broker
        for replica in replicas
        if replica.name in snapshot.partitions and replica.broker in snapshot.partitions[replica.name].replicas
    )


def copying_of(record: RecordedRun, snapshot: RunSnapshot) -> list[ReplicaKey]:
    """Return the replicas of a run that are, or may be, still copied between directories.

    A broker that is up but did not report its logs may be copying; one that is down copies nothing.
    """
    copying = []
    for replica in sorted(record.placing):
        state = state_of_placement(replica, record.placed[replica], snapshot).state
        is_unread = state is DirectoryState.UNKNOWN and replica.broker in snapshot.alive
        if state is DirectoryState.MOVING or is_unread:
            copying.append(replica)
    return copying


def copies_between_directories(logs: Mapping[int, BrokerLogs]) -> dict[ReplicaKey, str]:
    """Return the replicas that are copied to another directory of their broker, with the one that they are in.

    Args:
        logs: logs by broker.
    """
    return {
        ReplicaKey(name, broker): of_broker.logs[name].path
        for broker, of_broker in sorted(logs.items())
        for name in sorted(of_broker.futures)
        if name in of_broker.logs
    }


def remaining_bytes(record: RecordedRun, snapshot: RunSnapshot) -> int:
    """Return the bytes that the replicas of a run still copy between directories, as far as known."""
    states = (state_of_placement(replica, record.placed[replica], snapshot) for replica in record.placing)
    return sum(state.remaining_bytes or 0 for state in states)
