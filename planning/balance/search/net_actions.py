"""Actions that take a cluster from one placement to another."""

from __future__ import annotations

import numpy as np

from headroom.planning.balance.arrays import IndexArray
from headroom.planning.balance.model import ClusterModel
from headroom.planning.balance.search.actions import ActionKind, BalanceAction


def net_actions(model: ClusterModel, replicas: IndexArray, leader: IndexArray) -> list[BalanceAction]:
    """Return the actions in an order in which they can be carried out: elections, moves, elections of new replicas.

    A new replica that replaces the leader takes over its lead. One that is to lead without that is elected after its
    copy, when it is in sync.

    Args:
        model: the cluster as it is.
        replicas: brokers of the replicas that partitions are to have, (P, R), in any order.
        leader: their leaders, (P,).
    """
    elections: list[BalanceAction] = []
    moves: list[BalanceAction] = []
    late: list[BalanceAction] = []
    changed = (np.sort(replicas, axis=1) != np.sort(model.replicas, axis=1)).any(axis=1) | (leader != model.leader)
    for partition in np.flatnonzero(changed).tolist():
        before, after = model.replicas[partition].tolist(), replicas[partition].tolist()
        gone, new = [b for b in before if b not in after], [b for b in after if b not in before]
        led, leads = int(model.leader[partition]), int(leader[partition])
        takes_over = led in gone and leads in new
        if takes_over:
            gone.sort(key=lambda broker: broker != led)
            new.sort(key=lambda broker: broker != leads)
        elif led != leads:
            own = late if leads in new else elections
            own.append(BalanceAction(ActionKind.ELECT, partition, led, leads))
        size = float(model.size[partition])
        moves += [
            BalanceAction(ActionKind.MOVE, partition, source, target, size, takes_over and source == led)
            for source, target in zip(gone, new, strict=True)
        ]
    return elections + moves + late
