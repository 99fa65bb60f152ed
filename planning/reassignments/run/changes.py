"""The changes of each step of a run: what a batch needs, and what is to be taken back."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

from headroom.planning.reassignments.cluster_state import PartitionPlacement
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.run.directories import copying_brokers, placements_of, requested_of
from headroom.planning.reassignments.run.journal import Entry, ThrottledList, rate_subject
from headroom.planning.reassignments.run.record import DirectoryPlacement, OwnRate, RecordedRun, Submission
from headroom.planning.reassignments.run.snapshot import RateInForce, RunSnapshot
from headroom.planning.throttles.replica_lists import EVERY_REPLICA, parse_replica_list
from headroom.schemas.keys import BrokerRate, BrokerRole, LogDirsRate, ReplicaKey, Role, TopicPartition


@dataclass(frozen=True)
class PlannedRate:
    """Change of a broker's own rate, bytes per second; None for no rate."""

    before: int | None
    after: int | None


@dataclass(frozen=True)
class BatchChanges:
    """What one batch changes, as far as it is not in force already.

    Attributes:
        moves: the reassignments of the batch that are running or to be submitted. If only log directories change, the
            replicas before and after are the same.
        submit: those that are to be submitted, also those that others have begun and the run takes over.
        entries: entries to append to throttled replica lists.
        rates: rates to set: where none, or a lower one, is in force.
        places: log directories of replicas that are not in the one that the plan names.
        missing: partitions that do not exist, or are of a topic that was made again.
        unknown_rates: rates that the batch needs, of brokers that are up and do not report theirs.
    """

    moves: Mapping[TopicPartition, Submission]
    submit: Mapping[TopicPartition, Submission]
    entries: Mapping[ThrottledList, frozenset[Entry]]
    rates: Mapping[BrokerRate, PlannedRate]
    places: Mapping[ReplicaKey, DirectoryPlacement] = field(default_factory=dict)
    missing: tuple[TopicPartition, ...] = ()
    unknown_rates: tuple[BrokerRate, ...] = ()


def batch_changes(
    batch: ReassignmentPlan,
    snapshot: RunSnapshot,
    record: RecordedRun,
    throttle_bytes_per_s: int | None,
    log_dirs_bytes_per_s: int | None = None,
) -> BatchChanges:
    """Return what a batch still needs; nothing for partitions that have their target replicas and directories.

    Args:
        batch: the batch.
        snapshot: the cluster now.
        record: the run so far.
        throttle_bytes_per_s: rate that every broker of the batch is to have at least; None: no throttle.
        log_dirs_bytes_per_s: rate that brokers are to have at least which move replicas between their log directories;
            None: no throttle.
    """
    moves, submit = {}, {}
    missing = tuple(
        a.name for a in batch if a.name not in snapshot.partitions or record.is_remade(a.name.topic, snapshot.topic_ids)
    )
    if missing:
        batch = ReassignmentPlan(tuple(a for a in batch if a.name not in frozenset(missing)))
    places = placements_of(batch, snapshot, record)
    requested = requested_of(places)
    # Killed before it was submitted, a run may find its copies at their end: what it placed is its own all the same.
    unsubmitted = {replica.name for replica in record.placed} - record.submitted.keys()
    placed = unsubmitted | {replica.name for replica in requested}
    for assignment in batch:
        partition = snapshot.partitions[assignment.name]
        is_under_way = partition.moving and partition.target == assignment.replicas
        if is_under_way or partition.moving or partition.replicas != assignment.replicas:
            moves[assignment.name] = _submission(assignment, partition, record)
            # Submitted again, a move of others to the same replicas goes on, and from now on is one of the run.
            if not is_under_way or assignment.name not in record.unended_moves:
                submit[assignment.name] = moves[assignment.name]
        elif assignment.name in placed:
            moves[assignment.name] = _submission(assignment, partition, record)
            # The controller takes the replicas that a partition has as a target too, and Kafka's tool submits them.
            if assignment.name not in record.submitted:
                submit[assignment.name] = moves[assignment.name]
    wanted = wanted_rates(moves, copying_brokers(requested, snapshot), throttle_bytes_per_s, log_dirs_bytes_per_s)
    entries = {} if throttle_bytes_per_s is None else _missing_entries(entries_of(moves), snapshot)
    rates, unknown = rates_to_set(wanted, snapshot, record), unknown_rates(wanted, snapshot)
    return BatchChanges(moves, submit, entries, rates, places, missing, unknown)


def _submission(assignment: TargetAssignment, partition: PartitionPlacement, record: RecordedRun) -> Submission:
    """Return the reassignment with the original replicas, in the order that they had before a crash or a cancellation.

    An order that others have chosen since is the original one.
    """
    name, before = assignment.name, partition.before
    known, interrupted = record.submitted.get(name), record.interrupted.get(name)
    if known is not None and (name in record.unended_moves or name in record.refused) and is_left_of(known, before):
        before = known.before
    elif known is not None and known.after == before and set(known.before) == set(before):
        # An earlier batch of the run has only given it this order.
        before = known.before
    elif interrupted is not None and not partition.moving and interrupted.left == before:
        before = interrupted.before
    return Submission(before, assignment.replicas)


def replicas_before(
    plan: ReassignmentPlan, snapshot: RunSnapshot, record: RecordedRun
) -> dict[TopicPartition, tuple[int, ...]]:
    """Return the replicas of a plan's partitions before a run of it, also in the middle of that run.

    Args:
        plan: the plan.
        snapshot: the cluster now.
        record: the run so far.
    """
    before = {name: p.before for name in plan.by_name if (p := snapshot.partitions.get(name)) is not None}
    for name in before.keys() & record.submitted.keys():
        move = record.submitted[name]
        if name in record.unended_moves or before[name] == move.after:
            before[name] = move.before
    return before


def is_left_of(move: Submission, replicas: tuple[int, ...]) -> bool:
    """Return whether Kafka leaves these replicas, in this order, while a reassignment runs and if it is cancelled.

    Source: Kafka 4.3.1, ``PartitionReassignmentReplicas``: the target replicas come first, in their order.
    """
    kept = tuple(broker for broker in move.after if broker in move.before)
    return replicas == move.before or (set(replicas) == set(move.before) and replicas[: len(kept)] == kept)


def entries_of(moves: Mapping[TopicPartition, Submission]) -> dict[ThrottledList, set[Entry]]:
    """Return the entries that throttle some reassignments: as Kafka's tool, but only of partitions that gain a replica.

    In the leader list every replica from before, because each may become the leader; in the follower list the new ones.
    A partition without a new replica copies nothing: listed, its in-sync traffic would only use up the quota.

    Source: Kafka 4.3.1, ``ReassignPartitionsCommand.calculateLeaderThrottles`` and ``calculateFollowerThrottles``.
    """
    entries: dict[ThrottledList, set[Entry]] = {}
    for name, move in moves.items():
        new = [broker for broker in move.after if broker not in move.before]
        if new:
            leaders, followers = ThrottledList(name.topic, Role.LEADER), ThrottledList(name.topic, Role.FOLLOWER)
            entries.setdefault(leaders, set()).update((name.partition, broker) for broker in move.before)
            entries.setdefault(followers, set()).update((name.partition, broker) for broker in new)
    return entries


def listed_entries(text: str | None) -> frozenset[Entry] | None:
    """Return the entries of a list; None for ``*``, which names every replica.

    Raises:
        ValueError: the text is not a list.
    """
    if (text or "").strip() == EVERY_REPLICA:
        return None
    listed = parse_replica_list(text)
    return frozenset() if listed is None else frozenset(listed.entries)


def _missing_entries(
    wanted: Mapping[ThrottledList, set[Entry]], snapshot: RunSnapshot
) -> dict[ThrottledList, frozenset[Entry]]:
    missing = {}
    for name, entries in wanted.items():
        listed = listed_entries(snapshot.lists.get(name))
        # Beside "*" no entry is allowed, and none is needed.
        if listed is not None and entries - listed:
            missing[name] = frozenset(entries - listed)
    return missing


def wanted_rates(
    moves: Mapping[TopicPartition, Submission],
    copying: Iterable[int],
    throttle_bytes_per_s: int | None,
    log_dirs_bytes_per_s: int | None,
) -> dict[BrokerRate, int]:
    """Return the rate that each broker of a batch is to have at least, bytes per second.

    Args:
        moves: the reassignments.
        copying: brokers that move replicas between their log directories.
        throttle_bytes_per_s: rate of the reassignments; None: no throttle.
        log_dirs_bytes_per_s: rate of the moves between log directories; None: no throttle.
    """
    wanted: dict[BrokerRate, int] = {}
    if throttle_bytes_per_s is not None:
        wanted.update(dict.fromkeys(broker_roles_of(moves), throttle_bytes_per_s))
    if log_dirs_bytes_per_s is not None:
        wanted.update({LogDirsRate(broker): log_dirs_bytes_per_s for broker in copying})
    return wanted


def rates_to_set(
    wanted: Mapping[BrokerRate, int], snapshot: RunSnapshot, record: RecordedRun
) -> dict[BrokerRate, PlannedRate]:
    """Return the rates to set: where none, or a lower one than wanted, is in force.

    A rate that the run has set itself follows its command both ways: it is lowered if the run goes on with a lower one.

    Args:
        wanted: rate of each broker and role, bytes per second; where others have set a higher one, that stays.
        snapshot: the cluster now.
        record: the run so far; a rate that others have changed since stays.
    """
    rates: dict[BrokerRate, PlannedRate] = {}
    for name, least in sorted(wanted.items()):
        now, own = snapshot.rates.get(name), record.rates.get(name)
        # A broker that is down takes no rate, and copies nothing. See ``unknown_rates`` for one that is up.
        if now is None or is_changed_by_others(name, now, record):
            continue
        if own is not None and now.own in own.own:
            # Not below what was in force before the run.
            least = max(least, own.before or 0)
            # Set again otherwise, because a crash came before the journal had it.
            is_enough = now.own == least and own.confirmed
        else:
            is_enough = now.in_force is not None and now.in_force >= least
        if not is_enough:
            rates[name] = PlannedRate(now.own, least)
    return rates


@dataclass(frozen=True)
class ClearedThrottle:
    """What moves need of their throttle, was in force, and is no longer.

    Attributes:
        rates: brokers and roles that nothing limits.
        entries: entries that are not listed.
    """

    rates: frozenset[BrokerRate] = frozenset()
    entries: frozenset[tuple[ThrottledList, Entry]] = frozenset()

    def __bool__(self) -> bool:
        """Return whether anything is missing."""
        return bool(self.rates or self.entries)

    def __and__(self, other: ClearedThrottle) -> ClearedThrottle:
        """Return what is missing in both."""
        return ClearedThrottle(self.rates & other.rates, self.entries & other.entries)

    def __sub__(self, other: ClearedThrottle) -> ClearedThrottle:
        """Return what is missing here and not in the other."""
        return ClearedThrottle(self.rates - other.rates, self.entries - other.entries)

    def __str__(self) -> str:
        parts = [", ".join(f"the rate of {rate_subject(name)}" for name in sorted(self.rates))] * bool(self.rates)
        lists = sorted({str(name) for name, _ in self.entries})
        parts += [f"{len(self.entries)} replicas in the lists of {', '.join(lists)}"] * bool(lists)
        return " and ".join(parts)


def cleared_throttle(
    moves: Mapping[TopicPartition, Submission],
    wanted: Iterable[BrokerRate],
    snapshot: RunSnapshot,
    *,
    with_lists: bool,
) -> ClearedThrottle:
    """Return what running moves need of their throttle and is not in force; a rate that is unknown is not missing.

    Args:
        moves: the reassignments that run, whose throttle was in force when they began.
        wanted: rates that were in force since.
        snapshot: the cluster now.
        with_lists: whether the moves have a throttle.
    """
    rates = frozenset(name for name in wanted if (now := snapshot.rates.get(name)) and now.in_force is None)
    missing = _missing_entries(entries_of(moves), snapshot) if with_lists else {}
    # With its topic a list is gone for good.
    existing = {name: entries for name, entries in missing.items() if name.topic in snapshot.topic_ids}
    return ClearedThrottle(rates, frozenset((name, entry) for name, entries in existing.items() for entry in entries))


def unknown_rates(wanted: Iterable[BrokerRate], snapshot: RunSnapshot) -> tuple[BrokerRate, ...]:
    """Return the rates of brokers that are up and do not report theirs: whether they limit anything is unknown."""
    return tuple(sorted(name for name in wanted if name.broker in snapshot.alive and name not in snapshot.rates))


def broker_roles_of(moves: Mapping[TopicPartition, Submission]) -> frozenset[BrokerRole]:
    """Return the brokers and roles whose throttle limits some reassignments."""
    return frozenset(
        BrokerRole(broker, name.role) for name, entries in entries_of(moves).items() for _, broker in entries
    )


def is_changed_by_others(name: BrokerRate, now: RateInForce, record: RecordedRun) -> bool:
    """Return whether others have changed a rate since a run has set it or, if it has set none, since it began.

    A rate that is as before the run counts only if the broker had confirmed another one. Where no rate is in force any
    more, it was cleared, not changed.
    """
    if now.in_force is None:
        return False
    own = record.rates.get(name)
    if own is None:
        return name in record.rates_before and now.in_force != record.rates_before[name]
    if now.own in own.own:
        return False
    return now.own != own.before or (own.confirmed and now.own is not None)


def lowered_by_others(
    wanted: Mapping[BrokerRate, int], snapshot: RunSnapshot, record: RecordedRun
) -> dict[BrokerRate, int]:
    """Return the rates in force, bytes per second, that others have set during the run below the wanted ones.

    Args:
        wanted: rate of each broker and role, bytes per second.
        snapshot: the cluster now.
        record: the run so far.
    """
    lowered = {}
    for name, least in sorted(wanted.items()):
        now = snapshot.rates.get(name)
        if now is None or now.in_force is None or now.in_force >= least:
            continue
        if is_changed_by_others(name, now, record):
            lowered[name] = now.in_force
    return lowered


def entries_to_remove(record: RecordedRun, snapshot: RunSnapshot) -> dict[ThrottledList, frozenset[Entry]]:
    """Return the own entries of partitions whose reassignment has ended: they only use up the quota of the others.

    A reassignment that was submitted counts as running until its end is in the journal, because the metadata of a
    broker may be older than the submission.
    """
    ended = {
        name: frozenset(e for e in entries if _has_ended(TopicPartition(name.topic, e[0]), record, snapshot))
        for name, entries in record.entries.items()
    }
    return {name: entries for name, entries in ended.items() if entries}


def _has_ended(name: TopicPartition, record: RecordedRun, snapshot: RunSnapshot) -> bool:
    # An entry also stays while others move the partition: their copy may have no other throttle.
    return not snapshot.moves(name) and name not in record.unended_moves


@dataclass(frozen=True)
class RateRestoration:
    """What becomes of the rates that a run has set.

    Attributes:
        restore: rates to set: to what they were before.
        ended: rates that are as before already.
        kept: rates that were changed since, and so stay.
        unreachable: rates of brokers that are down or did not report them.
    """

    restore: Mapping[BrokerRate, PlannedRate]
    ended: tuple[BrokerRate, ...]
    kept: Mapping[BrokerRate, RateInForce]
    unreachable: tuple[BrokerRate, ...]


def rate_restoration(rates: Mapping[BrokerRate, OwnRate], snapshot: RunSnapshot) -> RateRestoration:
    """Return what becomes of the rates that a run has set, by what is in force now."""
    restore: dict[BrokerRate, PlannedRate] = {}
    kept: dict[BrokerRate, RateInForce] = {}
    ended: list[BrokerRate] = []
    unreachable: list[BrokerRate] = []
    for name, own in sorted(rates.items()):
        now = snapshot.rates.get(name)
        if now is None:
            unreachable.append(name)
        elif now.own == own.before:
            ended.append(name)
        elif now.own in own.own:
            restore[name] = PlannedRate(now.own, own.before)
        else:
            kept[name] = now
    return RateRestoration(restore, tuple(ended), kept, tuple(unreachable))


def changes_factor(moves: Iterable[Submission]) -> bool:
    """Return whether one of the reassignments changes the replication factor."""
    return any(len(move.before) != len(move.after) for move in moves)
