"""Checks of a plan against a cluster: what makes it impossible, and what an operator should know."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from headroom.planning.reassignments.changes import Exemption, PlanChanges, plan_changes
from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.planning.reassignments.directory_checks import directory_errors
from headroom.planning.reassignments.directory_moves import directory_moves
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.room.checks import check_room
from headroom.planning.reassignments.room.volumes import assumption_notes
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.names import broker_names

# Problems and names that are listed; a plan of many partitions often has the same problem many times.
_MOST_PROBLEMS, _MOST_NAMES = 5, 3


def require_possible(plan: ReassignmentPlan, state: ClusterState, subject: str) -> PlanChanges:
    """Return the changes of a plan that can be carried out if there is room for its copies (``require_room``).

    Args:
        plan: the plan.
        state: the cluster.
        subject: name of the plan, for errors.

    Raises:
        HeadroomError: the plan cannot be carried out; with the first problems and the number of the others.
    """
    require_feasible(plan, state, subject)
    changes = plan_changes(plan, state)
    if not changes.gaining and set(changes.exempt) == {Exemption.UNCHANGED}:
        rule = f"changes nothing: all {len(plan)} partitions have these replicas already"
        raise HeadroomError(subject, rule, "Correct the file, or move nothing.")
    return changes


def require_feasible(
    plan: ReassignmentPlan, state: ClusterState, subject: str, may_move: Collection[TopicPartition] = ()
) -> None:
    """Check that a plan can be carried out if there is room for its copies, whether or not it changes anything.

    Args:
        plan: the plan.
        state: the cluster.
        subject: name of the plan, for errors.
        may_move: partitions that may be moving already.

    Raises:
        HeadroomError: the plan cannot be carried out; with the first problems and the number of the others.
    """
    if not plan.assignments:
        raise HeadroomError(subject, "names no partition", "Add the partitions that are to move.")
    of_directories = directory_errors(directory_moves(plan, state), state)
    _require_none([*partition_errors(plan, state, may_move), *of_directories], subject)


def require_room(batches: Sequence[ReassignmentPlan], state: ClusterState, subject: str) -> tuple[str, ...]:
    """Check that log directories have room for a plan, and return what could not be checked, as sentences.

    Args:
        batches: the plan, in parts that move one after the other. Each has to find the room that those before it leave.
        state: the cluster.
        subject: name of the plan, for errors.

    Raises:
        HeadroomError: there is none; with the first problems and the number of the others.
    """
    found = check_room(batches, state)
    _require_none(found.errors, subject)
    return found.notes


def _require_none(problems: Sequence[HeadroomError], subject: str) -> None:
    if not problems:
        return
    shown = problems[:_MOST_PROBLEMS]
    rule = "; ".join(f"{problem.subject} {problem.rule}" for problem in shown)
    if len(problems) > len(shown):
        rule += f"; and {len(problems) - len(shown)} more problems"
    remedies = list(dict.fromkeys(problem.remedy for problem in problems))
    raise HeadroomError(subject, rule, " ".join(remedies[:_MOST_NAMES]))


def partition_errors(
    plan: ReassignmentPlan, state: ClusterState, may_move: Collection[TopicPartition] = ()
) -> Iterator[HeadroomError]:
    """Yield an error for all that makes the assignments of a plan impossible, in the order of the plan.

    Args:
        plan: the plan.
        state: the cluster.
        may_move: partitions that may be moving already.
    """
    topics = {name.topic for name in state.partitions}
    alive = state.alive
    for name, target in plan.by_name.items():
        placement = state.partitions.get(name)
        if placement is None:
            what = "is not a partition of its topic" if name.topic in topics else f"has no topic {name.topic}"
            yield HeadroomError(str(name), what, "Check the spelling, or remove it from the plan.")
            continue
        if placement.moving and name not in may_move:
            remedy = "Wait until it has ended (headroom plan --in-flight), or cancel it first."
            yield HeadroomError(str(name), "is being reassigned already", remedy)
            continue
        # Most partitions of a large plan have no problem, and a generator for each of them takes its time.
        if placement.leader is None or not alive.issuperset(target.replicas):
            yield from _broker_errors(target, placement, state)


def _broker_errors(
    target: TargetAssignment, placement: PartitionPlacement, state: ClusterState
) -> Iterator[HeadroomError]:
    unknown = [broker for broker in target.replicas if broker not in state.brokers]
    if unknown:
        there = ", ".join(map(str, sorted(state.alive)))
        rule = f"is to have a replica on broker {unknown[0]}, which is not in the cluster"
        yield HeadroomError(str(target.name), rule, f"Name others; there are: {there}.")
    down = [
        broker
        for broker in target.replicas
        if broker in state.brokers and not state.brokers[broker].alive and broker not in placement.replicas
    ]
    if down:
        rule = f"is to get a replica on broker {down[0]}, which is down"
        yield HeadroomError(str(target.name), rule, "Start the broker, or choose another.")
    gains = any(broker not in placement.replicas for broker in target.replicas)
    if gains and placement.leader is None:
        rule = "has no leader, so nothing can be copied from it"
        yield HeadroomError(str(target.name), rule, "Start a broker whose replica was in sync last, or leave it out.")


def plan_notes(plan: ReassignmentPlan, changes: PlanChanges, state: ClusterState) -> list[str]:
    """Return what an operator should know of a plan that can be carried out, each as a sentence."""
    notes = [
        f"Off the throttled replica lists, because they gain no replica ({reason.value}): {_some(names)}."
        for reason, names in changes.exempt.items()
    ]
    if changes.factor_changes:
        notes.append(f"The replication factor of {_count(changes.factor_changes, 'partition')} changes.")
    return [
        *notes,
        *_rack_notes(plan, state),
        *_health_notes(plan, changes, state),
        *waiting_notes(plan, state),
        *room_notes(changes, state),
    ]


def _rack_notes(plan: ReassignmentPlan, state: ClusterState) -> Iterator[str]:
    without = sorted(b for b, own in state.brokers.items() if own.alive and own.rack is None)
    racks = {own.rack for own in state.brokers.values() if own.rack is not None}
    if not racks:
        return
    if without:
        names = ", ".join(map(str, without[:_MOST_NAMES])) + (" and more" if len(without) > _MOST_NAMES else "")
        yield f"Only some brokers have a rack ({names} have none): whether racks are kept apart is unknown."
    rack_of = {broker: own.rack for broker, own in state.brokers.items()}
    together = [
        name
        for name, target in plan.by_name.items()
        if _fewer_racks(target.replicas, state.partitions[name].before, rack_of)
    ]
    if together:
        yield f"On fewer racks than before: {_some(together)}."


def _fewer_racks(target: tuple[int, ...], before: tuple[int, ...], rack_of: Mapping[int, str | None]) -> bool:
    then = len(set(map(rack_of.get, target)))
    return then < len(target) and then < len(set(map(rack_of.get, before)))


def _health_notes(plan: ReassignmentPlan, changes: PlanChanges, state: ClusterState) -> Iterator[str]:
    behind = [name for name in plan.by_name if state.partitions[name].is_under_replicated]
    if behind:
        yield f"Under-replicated now: {_some(behind)}. A throttle holds these replicas back too where they are listed."
    others = [name for name, p in state.partitions.items() if p.moving and name not in plan.by_name]
    if others:
        yield (
            f"Other partitions are being reassigned: {_some(others)}. Their copies use the same throttles; the time "
            "does not include them."
        )
    unknown = sorted({b for b in changes.added if not state.brokers[b].throttles_known})
    if unknown:
        yield f"Brokers that did not report their throttle rates: {', '.join(map(str, unknown))}."


@dataclass(frozen=True)
class AwaitedBroker:
    """A broker that is down, and that moves of a plan wait for, because it keeps replicas of their partitions.

    Attributes:
        broker: its id.
        partitions: the partitions, in the order of the plan.
        is_certain: false if they wait for it before Kafka 4.3 alone, and the release is unknown.
        moving: whether any of them moves already.
    """

    broker: int
    partitions: tuple[TopicPartition, ...]
    is_certain: bool
    moving: bool = False


def awaited_brokers(plan: ReassignmentPlan, state: ClusterState) -> tuple[AwaitedBroker, ...]:
    """Return the brokers that moves of a plan wait for, those that they certainly wait for first."""
    alive = state.alive
    if len(alive) == len(state.brokers):
        return ()
    certain: dict[int, list[TopicPartition]] = {}
    possible: dict[int, list[TopicPartition]] = {}
    for name, target in plan.by_name.items():
        placement = state.partitions.get(name)
        # Most partitions of a large plan keep no replica that is down.
        if placement is None or alive.issuperset(target.replicas):
            continue
        is_certain = state.waits_for_kept is True or len(target.replicas) < len(placement.before)
        waiting = certain if is_certain else possible
        for broker in placement.dead_kept(target.replicas, alive, state.waits_for_kept):
            waiting.setdefault(broker, []).append(name)
    return tuple(
        AwaitedBroker(broker, tuple(names), waiting is certain, any(state.partitions[name].moving for name in names))
        for waiting in (certain, possible)
        for broker, names in sorted(waiting.items())
    )


def awaiting_leader(plan: ReassignmentPlan, state: ClusterState) -> tuple[TopicPartition, ...]:
    """Return the partitions whose new replicas wait for the leader's next upload or record, in the order of the plan.

    One that has copied something already does not ask for the end of what is uploaded any more.
    """
    return tuple(
        name
        for name, target in plan.by_name.items()
        if (placement := state.partitions.get(name)) is not None
        and placement.awaits_leader
        and any(not placement.copied_bytes.get(broker) for broker in set(target.replicas) - set(placement.before))
    )


def waiting_notes(plan: ReassignmentPlan, state: ClusterState) -> Iterator[str]:
    """Yield, as sentences, the partitions whose move waits: for its leader, or for a broker that is down."""
    names = awaiting_leader(plan, state)
    if names:
        yield (
            f"New replicas of {_some(names)} copy nothing yet, because remote storage has all records of the leader, "
            "or none before the first that is to be uploaded. Such a move ends only after the next record is written, "
            "or the next segment uploaded, or with follower.fetch.last.tiered.offset.enable=false on the new brokers."
        )
    for awaited in awaited_brokers(plan, state):
        broker, names = awaited.broker, awaited.partitions
        when = "ends only when it is back" if awaited.is_certain else "before Kafka 4.3 ends only when it is back"
        cancelled = " after it is cancelled" if awaited.moving else ""
        yield (
            f"Broker {broker} is down and keeps a replica of {_some(names)}: such a move {when}, or with a target "
            f"without it{cancelled}: {_plan_without(broker, names)}"
        )


def _plan_without(broker: int, names: Iterable[TopicPartition]) -> str:
    """Return the command that makes a plan for the topics of partitions with no replica on a broker."""
    topics = sorted({name.topic for name in names})
    chosen = f" --topics {','.join(topics)}" if len(topics) <= _MOST_NAMES else ""
    return f"headroom plan --drain {broker}{chosen} --save-plan without-{broker}.json"


def room_notes(changes: PlanChanges, state: ClusterState) -> Iterator[str]:
    """Yield, as sentences, what an operator should know of the log directories of brokers that get replicas.

    These are volumes that are assumed, cordoned brokers, and those whose room was not checked.
    """
    yield from assumption_notes(state.brokers[broker] for broker in changes.added)
    cordoned = sorted(broker for broker in changes.added if state.brokers[broker].cordoned)
    if cordoned:
        yield (
            f"All log directories of {broker_names(cordoned, _MOST_NAMES)} are cordoned, and the plan adds replicas "
            "there: Kafka puts them into the first directory. Choose other brokers, or change cordoned.log.dirs."
        )
    unseen = [broker for broker in changes.added if not state.brokers[broker].room_known]
    if unseen:
        names = ", ".join(map(str, unseen[:_MOST_NAMES])) + (" and more" if len(unseen) > _MOST_NAMES else "")
        yield f"Free disk space is unknown, so room for the copies was not checked: brokers {names}."


def _some(names: Iterable[TopicPartition]) -> str:
    partitions = list(names)
    by_topic = Counter(name.topic for name in partitions)
    shown = ", ".join(map(str, sorted(partitions)[:_MOST_NAMES]))
    if len(partitions) <= _MOST_NAMES:
        return shown
    return f"{shown} and {len(partitions) - _MOST_NAMES} more of {_count(len(by_topic), 'topic')}"


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
