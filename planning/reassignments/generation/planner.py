"""Planner of reassignments: from what is wanted to the target replicas of every partition."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from enum import Enum
from statistics import fmean

from headroom.planning.reassignments.cluster_state import ClusterState, PartitionPlacement
from headroom.planning.reassignments.generation.broker_loads import BrokerLoads, DiskSpace
from headroom.planning.reassignments.generation.draft import Draft
from headroom.planning.reassignments.generation.leads import spread_leads
from headroom.planning.reassignments.generation.placement import Placement, topic_replicas
from headroom.planning.reassignments.generation.quotas import replica_quotas
from headroom.planning.reassignments.generation.racks import Racks, racks_of
from headroom.planning.reassignments.generation.reduction import reduce_drafts
from headroom.planning.reassignments.generation.request import PlanRequest, check_request
from headroom.planning.reassignments.generation.spreading import Spreading
from headroom.planning.reassignments.plan import ReassignmentPlan, TargetAssignment
from headroom.planning.reassignments.room.naming import naming_notes, with_named_directories
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import TopicPartition
from headroom.schemas.text.amounts import size_text
from headroom.schemas.text.names import broker_names

_SHOWN = 5


class PlanExclusion(str, Enum):
    """Reason why a partition that the request is about is not in the plan; the values are text for people.

    Attributes:
        MOVING: a reassignment of it is running.
        LEADERLESS: it has no leader, so no replica can copy it.
        DEAD_REPLICA: only its order may change, and one of its replicas is on a broker that is down.
    """

    MOVING = "a reassignment of it is running"
    LEADERLESS = "it has no leader to copy from"
    DEAD_REPLICA = "one of its replicas is on a broker that is down"


@dataclass(frozen=True)
class MadePlan:
    """A plan that was made for a request.

    Attributes:
        plan: target replicas of the partitions that change, in the order of their names. Log directories are named on
            brokers that may overfill one otherwise.
        leads_first: orders of the present replicas in which drained brokers are no preferred leaders any more. They
            copy nothing, and are carried out, with elections, before the plan.
        excluded: partitions that the request is about but that cannot be changed now, with the reason.
        notes: other facts to know, in sentences.
    """

    plan: ReassignmentPlan
    leads_first: tuple[TargetAssignment, ...] = ()
    excluded: dict[TopicPartition, PlanExclusion] = field(default_factory=dict)
    notes: tuple[str, ...] = ()


def make_plan(state: ClusterState, request: PlanRequest) -> MadePlan:
    """Return the plan that fulfils a request with the fewest copies.

    It depends neither on the order of anything in the input nor on chance. A partition that it changes has its own
    number of replicas (or the requested one), none twice, none on a broker that is down, and as many racks as possible
    (only ``replace`` and a mere reorder take racks as they come). A present first replica that stays remains the first,
    unless the request reorders. Within that, replicas, preferred leads and bytes are spread over the destinations.

    Args:
        state: the cluster.
        request: what is wanted.

    Raises:
        HeadroomError: the request does not fit the cluster (``check_request``), or a partition is to have more replicas
            than there are brokers.
    """
    check_request(request, state)
    # In the order of names from here on: later sorts by size keep it where sizes are equal.
    requested = (p for p in state.partitions.values() if request.topics is None or p.topic in request.topics)
    partitions = sorted(requested, key=lambda p: (p.topic, p.partition))
    alive = state.alive
    reasons = [_exclusion(p, request, alive) for p in partitions]
    racks = racks_of(state.brokers, request.destinations(state.open), request.rack_aware)
    sizes, keepers = _Sizes(partitions), request.keepers(alive)
    unchangeable = [p for p, reason in zip(partitions, reasons, strict=True) if reason is not None]
    drafts = [
        _draft(p, request, keepers, sizes) for p, reason in zip(partitions, reasons, strict=True) if reason is None
    ]
    _check_factors(drafts, racks)
    loads = _loads(state, request, unchangeable, drafts, sizes)
    disks = DiskSpace(state.brokers, racks.destinations)
    _choose_replicas(drafts, request, loads, racks, disks)
    _choose_leads(drafts, request, loads)
    changed = [draft for draft in drafts if tuple(draft.replicas) != draft.present.replicas]
    targets = ReassignmentPlan(tuple(TargetAssignment(d.present.name, tuple(d.replicas)) for d in changed))
    plan, named = with_named_directories(targets, state)
    return MadePlan(
        plan=plan,
        leads_first=tuple(_leads_first(changed, request, state)),
        excluded={p.name: reason for p, reason in zip(partitions, reasons, strict=True) if reason is not None},
        notes=(
            *_dead_notes(sizes, changed, request, alive),
            *_cordoned_notes(changed, request, state),
            *_notes(sizes, changed, request, racks, disks),
            *naming_notes(named),
        ),
    )


class _Sizes:
    """Sizes of partitions; an unknown one counts as the mean of the known ones, and as 1 if none is known."""

    def __init__(self, partitions: Iterable[PartitionPlacement]) -> None:
        sizes = [p.size_bytes for p in partitions]
        known = [size for size in sizes if size is not None]
        self.unknown = len(sizes) - len(known)
        self.any_known = bool(known)
        self._default_bytes = round(fmean(known)) if known else 1

    def of(self, p: PartitionPlacement) -> int:
        """Return the size of a partition in bytes."""
        return self._default_bytes if p.size_bytes is None else p.size_bytes


def _exclusion(p: PartitionPlacement, request: PlanRequest, alive: frozenset[int]) -> PlanExclusion | None:
    """Return why a partition cannot be changed; None if it can, or need not be."""
    touched = _is_touched(p, request)
    if not (touched or request.reorder):
        return None
    if p.moving:
        return PlanExclusion.MOVING
    if p.leader is None or p.leader not in alive:
        return PlanExclusion.LEADERLESS
    if not touched and not alive.issuperset(p.replicas):
        return PlanExclusion.DEAD_REPLICA
    return None


def _is_touched(p: PartitionPlacement, request: PlanRequest) -> bool:
    """Return whether the replicas of a partition may change, apart from their order."""
    factor = request.replication_factor
    if request.spreads or (factor is not None and factor != len(p.replicas)):
        return True
    return not (request.drain.isdisjoint(p.replicas) and request.replace.keys().isdisjoint(p.replicas))


def _draft(p: PartitionPlacement, request: PlanRequest, keepers: frozenset[int], sizes: _Sizes) -> Draft:
    """Return the draft of a partition, with the replicas that stay or are replaced one by one."""
    if not _is_touched(p, request):
        return Draft(p, sizes.of(p), len(p.replicas), list(p.replicas), touched=False)
    chosen = [request.replace.get(b, b if b in keepers else None) for b in p.replicas]
    staying = [b for b in dict.fromkeys(chosen) if b is not None]
    return Draft(p, sizes.of(p), request.replication_factor or len(p.replicas), staying)


def _check_factors(drafts: Iterable[Draft], racks: Racks) -> None:
    for draft in drafts:
        possible = len(racks.destinations.union(draft.replicas))
        if draft.factor > possible:
            raise HeadroomError(
                str(draft.present.name),
                f"is to have {draft.factor} replicas, but only {possible} brokers can have one",
                "Name more brokers, or a smaller replication factor.",
            )


def _loads(
    state: ClusterState,
    request: PlanRequest,
    unchangeable: Iterable[PartitionPlacement],
    drafts: Iterable[Draft],
    sizes: _Sizes,
) -> BrokerLoads:
    """Return the loads of the requested topics, without the preferred leads of the drafts.

    Bytes are those of all topics, because all share the disks. Only where the requested topics are spread anew, bytes
    are theirs alone, as is their share of each broker.
    """
    loads = BrokerLoads()
    for draft in drafts:
        loads.count(draft.present.topic, draft.replicas, draft.size_bytes)
    for p in unchangeable:
        loads.count(p.topic, p.target, sizes.of(p))
        loads.count_lead(p.topic, p.replicas[0])
    if request.topics is not None and not request.spreads:
        for p in state.partitions.values():
            if p.topic not in request.topics:
                for broker in p.replicas:
                    loads.bytes[broker] += sizes.of(p)
    return loads


def _choose_replicas(
    drafts: Sequence[Draft], request: PlanRequest, loads: BrokerLoads, racks: Racks, disks: DiskSpace
) -> None:
    """Complete the replicas of the drafts; count them, and the preferred leads."""
    touched = [draft for draft in drafts if draft.touched]
    if request.replace:
        # Their destinations were named, whatever rack they are in.
        for draft in touched:
            for broker in set(draft.replicas).difference(draft.present.replicas):
                disks.take(broker, draft.size_bytes)
    else:
        reduce_drafts(touched, loads, racks, first_stays=not request.reorder)
    quotas = replica_quotas(touched, loads, racks, may_give=request.spreads)
    # Brokers over which topics are spread anew share their bytes, whatever else is on the disks.
    Placement(loads, quotas, racks, disks, topic_replicas(loads, touched), by_disk=not request.spreads).place(touched)
    for draft in drafts:
        loads.count_lead(draft.present.topic, draft.replicas[0])
    if request.spreads:
        Spreading(touched, loads, quotas, racks, disks).run()


def _choose_leads(drafts: Sequence[Draft], request: PlanRequest, loads: BrokerLoads) -> None:
    """Choose the first replicas of the drafts.

    Replicas in sync are preferred, because they can lead at once. A new one cannot before the end: it is an option
    where leads would be uneven without it.
    """
    free = [d for d in drafts if request.reorder or (d.replicas[0] != d.present.replicas[0] and not request.replace)]
    for draft in free:
        p = draft.present
        draft.lead_options = tuple(b for b in draft.replicas if b in p.isr or (request.reorder and b == p.replicas[0]))
    if not request.spreads:
        spread_leads(free, loads, request.reorder)
    for draft in free:
        new = (b for b in draft.replicas if b not in draft.present.replicas)
        draft.lead_options = tuple(dict.fromkeys((*draft.lead_options, *new)))
    spread_leads(free, loads, request.reorder)


def _leads_first(changed: Iterable[Draft], request: PlanRequest, state: ClusterState) -> Iterator[TargetAssignment]:
    """Yield the present replicas of partitions that a drained broker leads, with another one in sync in front."""
    draining = request.drain & state.alive
    for draft in changed:
        p = draft.present
        first = next((b for b in draft.replicas if b in p.isr and b in p.replicas), None)
        if first is not None and (p.leader in draining or p.replicas[0] in draining):
            yield TargetAssignment(p.name, (first, *(b for b in p.replicas if b != first)))


def _is_on_new_broker(p: PartitionPlacement, request: PlanRequest) -> bool:
    """Return whether a partition would have two replicas on a broker that takes the place of another."""
    replaced = [request.replace.get(broker, broker) for broker in p.replicas]
    return len(set(replaced)) < len(replaced)


def _dead_notes(sizes: _Sizes, changed: Iterable[Draft], request: PlanRequest, alive: frozenset[int]) -> Iterator[str]:
    """Yield, as a sentence, the copies for brokers that are down, although the request does not name them."""
    replaced: Counter[int] = Counter()
    copies = copied_bytes = 0
    for draft in changed:
        replicas = draft.present.replicas
        named = request.drain | request.replace.keys()
        dead = [b for b in replicas if b not in alive and b not in named and b not in draft.replicas]
        # With fewer replicas than before, some of them are not replaced.
        new = min(len(dead), len(set(draft.replicas).difference(replicas)))
        if new:
            replaced.update(dead)
            copies += new
            untiered = draft.present.untiered_bytes
            copied_bytes += new * (draft.size_bytes if untiered is None else untiered)
    if not copies:
        return
    names = ", ".join(f"{broker} ({number:,})" for broker, number in sorted(replaced.items()))
    size = f", {size_text(copied_bytes)}" if sizes.any_known else ""
    yield (
        f"Replicas on brokers that are down are replaced too: broker {names}. That is {copies:,} of the copies{size}. "
        "To keep these replicas, start the broker, and make the plan again."
    )


def _cordoned_notes(changed: Collection[Draft], request: PlanRequest, state: ClusterState) -> Iterator[str]:
    """Yield, as a sentence, the brokers that get no replicas because they are cordoned."""
    passed_over = (state.alive - state.open) - request.drain - request.replace.keys()
    if changed and passed_over and request.places and request.to_brokers is None:
        names = broker_names(sorted(passed_over), _SHOWN)
        yield f"No new replica is placed on {names}, because all log directories there are cordoned."


def _notes(
    sizes: _Sizes, changed: Collection[Draft], request: PlanRequest, racks: Racks, disks: DiskSpace
) -> Iterator[str]:
    if changed and not sizes.any_known:
        yield "No size of a partition is known: replicas are spread by their number."
    elif changed and sizes.unknown:
        yield f"The size of {sizes.unknown} partitions is unknown: the mean of the others is assumed for them."
    if disks.overfull:
        yield f"The free space of broker {', '.join(map(str, disks.overfull))} is not enough for the copies."
    if not request.replace:
        return
    if elsewhere := sum(_is_on_new_broker(draft.present, request) for draft in changed):
        yield f"{elsewhere} partitions have a replica on the new broker already: another broker gets their second one."
    crowded = sum(len(racks.without_crowding(draft.replicas, draft.factor)) < draft.factor for draft in changed)
    if crowded:
        yield f"{crowded} partitions could have their replicas in more racks: --drain chooses brokers by their racks."
