"""Request for a reassignment plan, and its check against a cluster."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.errors import HeadroomError

_SUBJECT = "plan"
_SHOWN = 5


@dataclass(frozen=True)
class PlanRequest:
    """Goal of a plan that is to be made.

    Attributes:
        topics: topics whose partitions may change; None for all topics.
        to_brokers: the only brokers that may get replicas. Without ``drain``, all replicas of the topics are spread
            over them. None: any broker that is alive and not cordoned.
        replication_factor: replicas of each partition; None: each partition keeps its own number.
        drain: brokers that give up all replicas.
        replace: new broker by old one; it takes over the replicas of the old one, at the same position.
        reorder: whether a present first replica that stays may lose the first position, to spread preferred leaders.
        rack_aware: whether the replicas of a partition are kept in different racks.
    """

    topics: frozenset[str] | None = None
    to_brokers: frozenset[int] | None = None
    replication_factor: int | None = None
    drain: frozenset[int] = frozenset()
    replace: Mapping[int, int] = field(default_factory=dict)
    reorder: bool = False
    rack_aware: bool = True

    @property
    def spreads(self) -> bool:
        """Whether replicas may move only to spread them, and not only because their broker has to give them up."""
        return self.to_brokers is not None and not self.drain

    @property
    def places(self) -> bool:
        """Whether replicas may get other brokers, and not only another order."""
        return bool(self.to_brokers is not None or self.replication_factor is not None or self.drain or self.replace)

    def destinations(self, open_brokers: Collection[int]) -> frozenset[int]:
        """Return the brokers that may get replicas, given those that replicas may be placed on."""
        allowed = frozenset(open_brokers) if self.to_brokers is None else self.to_brokers
        return allowed - self.drain - (self.replace.keys() - self.replace.values())

    def keepers(self, alive: Collection[int]) -> frozenset[int]:
        """Return the brokers that keep the replicas they have, given the brokers that are alive."""
        if self.spreads:
            return self.destinations(alive)
        return frozenset(alive) - self.drain - self.replace.keys()


def check_request(request: PlanRequest, state: ClusterState) -> None:
    """Check a request against the cluster.

    Raises:
        HeadroomError: the request has no goal or contradictory ones, names an unknown topic or broker, or a destination
            that is down or cordoned, or racks are known for some destinations only.
    """
    _check_goals(request)
    if request.topics is not None:
        known = {name.topic for name in state.partitions}
        _refuse(request.topics - known, "topic", "does not exist", "Correct the name.")
    new = (request.to_brokers or frozenset()) | frozenset(request.replace.values())
    named = new | request.drain | request.replace.keys()
    _refuse(named - state.brokers.keys(), "broker", "does not exist", "Correct the id.")
    _refuse(new - state.alive, "broker", "is down, so it can get no replica", "Start it, or name another broker.")
    cordoned = (new & state.alive) - state.open
    remedy = "Change cordoned.log.dirs, or name another broker."
    _refuse(cordoned, "broker", "has only cordoned log directories", remedy)
    destinations = request.destinations(state.open)
    if not destinations and request.places:
        raise HeadroomError(_SUBJECT, "no broker is left that may get replicas", "Name more brokers.")
    without = {broker for broker in destinations if state.brokers[broker].rack is None}
    if request.rack_aware and without and without != destinations:
        rule = "has no rack, while other destinations have one"
        _refuse(without, "broker", rule, "Set broker.rack on it, or use --disable-rack-aware.")


def _check_goals(request: PlanRequest) -> None:
    placing = [request.to_brokers is not None, request.replication_factor is not None, bool(request.drain)]
    if not (any(placing) or request.replace or request.reorder):
        raise HeadroomError(_SUBJECT, "has no goal", "Use --to-brokers, --replication-factor, --drain or --reorder.")
    if request.replace and any(placing):
        rule = "--replace cannot be combined with --to-brokers, --replication-factor or --drain"
        raise HeadroomError(_SUBJECT, rule, "Make one plan after the other.")
    if request.replication_factor is not None and request.replication_factor < 1:
        raise HeadroomError(_SUBJECT, "needs a replication factor of at least 1", "Use a greater one.")
    same = {old for old, new in request.replace.items() if old == new}
    _refuse(same, "broker", "cannot replace itself", "Name another broker after the colon.")
    both = request.drain & (request.to_brokers or frozenset())
    _refuse(both, "broker", "is in --drain and in --to-brokers", "Remove it from one of them.")


def _refuse(names: Collection[str] | Collection[int], kind: str, rule: str, remedy: str) -> None:
    if names:
        wrong = [str(name) for name in sorted(names)]
        more = f" (and {len(wrong) - _SHOWN} more)" if len(wrong) > _SHOWN else ""
        raise HeadroomError(f"{kind} {', '.join(wrong[:_SHOWN])}{more}", rule, remedy)
