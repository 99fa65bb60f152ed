"""Log directories of new replicas, named in batches where those that brokers choose may have no room."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import replace

from headroom.planning.balance.batches.batches import BalanceBatch, ReplicaMove
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState
from headroom.planning.reassignments.room.broker_room import BrokerRoom
from headroom.planning.reassignments.room.checks import running_copies
from headroom.planning.reassignments.room.naming import PathsByBroker, paths_of_copies, with_paths
from headroom.schemas.keys import TopicPartition


def with_directories(
    batches: Sequence[BalanceBatch], state: ClusterState
) -> tuple[Sequence[BalanceBatch], tuple[int, ...]]:
    """Return batches with the directories of new replicas on brokers that may overfill one, and these brokers.

    A broker may if one of its volumes has no room for all of its new replicas, whatever number of logs is there: that
    changes with every batch. Replicas find room as if nothing left before the last of them has arrived, as the search
    counts them.

    Args:
        batches: batches one after another, without directories.
        state: the cluster before the first one.
    """
    by_broker: dict[int, list[tuple[int, ReplicaMove]]] = defaultdict(list)
    for batch in batches:
        for place, move in zip(batch.places, batch.moves, strict=False):
            if len(state.brokers[move.target].log_dirs) > 1:
                by_broker[move.target].append((place, move))
    if not by_broker:
        return batches, ()
    running, _ = running_copies(state)
    paths: dict[int, dict[TopicPartition, str]] = {}
    for broker, placed in sorted(by_broker.items()):
        moves = [move for _, move in sorted(placed, key=lambda both: both[0])]
        room = BrokerRoom(state.brokers[broker], running.get(broker, ()))
        paths[broker] = _paths(moves, state.brokers[broker], room.least_left_by_path())
    named = tuple(broker for broker, found in paths.items() if found)
    return [_named(batch, paths) for batch in batches] if named else batches, named


def _paths(
    moves: Sequence[ReplicaMove], broker: BrokerState, left_bytes: Mapping[tuple[str, ...], int]
) -> dict[TopicPartition, str]:
    """Return the directories of all new replicas of a broker; empty if each volume has room for all of them."""
    copies = [(int(move.size_bytes), move.name) for move in moves]
    if not broker.room_known or sum(size for size, _ in copies) <= min(left_bytes.values()):
        return {}
    return paths_of_copies(copies, left_bytes, broker.log_dirs)


def _named(batch: BalanceBatch, paths: PathsByBroker) -> BalanceBatch:
    """Return a batch with the directories of the replicas that it copies."""
    new: dict[int, dict[TopicPartition, str]] = defaultdict(dict)
    for move in batch.moves:
        if (path := paths.get(move.target, {}).get(move.name)) is not None:
            new[move.target][move.name] = path
    if not new:
        return batch
    return replace(batch, assignments=tuple(with_paths(assignment, new) for assignment in batch.assignments))
