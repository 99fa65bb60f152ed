"""Which preferred leaders to elect, in what order and how many at a time, so that nothing else goes wrong meanwhile.

Kafka's own count is what is acted on: the share of the partitions that prefer a broker (it is the first of their
replicas) and that another one leads. A preferred leader is elected only where that can succeed and stay: its broker
alive and in sync, the partition not being moved.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import partial
from math import fsum, inf

from planning.elections.batching import BatchBudget, Batches
from planning.elections.constraints import Capacity, Throttles
from planning.elections.election_file import LARGEST_BYTES
from planning.elections.leadership import BrokerLeadership, Election
from planning.throttles.load import BrokerRole, PartitionTraffic, ThrottleLoad
from schemas.errors import HeadroomError

Name = tuple[str, int]


@dataclass(frozen=True, slots=True)
class PartitionState:
    """One partition as elections see it.

    Attributes:
        topic: topic.
        partition: partition.
        leader: leading broker; None: none.
        replicas: its replicas; the first is the preferred leader.
        isr: those in sync.
        moving: whether a reassignment of it is running.
        deleting: whether its topic is being deleted.
        min_insync_replicas: of its topic; None: unknown.
        write_bytes_per_s: bytes appended per second; None: unknown.
        read_bytes_per_s: bytes that consumers fetch from the leader per second; None: unknown.
    """

    topic: str
    partition: int
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    moving: bool = False
    deleting: bool = False
    min_insync_replicas: int | None = None
    write_bytes_per_s: float | None = None
    read_bytes_per_s: float | None = None


class Reason(str, Enum):
    """Why a partition that its preferred broker does not lead is in no batch.

    Attributes:
        MOVING: a reassignment of it is running: its replicas are in their final order already.
        PREFERRED_DOWN: the preferred broker is not alive.
        PREFERRED_OUT_OF_SYNC: the preferred broker is alive and not in the ISR.
        LEADERLESS: it has no leader, and nobody that could be elected by preference.
        DELETING: its topic is being deleted.
        AT_MIN_INSYNC: it lacks in-sync replicas and has no more than min.insync.replicas: it waits.
        OVER_CAPACITY: its preferred broker would have to carry more than it can.
        OVER_THROTTLE: the move that runs would starve, or nobody knows; a throttle has to be raised first.
        NOT_CHOSEN: the user left its topic or its broker out.
    """

    MOVING = "moving"
    PREFERRED_DOWN = "preferred_down"
    PREFERRED_OUT_OF_SYNC = "preferred_out_of_sync"
    LEADERLESS = "leaderless"
    DELETING = "deleting"
    AT_MIN_INSYNC = "at_min_insync"
    OVER_CAPACITY = "over_capacity"
    OVER_THROTTLE = "over_throttle"
    NOT_CHOSEN = "not_chosen"


# In words, of one partition.
WHY: Mapping[Reason, str] = {
    Reason.MOVING: "a reassignment of it is running",
    Reason.PREFERRED_DOWN: "its preferred broker is not alive",
    Reason.PREFERRED_OUT_OF_SYNC: "its preferred broker is not in sync",
    Reason.LEADERLESS: "it has no leader",
    Reason.DELETING: "its topic is being deleted",
    Reason.AT_MIN_INSYNC: "it lacks in-sync replicas and has no more than min.insync.replicas",
    Reason.OVER_CAPACITY: "its preferred broker would have to carry more than it can",
    Reason.OVER_THROTTLE: "a throttle of the running move would be too low",
    Reason.NOT_CHOSEN: "it was left out by --topics or --brokers",
}


@dataclass(frozen=True)
class BatchLimits:
    """What one batch may do at most.

    Attributes:
        partitions: partitions of a batch.
        partitions_per_broker: partitions of a batch whose lead one broker gains or gives up.
        write_bytes_per_s: sum of the write rates that get another leader; None: no limit.
        request_bytes: size of the file, and so of the request, of a batch.
        capacity_bytes_per_s: most that producers may write to the partitions one broker leads; None: not known.

    Raises:
        HeadroomError: a limit lets no election through.
    """

    partitions: int = 200
    partitions_per_broker: int = 50
    write_bytes_per_s: float | None = None
    request_bytes: int = 900_000
    capacity_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        """Refuse what could never be kept."""
        for name, least in (("partitions", 1), ("partitions_per_broker", 1), ("request_bytes", LARGEST_BYTES)):
            if getattr(self, name) < least:
                raise _bad_limit(name, f"at least {least}", getattr(self, name))
        for name in ("write_bytes_per_s", "capacity_bytes_per_s"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise _bad_limit(name, "above 0", limit)


@dataclass(frozen=True)
class Balance:
    """How one broker's leads differ from what is preferred.

    Attributes:
        broker: broker that is preferred for at least one partition.
        preferred_partitions: partitions that prefer it.
        non_preferred_partitions: those of them that another leads; leaderless ones are left out.
        electable_now: those of them that an election would give back to it.
        waiting_for_move: those of them that move.
        write_bytes_per_s: what is written to the partitions it leads; None: unknown.
        preferred_write_bytes_per_s: what would be if every preferred leader led; None: unknown.
    """

    broker: int
    preferred_partitions: int
    non_preferred_partitions: int
    electable_now: int
    waiting_for_move: int
    write_bytes_per_s: float | None = None
    preferred_write_bytes_per_s: float | None = None

    @property
    def imbalance_ratio(self) -> float:
        """Return the share by Kafka's definition, 0 to 1."""
        return self.non_preferred_partitions / self.preferred_partitions


@dataclass(frozen=True)
class RequiredThrottleIncrease:
    """A throttle that has to be raised before elections that it holds back.

    Attributes:
        side: broker and role.
        throttle_bytes_per_s: rate in force.
        required_bytes_per_s: what it has to exceed for all of them to be elected, in any order.
    """

    side: BrokerRole
    throttle_bytes_per_s: float
    required_bytes_per_s: float


@dataclass(frozen=True)
class Batch:
    """Elections of one request.

    Attributes:
        partitions: which, in order.
        write_bytes_per_s: sum of their known write rates.
        imbalance_ratios: ratio of every broker once it is done.
        unknown_rates: how many of them have no known write rate, and count as 0 wherever rates are summed up.
    """

    partitions: tuple[Name, ...]
    write_bytes_per_s: float
    imbalance_ratios: Mapping[int, float]
    unknown_rates: int = 0


@dataclass(frozen=True)
class SkippedPartition:
    """A partition that another than its preferred broker leads (or none), and that is in no batch."""

    topic: str
    partition: int
    preferred: int
    reason: Reason


@dataclass(frozen=True)
class ElectionPlan:
    """What to elect.

    Attributes:
        before: balance of every broker that is preferred for anything, by id.
        batches: in the order in which they are to be done.
        left_out: partitions in no batch, with the reason.
        raise_first: throttles to raise so that what is left out by OVER_THROTTLE can be elected, by broker and role;
            none where it is not known what they have to carry.
        after: balances once all batches are done.
    """

    before: tuple[Balance, ...]
    batches: tuple[Batch, ...]
    left_out: tuple[SkippedPartition, ...]
    raise_first: tuple[RequiredThrottleIncrease, ...]
    after: tuple[Balance, ...]


@dataclass(frozen=True)
class ClusterConstraints:
    """What else elections have to mind.

    Attributes:
        alive: brokers that are alive.
        throttled: the partitions that replication throttles list or a reassignment moves, as the throttles see them.
        throttles: rates in force by broker and role; None: none.
        internal: topics that come last.
        chosen_topics: only these; None: all.
        chosen_brokers: only partitions that prefer one of these; None: all.
        chosen_partitions: only these; None: all.
    """

    alive: frozenset[int]
    throttled: tuple[PartitionTraffic, ...] = ()
    throttles: Mapping[BrokerRole, float | None] = field(default_factory=dict)
    internal: frozenset[str] = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
    chosen_topics: frozenset[str] | None = None
    chosen_brokers: frozenset[int] | None = None
    chosen_partitions: frozenset[Name] | None = None


def balances(partitions: Iterable[PartitionState], alive: frozenset[int]) -> tuple[Balance, ...]:
    """Return the balance of every broker that is preferred for anything, by id.

    Topics that are being deleted are left out; a partition without a leader counts among those that prefer its broker
    and nowhere else.

    Args:
        partitions: of a whole cluster.
        alive: brokers that are alive.

    Source: Kafka 3.9, ``KafkaController.checkAndTriggerAutoLeaderRebalance``, which also counts a partition that has
    lost its leader as one that another leads, though no election can help there.
    """
    return _balances(_standings(partitions, alive))


def out_of_balance(balance: Balance, threshold_ratio: float) -> bool:
    """Return whether a broker misses so many leads that an election should give them back.

    What counts is the share that an election would give back now, and it must be greater than the threshold, as
    Kafka compares. What waits for a move, or for a replica to come back, is in ``imbalance_ratio`` and calls nobody:
    there is nothing to elect.

    Args:
        balance: of the broker.
        threshold_ratio: 0 to 1; Kafka's ``leader.imbalance.per.broker.percentage`` over 100.
    """
    # Divided, and not multiplied: 3 / 30 is the very number that 0.1 is.
    return balance.electable_now / balance.preferred_partitions > threshold_ratio


def plan_elections(
    partitions: Iterable[PartitionState], limits: BatchLimits, around: ClusterConstraints
) -> ElectionPlan:
    """Return which preferred leaders to elect, in batches that keep every limit, and why not the others.

    The plan does not depend on the order of the partitions. Each batch keeps capacity and throttles even if only
    some of its elections come about.

    Args:
        partitions: of a whole cluster, each once.
        limits: of one batch.
        around: brokers, throttles and choices.
    """
    known = [p for p in partitions if p.replicas]
    return plan_from_non_preferred(_standings(known, around.alive), known, limits, around)


def plan_from_non_preferred(
    standings: Mapping[int, BrokerLeadership],
    partitions: Iterable[PartitionState],
    limits: BatchLimits,
    around: ClusterConstraints,
) -> ElectionPlan:
    """Return the plan of ``plan_elections`` for a cluster whose brokers' standings were counted before.

    Args:
        standings: of every broker that leads, or is preferred for, anything, in the order of ids; the plan changes
            them.
        partitions: at least those that their preferred broker does not lead, each once, none without replicas.
        limits: of one batch.
        around: brokers, throttles and choices.
    """
    before = _balances(standings)
    elections, left_out = _sort_out(partitions, around)
    capacity = Capacity(standings, _or_endless(limits.capacity_bytes_per_s))
    throttles = Throttles(around.throttled, around.throttles, around.alive)
    batches = Batches(standings, partial(_room, limits), capacity, throttles)
    internal = [e for e in elections if e.topic in around.internal]
    ordinary = [e for e in elections if e.topic not in around.internal]
    made = [_batch(some, standings) for offered in (ordinary, internal) for some in batches.of(offered)]
    over_throttle = batches.among(throttles.waiting)
    left_out += [_left_out(e, Reason.OVER_CAPACITY) for e in batches.among(capacity.waiting)]
    left_out += [_left_out(e, Reason.OVER_THROTTLE) for e in over_throttle]
    return ElectionPlan(
        before=before,
        batches=tuple(made),
        left_out=tuple(sorted(left_out, key=lambda left: (left.topic, left.partition))),
        raise_first=tuple(_raise(demand) for demand in throttles.short(over_throttle)),
        after=_balances(standings),
    )


def _standings(partitions: Iterable[PartitionState], alive: frozenset[int]) -> dict[int, BrokerLeadership]:
    """Return what every broker leads and is preferred for, in the order of ids."""
    standings: dict[int, BrokerLeadership] = defaultdict(BrokerLeadership)
    led: dict[int, list[float]] = defaultdict(list)
    preferred: dict[int, list[float]] = defaultdict(list)
    for p in partitions:
        if p.deleting or not p.replicas:
            continue
        _count(p, standings, alive)
        if p.write_bytes_per_s is not None:
            preferred[p.replicas[0]].append(p.write_bytes_per_s)
            if p.leader is not None:
                led[p.leader].append(p.write_bytes_per_s)
    for broker, standing in standings.items():
        # Exact, so that the order of the partitions makes no difference.
        standing.led_bytes_per_s = fsum(led[broker])
        standing.preferred_bytes_per_s = fsum(preferred[broker])
    return dict(sorted(standings.items()))


def _count(p: PartitionState, standings: Mapping[int, BrokerLeadership], alive: frozenset[int]) -> None:
    own = standings[p.replicas[0]]
    own.preferred += 1
    own.unknown_preferred += p.write_bytes_per_s is None
    if p.leader is None:
        return
    leading = standings[p.leader]
    leading.leads += 1
    leading.unknown_led += p.write_bytes_per_s is None
    if leading is not own:
        own.missing += 1
        own.electable += _obstacle(p, alive) is None
        own.waiting += p.moving


def _balances(standings: Mapping[int, BrokerLeadership]) -> tuple[Balance, ...]:
    return tuple(_balance(broker, own) for broker, own in standings.items() if own.preferred)


def _balance(broker: int, standing: BrokerLeadership) -> Balance:
    return Balance(
        broker=broker,
        preferred_partitions=standing.preferred,
        non_preferred_partitions=standing.missing,
        electable_now=standing.electable,
        waiting_for_move=standing.waiting,
        write_bytes_per_s=None if standing.unknown_led else standing.led_bytes_per_s,
        preferred_write_bytes_per_s=None if standing.unknown_preferred else standing.preferred_bytes_per_s,
    )


def _sort_out(
    partitions: Iterable[PartitionState], around: ClusterConstraints
) -> tuple[list[Election], list[SkippedPartition]]:
    """Return the elections that can be held, and the other partitions that their preferred broker does not lead."""
    elections, left_out = [], []
    for p in partitions:
        preferred = p.replicas[0]
        if p.leader == preferred:
            continue
        reason = _reason(p, around)
        if reason is None:
            assert p.leader is not None, "a partition without a leader has a reason"
            rate = p.write_bytes_per_s
            elections.append(Election(p.topic, p.partition, preferred, p.leader, rate or 0.0, rate is not None))
        else:
            left_out.append(SkippedPartition(p.topic, p.partition, preferred, reason))
    return elections, left_out


def _reason(p: PartitionState, around: ClusterConstraints) -> Reason | None:
    """Return why a partition that its preferred broker does not lead is not to be elected; None: it is."""
    if around.chosen_topics is not None and p.topic not in around.chosen_topics:
        return Reason.NOT_CHOSEN
    if around.chosen_brokers is not None and p.replicas[0] not in around.chosen_brokers:
        return Reason.NOT_CHOSEN
    if around.chosen_partitions is not None and (p.topic, p.partition) not in around.chosen_partitions:
        return Reason.NOT_CHOSEN
    obstacle = _obstacle(p, around.alive)
    if obstacle is None and len(p.isr) < len(p.replicas) and len(p.isr) <= (p.min_insync_replicas or 0):
        return Reason.AT_MIN_INSYNC
    return obstacle


def _obstacle(p: PartitionState, alive: frozenset[int]) -> Reason | None:
    """Return why an election would not give a partition back to its preferred broker; None: it would."""
    if p.deleting:
        return Reason.DELETING
    if p.leader is None:
        return Reason.LEADERLESS
    if p.moving:
        return Reason.MOVING
    if p.replicas[0] not in alive:
        return Reason.PREFERRED_DOWN
    return None if p.replicas[0] in p.isr else Reason.PREFERRED_OUT_OF_SYNC


def _room(limits: BatchLimits) -> BatchBudget:
    most_bytes_per_s = _or_endless(limits.write_bytes_per_s)
    return BatchBudget(limits.partitions, limits.partitions_per_broker, most_bytes_per_s, limits.request_bytes)


def _or_endless(limit: float | None) -> float:
    return inf if limit is None else limit


def _batch(elections: Sequence[Election], standings: Mapping[int, BrokerLeadership]) -> Batch:
    """Return a batch as told, with standings as it leaves them."""
    return Batch(
        partitions=tuple((e.topic, e.partition) for e in elections),
        write_bytes_per_s=sum(e.write_bytes_per_s for e in elections),
        imbalance_ratios={broker: own.imbalance_ratio for broker, own in standings.items() if own.preferred},
        unknown_rates=sum(not e.rate_known for e in elections),
    )


def _left_out(election: Election, reason: Reason) -> SkippedPartition:
    return SkippedPartition(election.topic, election.partition, election.gains, reason)


def _raise(demand: ThrottleLoad) -> RequiredThrottleIncrease:
    assert demand.throttle_bytes_per_s is not None, "a throttle that is too low is in force"
    assert demand.required_bytes_per_s is not None, "a throttle is too low for something known"
    return RequiredThrottleIncrease(
        (demand.broker, demand.role), demand.throttle_bytes_per_s, demand.required_bytes_per_s
    )


def _bad_limit(name: str, wanted: str, value: float) -> HeadroomError:
    return HeadroomError(f"{name} of a batch", f"must be {wanted}, not {value:g}", "Give a greater one.")
