"""Number of replicas that each broker is to have, as even as racks and present replicas permit."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Mapping

from headroom.planning.reassignments.generation.broker_loads import BrokerLoads
from headroom.planning.reassignments.generation.draft import Draft
from headroom.planning.reassignments.generation.racks import Racks


def replica_quotas(drafts: Iterable[Draft], loads: BrokerLoads, racks: Racks, may_give: bool) -> dict[int, int]:
    """Return the number of replicas that each destination is to have.

    The sum is the number of replicas that the destinations have once every missing one is placed. No rack gets more
    than its partitions can have there, if their replicas are kept apart.

    Args:
        drafts: partitions whose replicas may change.
        loads: replicas that the brokers have now, those of the drafts included.
        racks: racks and destinations.
        may_give: whether brokers with too many replicas give some away; if not, their number is a minimum.
    """
    drafts = list(drafts)
    floors = Counter({broker: loads.replicas[broker] for broker in racks.destinations})
    if may_give:
        floors.subtract(broker for draft in drafts for broker in draft.replicas if broker in racks.destinations)
    missing = sum(draft.factor if may_give else draft.missing for draft in drafts)
    rooms = _rooms(drafts, racks, may_give)
    open_racks = _by_rack(racks)
    for rack, brokers in open_racks.items():
        rooms[rack] += sum(floors[broker] for broker in brokers)
    left = floors.total() + missing
    quotas: dict[int, int] = {}
    while open_racks:
        brokers = sorted(broker for group in open_racks.values() for broker in group)
        level = _level(brokers, floors, left, loads)
        full = [rack for rack, group in open_racks.items() if sum(level[broker] for broker in group) > rooms[rack]]
        if not full:
            return quotas | level
        for rack in full:
            quotas |= _level(open_racks.pop(rack), floors, rooms[rack], loads)
            left -= rooms[rack]
    return quotas


def _by_rack(racks: Racks) -> dict[str, list[int]]:
    groups: dict[str, list[int]] = defaultdict(list)
    for broker in sorted(racks.destinations):
        groups[racks.of[broker]].append(broker)
    return groups


def _rooms(drafts: Collection[Draft], racks: Racks, may_give: bool) -> dict[str, int]:
    """Return how many replicas each rack can get, if the replicas of every draft are kept apart."""
    everywhere = 0
    rooms: Counter[str] = Counter()
    for draft in drafts:
        most = draft.factor - racks.apart(draft.factor, draft.replicas) + 1
        wanted = draft.factor if may_give else draft.missing
        everywhere += min(wanted, most)
        if not may_give:
            for rack, used in Counter(racks.of[broker] for broker in draft.replicas).items():
                rooms[rack] -= min(wanted, most) - min(wanted, max(0, most - used))
    return {rack: everywhere + rooms[rack] for rack in racks.reachable}


def _level(brokers: Collection[int], floors: Mapping[int, int], total: int, loads: BrokerLoads) -> dict[int, int]:
    """Return numbers of replicas with a given sum, each at least its floor, and otherwise equal or one apart."""
    low, high = 0, total
    while low < high:
        middle = (low + high + 1) // 2
        if sum(max(floors[broker], middle) for broker in brokers) <= total:
            low = middle
        else:
            high = middle - 1
    numbers = {broker: max(floors[broker], low) for broker in brokers}
    # The rest goes to those that have most of it already, so that fewest replicas move.
    order = sorted(brokers, key=lambda broker: (-loads.replicas[broker], loads.bytes[broker], broker))
    level_ones = [broker for broker in order if floors[broker] <= low]
    for broker in level_ones[: total - sum(numbers.values())]:
        numbers[broker] += 1
    return numbers
