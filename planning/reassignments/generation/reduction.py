"""Replicas that a partition gives up, because it has too many or they crowd one rack."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence

from headroom.planning.reassignments.generation.broker_loads import BrokerLoads
from headroom.planning.reassignments.generation.draft import Draft
from headroom.planning.reassignments.generation.racks import Racks


def reduce_drafts(drafts: Iterable[Draft], loads: BrokerLoads, racks: Racks, first_stays: bool = True) -> None:
    """Remove the replicas that drafts have beyond their factor, and those that prevent racks from being apart.

    The first replica stays, unless the order may change. Out-of-sync replicas go first, then those in a rack with
    another replica, then those of the brokers with the most replicas of all and of the topic.

    Args:
        drafts: partitions whose replicas may change.
        loads: replicas of the brokers; changed.
        racks: racks and destinations.
        first_stays: whether the first replica stays where the number of replicas gets smaller.
    """
    for draft in sorted(drafts, key=lambda draft: -draft.size_bytes):
        while draft.missing < 0:
            _remove(draft, _least_useful(draft, draft.replicas[first_stays:], loads, racks), loads)
        staying = racks.without_crowding(draft.replicas, draft.factor)
        if len(staying) < len(draft.replicas):
            for broker in set(draft.replicas).difference(staying):
                _remove(draft, broker, loads)


def _least_useful(draft: Draft, replicas: Sequence[int], loads: BrokerLoads, racks: Racks) -> int:
    in_rack = Counter(racks.of[broker] for broker in draft.replicas)
    topic = loads.topics[draft.present.topic]
    return max(
        replicas,
        key=lambda b: (
            b not in draft.present.isr,
            in_rack[racks.of[b]] > 1,
            loads.replicas[b],
            topic[b],
            loads.bytes[b],
            b,
        ),
    )


def _remove(draft: Draft, broker: int, loads: BrokerLoads) -> None:
    draft.replicas.remove(broker)
    loads.remove(draft, broker)
