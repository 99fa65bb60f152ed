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
class SideState:
    """One row of ``gold/throttle_headroom``.

    Attributes:
        demand: what the throttle carries.
        verdict: what it means.
        reason: for no_data what is unknown; else None.
        eta_s: seconds until its replicas are in sync; None: never, or unknown.
        stalled_replicas: adding replicas that copied nothing over the window.
        partitions: the partitions that count, greatest traffic first.
    """

    demand: Demand
    verdict: Verdict
    reason: str | None
    eta_s: float | None
    stalled_replicas: int
    partitions: tuple[PartitionEvidence, ...]

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


def side_state(row: Mapping[str, Any]) -> SideState:
    """Return the side of one row of ``gold/throttle_headroom``, given as a mapping of its columns."""
    verdict = Verdict(row["verdict"])
    # The table tells only the sum of listed and other replicas. Behind a verdict other than unthrottled the list names
    # them; where no rate is in force, listed traffic tells: a rate that is set later will hold these back too.
    rateless = row["throttle_bytes_per_s"] is None and row["required_bytes_per_s"] != 0
    listed = verdict is not Verdict.UNTHROTTLED or rateless
    partitions = tuple(_partition(entry) for entry in row["partitions"])
    role, limited = Role(row["role"]), row["moving_replicas"] if listed else 0
    demand = Demand(
        broker=row["broker"],
        role=role,
        throttle_bytes_per_s=row["throttle_bytes_per_s"],
        in_sync_bytes_per_s=row["in_sync_bytes_per_s"],
        required_bytes_per_s=row["required_bytes_per_s"],
        limited_replicas=limited,
        free_replicas=0 if listed else row["moving_replicas"],
        remaining_bytes=row["remaining_bytes"],
        throttle_known=verdict is not Verdict.NO_DATA or row["throttle_bytes_per_s"] is not None,
        used_bytes_per_s=row["quota_bytes_per_s"],
        catching_up=_catching_up(partitions, limited) if role is Role.FOLLOWER else (),
    )
    return SideState(demand, verdict, row["reason"], row["eta_s"], row["stalled_replicas"], partitions)


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
