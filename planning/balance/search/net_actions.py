"""Actions that take a cluster from one placement to another."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import IndexArray
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.search.actions import ActionKind, BalanceAction


def net_actions(model: ClusterModel, replicas: IndexArray, leader: IndexArray) -> list[BalanceAction]:
    """Return the actions in an order in which they can be carried out: elections, moves, elections of new replicas.

    A new replica that replaces the leader takes over its lead. One that is to lead without that is elected after its
    copy, when it is in sync. Replicas are replaced on their own rack where one is wanted there.

    Args:
        model: the cluster as it is.
        replicas: brokers of the replicas that partitions are to have, (P, R), in any order.
        leader: their leaders, (P,).
    """
    elections: list[BalanceAction] = []
    moves: list[BalanceAction] = []
    late: list[BalanceAction] = []
    own = np.flatnonzero((replicas != model.replicas).any(axis=1) | (leader != model.leader))
    columns = own, model.replicas[own], replicas[own], model.leader[own], leader[own], model.size[own]
    racks = model.rack.tolist()
    for partition, before, after, led, leads, size in zip(*(column.tolist() for column in columns), strict=True):
        gone, new = [b for b in before if b not in after], [b for b in after if b not in before]
        pairs = _pairs(racks, gone, new, led, leads) if len(gone) > 1 else dict(zip(gone, new, strict=True))
        is_new = leads not in before
        # Whoever replaces the leader takes over its lead, if a new replica is to have it.
        heir = pairs.get(led, led) if is_new else led
        if heir not in (led, leads) and not model.may_give[heir]:
            # It could not pass the lead on, so it replaces another one.
            other = next(source for source, target in pairs.items() if target == leads)
            pairs[led], pairs[other], heir = leads, heir, leads
        if heir != leads:
            (late if is_new else elections).append(BalanceAction(ActionKind.ELECT, partition, heir, leads))
        moves += [
            BalanceAction(ActionKind.MOVE, partition, source, target, bytes_copied=size, leads=is_new and source == led)
            for source, target in pairs.items()
        ]
    return elections + moves + late


def _pairs(rack: list[int], gone: list[int], new: list[int], led: int, leads: int) -> dict[int, int]:
    """Return which new replica replaces which one that goes: first those on one rack, of these the leaders first.

    Racks are then as even after some of the moves as before the first or after the last.
    """
    gone, new = sorted(gone, key=lambda broker: broker != led), sorted(new, key=lambda broker: broker != leads)
    pairs: dict[int, int] = {}
    for is_wanted in (lambda source, target: rack[source] == rack[target], lambda source, target: True):
        for source in gone:
            target = next((b for b in new if b not in pairs.values() and is_wanted(source, b)), None)
            if source not in pairs and target is not None:
                pairs[source] = target
    return pairs
