"""Which preferred leaders to elect, in what order and how many at a time, so that nothing else goes wrong meanwhile.

Kafka's own count is what is acted on: the share of the partitions that prefer a broker (it is the first of their
replicas) and that another one leads. A preferred leader is elected only where that can succeed and stay: its broker
alive and in sync, the partition not being moved.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import Enum

from planning.throttle import PartitionTraffic, Side

Name = tuple[str, int]


@dataclass(frozen=True, slots=True)
class Led:
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
        OVER_THROTTLE: the move that runs would starve; a throttle has to be raised first.
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


@dataclass(frozen=True)
class BatchLimits:
    """What one batch may do at most.

    Attributes:
        partitions: partitions of a batch.
        partitions_per_broker: partitions of a batch whose lead one broker gains or gives up.
        write_bytes_per_s: sum of the write rates that get another leader; None: no limit.
        request_bytes: size of the file, and so of the request, of a batch.
        capacity_bytes_per_s: most that producers may write to the partitions one broker leads; None: not known.
    """

    partitions: int = 200
    partitions_per_broker: int = 50
    write_bytes_per_s: float | None = None
    request_bytes: int = 900_000
    capacity_bytes_per_s: float | None = None


@dataclass(frozen=True)
class Balance:
    """How one broker's leads differ from what is preferred.

    Attributes:
        broker: broker that is preferred for at least one partition.
        preferred_partitions: partitions that prefer it.
        non_preferred_partitions: those of them that it does not lead, leaderless ones left out, as Kafka counts.
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
class Raise:
    """A throttle that has to be raised before a batch.

    Attributes:
        side: broker and role.
        throttle_bytes_per_s: rate in force.
        required_bytes_per_s: what it has to exceed once the batch is elected.
    """

    side: Side
    throttle_bytes_per_s: float
    required_bytes_per_s: float


@dataclass(frozen=True)
class Batch:
    """Elections of one request.

    Attributes:
        partitions: which, in order.
        write_bytes_per_s: sum of their known write rates.
        imbalance_ratios: ratio of every broker once it is done.
    """

    partitions: tuple[Name, ...]
    write_bytes_per_s: float
    imbalance_ratios: Mapping[int, float]


@dataclass(frozen=True)
class LeftOut:
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
        raise_first: throttles to raise so that what is left out by OVER_THROTTLE can be elected.
        after: balances once all batches are done.
    """

    before: tuple[Balance, ...]
    batches: tuple[Batch, ...]
    left_out: tuple[LeftOut, ...]
    raise_first: tuple[Raise, ...]
    after: tuple[Balance, ...]


@dataclass(frozen=True)
class Surroundings:
    """What else elections have to mind.

    Attributes:
        alive: brokers that are alive.
        throttled: the partitions that replication throttles list or a reassignment moves, as the throttles see them.
        throttles: rates in force by broker and role; None: none.
        internal: topics that come last.
        chosen_topics: only these; None: all.
        chosen_brokers: only partitions that prefer one of these; None: all.
    """

    alive: frozenset[int]
    throttled: tuple[PartitionTraffic, ...] = ()
    throttles: Mapping[Side, float | None] = field(default_factory=dict)
    internal: frozenset[str] = frozenset({"__consumer_offsets", "__transaction_state", "__share_group_state"})
    chosen_topics: frozenset[str] | None = None
    chosen_brokers: frozenset[int] | None = None
