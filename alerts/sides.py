"""One broker and role in one tick, as the rules look at it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from planning.throttle import CatchingUp, Demand
from schemas.findings import Role, Verdict


@dataclass(frozen=True)
class PartitionEvidence:
    """One partition that counts on a side.

    Attributes:
        topic: topic.
        partition: partition.
        write_bytes_per_s: its write rate; None: unknown.
        followers: listed followers that fetch through this side.
        in_sync_followers: those of them in the ISR.
        leader: leading broker; None: none.
        previous_leader: leader before the last switch; None: no switch was seen.
        switch_tick_ms: the first tick that showed the new leader; None: no switch was seen.
        moving: whether a reassignment of it is running.
        replicas: replicas now, adding and removing ones included.
        target: replicas once it is done.
        stalled: whether an adding replica of it on this side copies nothing.
        remaining_bytes: what its out-of-sync replicas on this side still have to copy; None: unknown.
    """

    topic: str
    partition: int
    write_bytes_per_s: float | None
    followers: int
    in_sync_followers: int
    leader: int | None
    previous_leader: int | None
    switch_tick_ms: int | None
    moving: bool
    replicas: tuple[int, ...]
    target: tuple[int, ...]
    stalled: bool
    remaining_bytes: int | None = None

    @property
    def name(self) -> str:
        """Return ``topic-partition``."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class LostReplica:
    """A replica of a partition's original assignment that is out of the ISR.

    Attributes:
        topic: topic.
        partition: partition.
        leader: leading broker; None: none.
        moving: whether a reassignment of the partition is running.
    """

    topic: str
    partition: int
    leader: int | None
    moving: bool

    @property
    def name(self) -> str:
        """Return ``topic-partition``."""
        return f"{self.topic}-{self.partition}"


@dataclass(frozen=True)
class Takeover:
    """The moving partition that would cost the broker of an in-sync replica most if it came to lead it.

    Attributes:
        bytes_per_s: what it would have to send more.
        topic: topic.
        partition: partition.
        leader: who leads it now; None: nobody.
    """

    bytes_per_s: float
    topic: str
    partition: int
    leader: int | None


@dataclass(frozen=True)
class SideState:
    """One row of ``gold/throttle_headroom``, whose columns tell more.

    Attributes:
        demand: what the throttle carries.
        verdict: what it means.
        reason: for no_data what is unknown; else None.
        eta_s: seconds until its replicas are in sync; None: never, or unknown.
        stalled_replicas: adding replicas that copied nothing over the window.
        partitions: the partitions that count, greatest traffic first.
        alive: whether the broker is registered with the cluster.
        throttle_source: broker or default: where the rate is set; none: it is not; None: unknown.
        moving_partitions: partitions in a reassignment that the broker leads, or follows.
        resting_listed_partitions: partitions that a list of the role names and that do not move.
        planned_partitions: partitions that it leads of which none but adding replicas are out of sync.
        lost_replicas: its replicas, but for adding ones, that are out of the ISR.
        lost_moving_replicas: those of them whose partition moves.
        lost: them by name, those that move first; the list is cut.
        stall: why its stalled replicas copy nothing, as ``gold/throttle_headroom`` has it; None: none is stalled.
        takeover: of a follower, what it would cost at worst to lead one more moving partition; None: nothing known.
    """

    demand: Demand
    verdict: Verdict
    reason: str | None
    eta_s: float | None
    stalled_replicas: int
    partitions: tuple[PartitionEvidence, ...]
    alive: bool = True
    throttle_source: str | None = None
    moving_partitions: int = 0
    resting_listed_partitions: int = 0
    planned_partitions: int = 0
    lost_replicas: int = 0
    lost_moving_replicas: int = 0
    lost: tuple[LostReplica, ...] = ()
    stall: str | None = None
    takeover: Takeover | None = None

    @property
    def broker(self) -> int:
        """Return the broker's id."""
        return self.demand.broker

    @property
    def role(self) -> Role:
        """Return which of the broker's throttles it is."""
        return self.demand.role

    @property
    def short(self) -> bool:
        """Return whether the throttle is not enough."""
        return self.verdict in (Verdict.STARVED, Verdict.LOSING)


_AS_THEY_ARE = (
    "reason",
    "eta_s",
    "stalled_replicas",
    "alive",
    "throttle_source",
    "moving_partitions",
    "resting_listed_partitions",
    "planned_partitions",
    "lost_replicas",
    "lost_moving_replicas",
    "stall",
)


def side_state(row: Mapping[str, Any]) -> SideState:
    """Return the side of one row of ``gold/throttle_headroom``, given as a mapping of its columns."""
    verdict = Verdict(row["verdict"])
    partitions = tuple(_partition(entry) for entry in row["partitions"])
    role, limited = Role(row["role"]), row["moving_replicas"] - row["free_replicas"]
    demand = Demand(
        broker=row["broker"],
        role=role,
        throttle_bytes_per_s=row["throttle_bytes_per_s"],
        in_sync_bytes_per_s=row["in_sync_bytes_per_s"],
        required_bytes_per_s=row["required_bytes_per_s"],
        limited_replicas=limited,
        free_replicas=row["free_replicas"],
        remaining_bytes=row["remaining_bytes"],
        throttle_known=verdict is not Verdict.NO_DATA or row["throttle_bytes_per_s"] is not None,
        used_bytes_per_s=row["quota_bytes_per_s"],
        catching_up=_catching_up(partitions, limited) if role is Role.FOLLOWER else (),
    )
    return SideState(
        demand,
        verdict,
        lost=tuple(LostReplica(**lost) for lost in row["lost"]),
        takeover=Takeover(**row["takeover"]) if row["takeover"] is not None else None,
        partitions=partitions,
        **{name: row[name] for name in _AS_THEY_ARE},
    )


def _catching_up(partitions: Sequence[PartitionEvidence], limited: int) -> tuple[CatchingUp, ...]:
    """Return the replicas that a destination's throttle holds back, if the evidence, which is cut, tells of all."""
    found = tuple(
        CatchingUp(p.topic, p.partition, p.leader, p.remaining_bytes, p.write_bytes_per_s, p.replicas, p.target)
        for p in partitions
        if p.followers > p.in_sync_followers
        and p.leader is not None
        and p.remaining_bytes is not None
        and p.write_bytes_per_s is not None
    )
    return found if len(found) == limited else ()


def _partition(entry: Mapping[str, Any]) -> PartitionEvidence:
    fields = {name: entry[name] for name in PartitionEvidence.__dataclass_fields__}
    replicas, target = tuple(entry["replicas"] or ()), tuple(entry["target"] or ())
    return PartitionEvidence(**{**fields, "replicas": replicas, "target": target})
