"""The assignment that ``kafka-reassign-partitions --generate`` proposes, for comparison.

Source: Kafka 4.3.1, ``AdminUtils.assignReplicasToBrokers``; the two random numbers are arguments here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import zip_longest


def round_robin(brokers: Sequence[int], partitions: int, factor: int, start: int, shift: int) -> list[list[int]]:
    """Return the replicas of each partition of a topic, without regard to racks.

    Args:
        brokers: brokers that get replicas.
        partitions: number of partitions.
        factor: number of replicas.
        start: position of the first broker; Kafka draws it.
        shift: distance between first and second replica; Kafka draws it.
    """
    assignment = []
    for partition in range(partitions):
        if partition and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        others = [_position(first, shift, other, len(brokers)) for other in range(factor - 1)]
        assignment.append([brokers[position] for position in (first, *others)])
    return assignment


def rack_aware_round_robin(
    racks: Mapping[int, str], partitions: int, factor: int, start: int, shift: int
) -> list[list[int]]:
    """Return the replicas of each partition of a topic, in different racks; arguments as in ``round_robin``."""
    by_rack: dict[str, list[int]] = {}
    for broker in sorted(racks):
        by_rack.setdefault(racks[broker], []).append(broker)
    alternating = zip_longest(*(by_rack[rack] for rack in sorted(by_rack)))
    brokers = [broker for group in alternating for broker in group if broker is not None]
    assignment = []
    for partition in range(partitions):
        if partition and partition % len(brokers) == 0:
            shift += 1
        first = (partition + start) % len(brokers)
        replicas = [brokers[first]]
        step = 0
        while len(replicas) < factor:
            broker = brokers[_position(first, shift * len(by_rack), step, len(brokers))]
            used = {racks[replica] for replica in replicas}
            if broker not in replicas and (racks[broker] not in used or len(used) == len(by_rack)):
                replicas.append(broker)
            step += 1
        assignment.append(replicas)
    return assignment


def _position(first: int, shift: int, other: int, brokers: int) -> int:
    return (first + 1 + (shift + other) % (brokers - 1)) % brokers
