"""Cancelling of running reassignments, with the order of replicas from before."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass

from headroom.cluster.live.live_control import LiveClusterControl
from headroom.cluster.log_dirs.describe import LogDirsReading
from headroom.cluster.reassignment.execution.moves import STALE_S, RunMoves
from headroom.cluster.reassignment.execution.placement import end_copies
from headroom.cluster.reassignment.execution.run_journal import RunJournal
from headroom.planning.reassignments.run.conditions import partitions_text, require_known_moves
from headroom.planning.reassignments.run.directories import copies_between_directories
from headroom.planning.reassignments.run.orders import KnownOrders
from headroom.planning.reassignments.run.snapshot import RunSnapshot
from headroom.schemas.keys import ReplicaKey, TopicPartition

_POLL_S = 0.5


@dataclass(frozen=True)
class CancelPlan:
    """What is cancelled.

    Attributes:
        snapshot: the cluster now.
        originals: replicas from before of each moving partition, in their order; None if the journal has none.
        unrestored: replicas from before of each partition whose cancellation was interrupted, in their order.
        copies: log directory in which each replica stays whose copy to another one is ended.
        reading: log directories, with the error of brokers that did not report them.
    """

    snapshot: RunSnapshot
    originals: Mapping[TopicPartition, tuple[int, ...] | None]
    unrestored: Mapping[TopicPartition, tuple[int, ...]]
    copies: Mapping[ReplicaKey, str]
    reading: LogDirsReading

    def text(self) -> str:
        """Return what is cancelled, such as ``3 reassignments``; empty if nothing is."""
        moving, copies, unrestored = len(self.originals), len(self.copies), len(self.unrestored)
        parts = [f"{moving} reassignments"] * bool(moving)
        parts += [f"the rest of {unrestored} interrupted cancellations"] * bool(unrestored)
        return " and ".join(parts + [f"{copies} copies between log directories"] * bool(copies))

    def notes(self) -> list[str]:
        """Return what the operator should know before, in sentences."""
        notes = []
        unknown = [name for name, original in self.originals.items() if original is None]
        if unknown:
            notes.append(
                f"The order of the replicas before the move is not known of {partitions_text(unknown)}: it stays as "
                "Kafka leaves it, and another broker may be the preferred leader."
            )
        if self.reading.errors:
            brokers = ", ".join(map(str, sorted(self.reading.errors)))
            notes.append(f"Copies between log directories are unknown on brokers {brokers}, which did not report them.")
        return notes


def plan_cancel(
    control: LiveClusterControl,
    chosen: Collection[TopicPartition] | None,
    orders: KnownOrders,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> CancelPlan:
    """Return what is cancelled.

    The order of replicas after a cancellation that was interrupted is restored too, unless others have changed it.

    Args:
        control: the cluster.
        chosen: partitions whose reassignments and copies are cancelled; None: all.
        orders: orders of replicas in the journal.
        clock: monotonic seconds.
        sleep: waits for the given seconds.

    Raises:
        HeadroomError: the cluster could not be read, or no controller answered.
    """
    give_up_s = clock() + STALE_S
    while True:
        snapshot = control.read()
        # Those of an earlier look may have ended, and others begun.
        require_known_moves(snapshot)
        partitions = {n: p for n, p in sorted(snapshot.partitions.items()) if chosen is None or n in chosen}
        late = {name.topic for name, partition in partitions.items() if orders.may_be_shown_late(partition)}
        if not late or clock() >= give_up_s:
            break
        control.refresh(late)
        sleep(_POLL_S)
    reading = control.read_logs(sorted(snapshot.alive), None if chosen is None else sorted(chosen))
    originals = {name: orders.before(partition) for name, partition in partitions.items() if partition.moving}
    to_restore = {name: orders.to_restore(partition) for name, partition in partitions.items()}
    unrestored = {name: order for name, order in to_restore.items() if order is not None}
    return CancelPlan(snapshot, originals, unrestored, copies_between_directories(reading.brokers), reading)


def execute_cancel(
    control: LiveClusterControl,
    journal: RunJournal,
    plan: CancelPlan,
    settle_s: float,
    clock: Callable[[], float] = time.monotonic,
    sleep: Callable[[float], None] = time.sleep,
) -> dict[TopicPartition, str]:
    """Cancel what is planned, and return by partition why it was not cancelled.

    What others have begun since is theirs: a question to the operator may take minutes.

    Args:
        control: the cluster.
        journal: journal of the command.
        plan: what is cancelled.
        settle_s: how long the cluster may fail before it is given up, seconds.
        clock: monotonic seconds.
        sleep: waits for the given seconds.

    Raises:
        HeadroomError: the cluster could not be read, or the journal not be written.
    """
    now = control.read()
    require_known_moves(now)
    planned = {**plan.originals, **plan.unrestored}
    others = {
        name: "others have changed it since"
        for name, original in planned.items()
        if _is_begun_since(name, plan.snapshot, now) or _is_reordered_since(name, original, plan.snapshot, now)
    }
    moves = RunMoves(control, journal, settle_s, clock, sleep)
    failed = moves.cancel({name: original for name, original in planned.items() if name not in others})
    return {**others, **failed, **_end_copies(control, journal, plan.copies)}


def _end_copies(
    control: LiveClusterControl, journal: RunJournal, copies: Mapping[ReplicaKey, str]
) -> dict[TopicPartition, str]:
    """End the copies that still run: requested after its end, the directory from before would begin a copy back."""
    if not copies:
        return {}
    reading = control.read_logs(sorted({r.broker for r in copies}), sorted({r.name for r in copies}))
    running = copies_between_directories(reading.brokers)
    failed: dict[TopicPartition, str] = {}
    for replica, path in copies.items():
        logs = reading.brokers.get(replica.broker)
        if logs is None:
            failed[replica.name] = f"broker {replica.broker}: its log directories were not reported"
        # Cancelled, a reassignment takes its new replicas with it.
        elif running.get(replica) != path and replica.name in logs.logs:
            failed[replica.name] = f"broker {replica.broker}: its copy to another log directory has ended"
    still = {replica: path for replica, path in copies.items() if running.get(replica) == path}
    return {**failed, **end_copies(control, journal, still)}


def _is_reordered_since(
    name: TopicPartition, original: tuple[int, ...] | None, planned: RunSnapshot, now: RunSnapshot
) -> bool:
    """Return whether a partition that rested has its replicas in an order that is neither that of then nor to come."""
    before, after = planned.partitions[name], now.partitions.get(name)
    if before.moving or after is None or after.moving or set(after.replicas) != set(before.replicas):
        return False
    return after.replicas not in (before.replicas, original)


def _is_begun_since(name: TopicPartition, planned: RunSnapshot, now: RunSnapshot) -> bool:
    if planned.topic_ids.get(name.topic) != now.topic_ids.get(name.topic):
        return name in now.partitions
    if not now.moves(name):
        return False
    # Only the controller knows these; a broker may still show other replicas.
    (before, after) = (({*p.adding}, {*p.removing}) for p in (planned.partitions[name], now.partitions[name]))
    return before != after
