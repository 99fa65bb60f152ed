"""Planner of preferred leader elections: partitions, order and batches, under the limits of the cluster.

Imbalance is counted as in Kafka: the share of a broker's preferred partitions (it is the first of their replicas) that
another broker leads. An election is planned only if it can succeed and last. The preferred leader must be alive and in
sync, and the partition must not be in a reassignment.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from math import fsum, inf

from headroom.planning.elections.batching import BatchBudget, Batches
from headroom.planning.elections.constraints import Capacity, Throttles
from headroom.planning.elections.election_file import LARGEST_BYTES
from headroom.planning.elections.leadership import BrokerLeadership, Election
from headroom.planning.quotas.load import PartitionTraffic, ThrottleLoad
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import BrokerRole, TopicPartition


@dataclass(frozen=True, slots=True)
class PartitionState:
    """Replicas, leader and rates of one partition, as input of the planner.

    Attributes:
        name: topic and number of the partition.
        leader: broker id of the leader; None if there is no leader.
        replicas: replicas; the first is the preferred leader.
        isr: in-sync replicas.
        moving: true while a reassignment of it is running.
        deleting: true while its topic is being deleted.
        min_insync_replicas: min.insync.replicas of its topic; None if unknown.
        write_bytes_per_s: bytes appended per second; None if unknown.
        read_bytes_per_s: bytes that consumers fetch from the leader per second; None if unknown.
    """

    name: TopicPartition
    leader: int | None
    replicas: tuple[int, ...]
    isr: tuple[int, ...]
    moving: bool = False
    deleting: bool = False
    min_insync_replicas: int | None = None
    write_bytes_per_s: float | None = None
    read_bytes_per_s: float | None = None


class Reason(str, Enum):
    """Reason why a partition that its preferred broker does not lead is in no batch.

    Attributes:
        MOVING: a reassignment of it is running; its replicas are already in their final order.
        PREFERRED_DOWN: the preferred broker is not alive.
        PREFERRED_OUT_OF_SYNC: the preferred broker is alive, but not in the ISR.
        LEADERLESS: it has no leader, and no replica can be elected as the preferred one.
        DELETING: its topic is being deleted.
        AT_MIN_INSYNC: it is under-replicated and has at most min.insync.replicas in-sync replicas, so it waits.
        OVER_CAPACITY: its preferred broker would exceed its capacity.
        OVER_THROTTLE: a throttle of the running move would be too low, or may be; it must be raised first.
        NOT_CHOSEN: the user excluded its topic, its broker or the partition.
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


# Texts of the reasons; the subject is one partition.
WHY: Mapping[Reason, str] = {
    Reason.MOVING: "a reassignment of it is running",
    Reason.PREFERRED_DOWN: "its preferred broker is not alive",
    Reason.PREFERRED_OUT_OF_SYNC: "its preferred broker is not in sync",
    Reason.LEADERLESS: "it has no leader",
    Reason.DELETING: "its topic is being deleted",
    Reason.AT_MIN_INSYNC: "it lacks in-sync replicas and has no more than min.insync.replicas",
    Reason.OVER_CAPACITY: "its preferred broker would have to carry more than it can",
    Reason.OVER_THROTTLE: "a throttle of the running move would be too low",
    Reason.NOT_CHOSEN: "it was left out by --topics, --brokers or --file",
}


@dataclass(frozen=True)
class BatchLimits:
    """Limits of one batch.

    Attributes:
        partitions: maximum number of partitions.
        partitions_per_broker: maximum number of leaders that one broker gains or loses.
        write_bytes_per_s: maximum sum of the write rates that change their leader; None if unlimited.
        request_bytes: maximum size of the file, and so of the request, of a batch.
        capacity_bytes_per_s: maximum write rate of the partitions that one broker leads; None if unknown.

    Raises:
        HeadroomError: a limit allows no election.
    """

    partitions: int = 200
    partitions_per_broker: int = 50
    write_bytes_per_s: float | None = None
    request_bytes: int = 900_000
    capacity_bytes_per_s: float | None = None

    def __post_init__(self) -> None:
        """Reject limits that allow no election."""
        for name, least in (("partitions", 1), ("partitions_per_broker", 1), ("request_bytes", LARGEST_BYTES)):
            if getattr(self, name) < least:
                raise _bad_limit(name, f"at least {least}", getattr(self, name))
        for name in ("write_bytes_per_s", "capacity_bytes_per_s"):
            limit = getattr(self, name)
            if limit is not None and not limit > 0:
                raise _bad_limit(name, "above 0", limit)


@dataclass(frozen=True)
class Balance:
    """Difference between the leaders and the preferred leaders of one broker.

    Attributes:
        broker: broker that is the preferred leader of at least one partition.
        preferred_partitions: partitions whose preferred leader it is.
        non_preferred_partitions: partitions of these that another broker leads; leaderless ones are excluded.
        electable_now: partitions of these that an election would return to it.
        waiting_for_move: partitions of these in a reassignment.
        write_bytes_per_s: write rate of the partitions that it leads; None if unknown.
        preferred_write_bytes_per_s: write rate if every preferred leader led; None if unknown.
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
        """Return the imbalance by Kafka's definition, 0 to 1."""
        return self.non_preferred_partitions / self.preferred_partitions


@dataclass(frozen=True)
class RequiredThrottleIncrease:
    """A throttle that must be raised before the elections that it defers.

    Attributes:
        broker_role: broker and role.
        throttle_bytes_per_s: rate in force.
        required_bytes_per_s: rate to exceed so that all of them can be elected, in any order.
    """

    broker_role: BrokerRole
    throttle_bytes_per_s: float
    required_bytes_per_s: float

    @classmethod
    def of(cls, load: ThrottleLoad) -> RequiredThrottleIncrease:
        """Return the increase of a throttle that is too low."""
        assert load.throttle_bytes_per_s is not None, "a throttle that is too low is in force"
        assert load.required_bytes_per_s is not None, "a throttle is too low for something known"
        return cls(load.broker_role, load.throttle_bytes_per_s, load.required_bytes_per_s)


@dataclass(frozen=True)
class Batch:
    """Elections of one request.

    Attributes:
        partitions: partitions in order.
        write_bytes_per_s: sum of their known write rates.
        imbalance_ratios: imbalance of every broker after the batch.
        unknown_rates: number of partitions with an unknown write rate, which count as 0 in all sums.
    """

    partitions: tuple[TopicPartition, ...]
    write_bytes_per_s: float
    imbalance_ratios: Mapping[int, float]
    unknown_rates: int = 0


@dataclass(frozen=True)
class SkippedPartition:
    """A partition in no batch that its preferred broker does not lead, with the reason."""

    name: TopicPartition
    preferred: int
    reason: Reason


@dataclass(frozen=True)
class ElectionPlan:
    """Batches of elections, and the balance of brokers before and after them.

    Attributes:
        before: balance of every broker that is the preferred leader of a partition, by id.
        batches: batches in their order.
        left_out: partitions in no batch, with the reason.
        raise_first: throttles to raise before the partitions skipped by OVER_THROTTLE can be elected, by broker and
            role; throttles with an unknown load are omitted.
        after: balances after all batches.
    """

    before: tuple[Balance, ...]
    batches: tuple[Batch, ...]
    left_out: tuple[SkippedPartition, ...]
    raise_first: tuple[RequiredThrottleIncrease, ...]
    after: tuple[Balance, ...]


@dataclass(frozen=True)
class ClusterConstraints:
    """Brokers and throttles of a cluster, and the user's selection of partitions.

    Attributes:
        alive: live brokers.
        throttled: traffic of the partitions in throttled replica lists or in a reassignment.
        throttles: rates in force by broker and role; None for none.
        internal: topics to be elected last.
        chosen_topics: selected topics; None if all.
        chosen_brokers: preferred leaders of the selected partitions; None if all.
        chosen_partitions: selected partitions; None if all.
    """

    alive: frozenset[int]
    throttled: tuple[PartitionTraffic, ...] = ()
    throttles: Mapping[BrokerRole, float | None] = field(default_factory=dict)
    internal: frozenset[str] = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
    chosen_topics: frozenset[str] | None = None
    chosen_brokers: frozenset[int] | None = None
    chosen_partitions: frozenset[TopicPartition] | None = None


def balances(partitions: Iterable[PartitionState], alive: frozenset[int]) -> tuple[Balance, ...]:
    """Return the balance of every broker that is the preferred leader of a partition, by id.

    Topics that are being deleted are ignored. A partition without a leader counts in ``preferred_partitions`` only.

    Args:
        partitions: all partitions of a cluster.
        alive: live brokers.

    Source: Kafka 3.9, ``KafkaController.checkAndTriggerAutoLeaderRebalance``. Unlike here, it counts a leaderless
    partition as led by another broker, although no election can help.
    """
    return _balances(_leadership(partitions, alive))


def out_of_balance(balance: Balance, threshold_ratio: float) -> bool:
    """Return whether a broker's electable imbalance exceeds the threshold.

    Only partitions that an election would return now are compared, with "greater than" as in Kafka. Partitions that
    wait for a reassignment or for an out-of-sync replica count in ``imbalance_ratio``, but cause no alert, because no
    election helps.

    Args:
        balance: balance of the broker.
        threshold_ratio: threshold from 0 to 1; Kafka's ``leader.imbalance.per.broker.percentage`` / 100.
    """
    # A division, because 3 / 30 is exactly the float 0.1, so a share at the threshold does not exceed it.
    return balance.electable_now / balance.preferred_partitions > threshold_ratio


def why_not_electable(balance: Balance, threshold_ratio: float, is_alive: bool) -> str | None:
    """Return why a broker whose imbalance exceeds its threshold is not out of balance; None for any other broker.

    Args:
        balance: balance of the broker.
        threshold_ratio: of ``out_of_balance``.
        is_alive: whether the broker is up.
    """
    if out_of_balance(balance, threshold_ratio) or balance.imbalance_ratio <= threshold_ratio:
        return None
    if not is_alive:
        return f"not electable, broker {balance.broker} is down"
    if balance.waiting_for_move == balance.non_preferred_partitions:
        return "not electable, its partitions wait for the move"
    if balance.electable_now + balance.waiting_for_move:
        return f"only {balance.electable_now} of {balance.non_preferred_partitions} partitions electable"
    return "not electable, its replicas are out of sync"


def plan_elections(
    partitions: Iterable[PartitionState], limits: BatchLimits, constraints: ClusterConstraints
) -> ElectionPlan:
    """Return the elections of preferred leaders in batches within all limits, and the reasons for skipped partitions.

    The plan does not depend on the order of the partitions. Each batch respects capacity and throttles even if only
    some of its elections succeed.

    Args:
        partitions: all partitions of a cluster, each once.
        limits: limits of one batch.
        constraints: brokers, throttles and selection.
    """
    known = [p for p in partitions if p.replicas]
    return plan_from_non_preferred(_leadership(known, constraints.alive), known, limits, constraints)


def plan_from_non_preferred(
    leadership: Mapping[int, BrokerLeadership],
    partitions: Iterable[PartitionState],
    limits: BatchLimits,
    constraints: ClusterConstraints,
) -> ElectionPlan:
    """Return the plan of ``plan_elections`` for brokers whose leadership was counted before.

    Args:
        leadership: leadership of every broker with a leader or a preferred partition, in the order of ids; it is
            changed.
        partitions: at least the partitions that their preferred broker does not lead, each once, all with replicas.
        limits: limits of one batch.
        constraints: brokers, throttles and selection.
    """
    before = _balances(leadership)
    elections, left_out = _electable_and_skipped(partitions, constraints)
    capacity = Capacity(leadership, _or_infinite(limits.capacity_bytes_per_s))
    throttles = Throttles(constraints.throttled, constraints.throttles, constraints.alive)

    def new_budget() -> BatchBudget:
        most_bytes_per_s = _or_infinite(limits.write_bytes_per_s)
        return BatchBudget(limits.partitions, limits.partitions_per_broker, most_bytes_per_s, limits.request_bytes)

    batches = Batches(leadership, new_budget, capacity, throttles)
    internal = [e for e in elections if e.name.topic in constraints.internal]
    ordinary = [e for e in elections if e.name.topic not in constraints.internal]
    made = [_batch(some, leadership) for offered in (ordinary, internal) for some in batches.make(offered)]
    over_throttle = batches.deferred_in(throttles.waiting)
    over_capacity = batches.deferred_in(capacity.waiting)
    left_out += [SkippedPartition(e.name, e.to_broker, Reason.OVER_CAPACITY) for e in over_capacity]
    left_out += [SkippedPartition(e.name, e.to_broker, Reason.OVER_THROTTLE) for e in over_throttle]
    return ElectionPlan(
        before=before,
        batches=tuple(made),
        left_out=tuple(sorted(left_out, key=lambda left: left.name)),
        raise_first=tuple(map(RequiredThrottleIncrease.of, throttles.too_low(over_throttle))),
        after=_balances(leadership),
    )


def _leadership(partitions: Iterable[PartitionState], alive: frozenset[int]) -> dict[int, BrokerLeadership]:
    """Return the leadership of every broker, in the order of ids."""
    leadership: dict[int, BrokerLeadership] = defaultdict(BrokerLeadership)
    led: dict[int, list[float]] = defaultdict(list)
    preferred: dict[int, list[float]] = defaultdict(list)
    for p in partitions:
        if p.deleting or not p.replicas:
            continue
        _count(p, leadership, alive)
        if p.write_bytes_per_s is not None:
            preferred[p.replicas[0]].append(p.write_bytes_per_s)
            if p.leader is not None:
                led[p.leader].append(p.write_bytes_per_s)
    for broker, own in leadership.items():
        # fsum is exact, so the order of the partitions makes no difference.
        own.led_bytes_per_s = fsum(led[broker])
        own.preferred_bytes_per_s = fsum(preferred[broker])
    return dict(sorted(leadership.items()))


def _count(p: PartitionState, leadership: Mapping[int, BrokerLeadership], alive: frozenset[int]) -> None:
    own = leadership[p.replicas[0]]
    own.preferred += 1
    own.unknown_preferred += p.write_bytes_per_s is None
    if p.leader is None:
        return
    leading = leadership[p.leader]
    leading.leads += 1
    leading.unknown_led += p.write_bytes_per_s is None
    if leading is not own:
        own.missing += 1
        own.electable += _blocked_by(p, alive) is None
        own.waiting += p.moving


def _balances(leadership: Mapping[int, BrokerLeadership]) -> tuple[Balance, ...]:
    return tuple(_balance(broker, own) for broker, own in leadership.items() if own.preferred)


def _balance(broker: int, own: BrokerLeadership) -> Balance:
    return Balance(
        broker=broker,
        preferred_partitions=own.preferred,
        non_preferred_partitions=own.missing,
        electable_now=own.electable,
        waiting_for_move=own.waiting,
        write_bytes_per_s=None if own.unknown_led else own.led_bytes_per_s,
        preferred_write_bytes_per_s=None if own.unknown_preferred else own.preferred_bytes_per_s,
    )


def _electable_and_skipped(
    partitions: Iterable[PartitionState], constraints: ClusterConstraints
) -> tuple[list[Election], list[SkippedPartition]]:
    """Return the possible elections, and the other partitions that their preferred broker does not lead."""
    elections, left_out = [], []
    for p in partitions:
        preferred = p.replicas[0]
        if p.leader == preferred:
            continue
        reason = _reason(p, constraints)
        if reason is None:
            assert p.leader is not None, "a partition without a leader has a reason"
            rate = p.write_bytes_per_s
            elections.append(Election(p.name, preferred, p.leader, rate or 0.0, rate is not None))
        else:
            left_out.append(SkippedPartition(p.name, preferred, reason))
    return elections, left_out


def _reason(p: PartitionState, constraints: ClusterConstraints) -> Reason | None:
    """Return why a partition that its preferred broker does not lead is not elected; None if it is."""
    if constraints.chosen_topics is not None and p.name.topic not in constraints.chosen_topics:
        return Reason.NOT_CHOSEN
    if constraints.chosen_brokers is not None and p.replicas[0] not in constraints.chosen_brokers:
        return Reason.NOT_CHOSEN
    if constraints.chosen_partitions is not None and p.name not in constraints.chosen_partitions:
        return Reason.NOT_CHOSEN
    blocked_by = _blocked_by(p, constraints.alive)
    if blocked_by is None and len(p.isr) < len(p.replicas) and len(p.isr) <= (p.min_insync_replicas or 0):
        return Reason.AT_MIN_INSYNC
    return blocked_by


def _blocked_by(p: PartitionState, alive: frozenset[int]) -> Reason | None:
    """Return why an election would not return a partition to its preferred broker; None if it would."""
    if p.deleting:
        return Reason.DELETING
    if p.leader is None:
        return Reason.LEADERLESS
    if p.moving:
        return Reason.MOVING
    if p.replicas[0] not in alive:
        return Reason.PREFERRED_DOWN
    return None if p.replicas[0] in p.isr else Reason.PREFERRED_OUT_OF_SYNC


def _or_infinite(limit: float | None) -> float:
    return inf if limit is None else limit


def _batch(elections: Sequence[Election], leadership: Mapping[int, BrokerLeadership]) -> Batch:
    """Return a batch, with the imbalance of the brokers after it."""
    return Batch(
        partitions=tuple(e.name for e in elections),
        write_bytes_per_s=sum(e.write_bytes_per_s for e in elections),
        imbalance_ratios={broker: own.imbalance_ratio for broker, own in leadership.items() if own.preferred},
        unknown_rates=sum(not e.rate_known for e in elections),
    )


def _bad_limit(name: str, wanted: str, value: float) -> HeadroomError:
    return HeadroomError(f"{name} of a batch", f"must be {wanted}, not {value:g}", "Give a greater one.")
