"""How long out-of-sync replicas take to catch up under a throttle, and the throttle that is enough for a deadline."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterator, Mapping, Sequence
from statistics import median

from planning.quota import WINDOW_S, Copy, End, Moving, Part, Window, copied_s
from planning.throttle import CatchingUp, Demand, Side
from schemas.findings import Role

# In the mean a little less than the throttle passes: a burst waits a moment for its room, and a fetch ends in the
# middle of a batch, of which the rest comes again.
QUOTA_YIELD_RATIO = 0.98
# From one burst to the next: until its sample leaves the window.
QUOTA_CYCLE_S = 11.6
# From a tick to the throttle that its alert recommends being in force, at the earliest.
APPLY_S = 3.0
# From the last byte to the end of the reassignment: the ISR grows, the controller drops the replicas that leave.
COMPLETE_S = 1.0
# A quota's mean is over the time since its oldest sample began: half a second more where that one is not empty.
_MEAN_S, _FULL_MEAN_S = WINDOW_S, WINDOW_S + 0.5
_AGES = round(WINDOW_S) + 1
# So many sides of each role are played forward: those that take longest decide.
_MOST_SIDES = 8
# How near the throttle for a deadline is sought, and how many times what is required it may be.
_NEAR_RATIO, _MOST_TIMES = 1.01, 1e6

# Nobody tells when in a second a quota's samples began, at the leaders and at the destinations. It decides by which
# burst a move is done; after so many seconds a burst more or less is little.
_SHIFTS_S = ((0.0, 0.0), (-0.6, 0.3), (-0.3, -0.6), (0.3, 0.6), (0.6, -0.3))
_MANY_BURSTS_S = 120.0

# Earlier ticks, youngest first: age in seconds, and the demands of that tick.
Earlier = Sequence[tuple[float, Mapping[Side, Demand]]]


def finish_s(demands: Sequence[Demand], throttle_bytes_per_s: float, earlier: Earlier = ()) -> float | None:
    """Return seconds from when a throttle is set on every side until all is copied; None: never, or not known.

    Args:
        demands: sides of one tick that hold replicas back, their required traffic known.
        throttle_bytes_per_s: the rate in force from then on.
        earlier: ticks before, from which follows when the traffic in the quotas' windows came.
    """
    if any(d.remaining_bytes is None for d in demands):
        return None
    if max((_required(d) for d in demands), default=0.0) >= throttle_bytes_per_s:
        return None
    if not any(d.remaining_bytes for d in demands):
        return 0.0
    slowest = _slowest(demands, throttle_bytes_per_s)
    windows = [window(d, _of_side(d, earlier)) for d in slowest]
    found = []
    for shifts_s in _SHIFTS_S:
        copied = copied_s(_copies(slowest, windows, shifts_s), throttle_bytes_per_s, APPLY_S)
        found.append(math.inf if copied is None else copied)
        if found[0] > _MANY_BURSTS_S:
            break
    seconds = median(found) + COMPLETE_S
    return None if math.isinf(seconds) else seconds


def throttle_for(demands: Sequence[Demand], within_s: float, earlier: Earlier = ()) -> float:
    """Return a throttle in bytes per second that ends the copy in time, by ``finish_s``, and is nearly the least.

    Args:
        demands: sides of one tick that hold replicas back, their required traffic known.
        within_s: seconds; infinity is returned where nothing ends so soon, or it is not known what is to be copied.
        earlier: ticks before.

    Raises:
        ValueError: ``within_s`` is not positive.
    """
    if within_s <= 0 or math.isnan(within_s):
        raise ValueError(f"within_s must be positive, not {within_s}")

    def in_time(throttle: float) -> bool:
        seconds = finish_s(demands, throttle, earlier)
        return seconds is not None and seconds <= within_s

    low = max((_required(d) for d in demands), default=0.0)
    high = max(low * _NEAR_RATIO, max((_required(d) + _remaining(d) / within_s for d in demands), default=0.0), 1.0)
    while not in_time(high):
        low, high = high, 2 * high
        if high > max(_required(d) for d in demands) * _MOST_TIMES:
            return math.inf
    while high > low * _NEAR_RATIO:
        middle = math.sqrt(low * high)
        low, high = (low, middle) if in_time(middle) else (middle, high)
    return high


def window(demand: Demand, earlier: Sequence[tuple[float, Demand]]) -> Window:
    """Return what a quota's window holds, as far as ticks tell.

    What in-sync followers took, and by how much the lag fell short of what was written, says what passed between two
    ticks. What the quota counted beyond that came when the move began, if an earlier tick shows it not begun; else
    nobody knows, and it is spread over the time that no tick tells of.

    Args:
        demand: a side now.
        earlier: the same side in ticks before, youngest first: age in seconds, and demand.
    """
    amounts = [0.0] * _AGES
    newer_age_s, newer = 0.0, demand
    began: tuple[float, float] | None = None
    old_s = math.inf
    for age_s, older in earlier:
        if newer_age_s >= _AGES:
            break
        _spread(amounts, newer_age_s, age_s, _passed(older, newer, age_s - newer_age_s))
        # A quota that has never counted has no gauge.
        if newer.used_bytes_per_s is not None and older.used_bytes_per_s is None and older.throttle_known:
            old_s = (newer_age_s + age_s) / 2
        if began is None and newer.limited_replicas and not older.limited_replicas:
            began = (newer_age_s, age_s)
        newer_age_s, newer = age_s, older
    counted = _counted(demand) * min(_FULL_MEAN_S if began is None else _MEAN_S, max(1.0, old_s))
    rest = counted - sum(amounts)
    if rest > 0:
        _spread(amounts, *(began or (min(newer_age_s, _AGES - 1.0), float(_AGES))), rest)
    elif sum(amounts):
        amounts = [amount * counted / sum(amounts) for amount in amounts]
    return Window(amounts, old_s)


def _counted(demand: Demand) -> float:
    """Return the mean that the quota tells, bytes per second; where it does not, that it has no room."""
    if demand.used_bytes_per_s is None:
        return demand.throttle_bytes_per_s or 0.0
    return demand.used_bytes_per_s


def _passed(older: Demand, newer: Demand, seconds: float) -> float:
    """Return the bytes that passed between two ticks."""
    in_sync = older.in_sync_bytes_per_s or 0.0
    copied = 0.0
    if older.limited_replicas and older.remaining_bytes is not None and newer.remaining_bytes is not None:
        written = _behind(older) * seconds
        copied = max(0.0, written + older.remaining_bytes - newer.remaining_bytes)
    return in_sync * seconds + copied


def _spread(amounts: list[float], from_age_s: float, to_age_s: float, amount: float) -> None:
    """Add an amount evenly to the seconds between two ages."""
    for age in range(int(from_age_s), min(math.ceil(to_age_s), len(amounts))):
        overlap_s = min(to_age_s, age + 1) - max(from_age_s, age)
        amounts[age] += amount * overlap_s / (to_age_s - from_age_s)


def _copies(demands: Sequence[Demand], windows: Sequence[Window], shifts_s: tuple[float, float]) -> list[Copy]:
    """Return what is copied between the limited sides.

    Args:
        demands: the limited sides.
        windows: what the quota of each holds.
        shifts_s: of the leaders' and the destinations' samples.
    """
    shift_s = dict(zip((Role.LEADER, Role.FOLLOWER), shifts_s, strict=True))
    ends = {
        (d.broker, d.role): End(held.shifted(shift_s[d.role]), d.in_sync_bytes_per_s or 0.0, d.throttle_bytes_per_s)
        for d, held in zip(demands, windows, strict=True)
    }
    leaders = [d for d in demands if d.role is Role.LEADER]
    destinations = [d for d in demands if d.role is Role.FOLLOWER]
    if destinations and all(d.catching_up for d in destinations):
        return _told_one_by_one(destinations, ends)
    if not leaders or not destinations:
        return [
            Copy(
                ends.get((d.broker, Role.LEADER)),
                ends.get((d.broker, Role.FOLLOWER)),
                [Part(_remaining(d), _behind(d))],
            )
            for d in demands
        ]
    # A side tells what it has to copy, not with whom: every destination is taken to draw on every leader alike.
    remaining = sum(_remaining(d) for d in destinations) or 1.0
    behind = sum(_behind(d) for d in destinations) or 1.0
    return [
        Copy(
            ends[leader.broker, Role.LEADER],
            ends[destination.broker, Role.FOLLOWER],
            [
                Part(
                    _remaining(leader) * _remaining(destination) / remaining,
                    _behind(leader) * _behind(destination) / behind,
                )
            ],
        )
        for leader in leaders
        for destination in destinations
    ]


def _told_one_by_one(destinations: Sequence[Demand], ends: Mapping[Side, End]) -> list[Copy]:
    """Return what is copied where every replica that is held back is known."""
    behind = Counter((r.topic, r.partition) for d in destinations for r in d.catching_up)
    moving: dict[tuple[str, int], Moving] = {}
    parts: dict[tuple[int, int], list[Part]] = defaultdict(list)
    for destination in destinations:
        for r in destination.catching_up:
            name = r.topic, r.partition
            if name not in moving:
                moving[name] = Moving(behind[name], list(_leaving(r, ends)))
            parts[r.leader, destination.broker].append(Part(r.remaining_bytes, r.write_bytes_per_s, moving[name]))
    return [
        Copy(ends.get((leader, Role.LEADER)), ends[destination, Role.FOLLOWER], parts[leader, destination])
        for leader, destination in sorted(parts)
    ]


def _leaving(replica: CatchingUp, ends: Mapping[Side, End]) -> Iterator[tuple[End, float]]:
    """Give the in-sync traffic that ends when the replica's partition has moved: whose quota counts it, and how much.

    A leader that leaves hands over to another; that one's new traffic is small beside what it led before.
    """
    leaving = set(replica.replicas) - set(replica.target)
    fetching = set(replica.target) if replica.leader in leaving else leaving
    leader = ends.get((replica.leader, Role.LEADER))
    if leader is not None:
        yield leader, len(fetching) * replica.write_bytes_per_s
    for follower in leaving - {replica.leader}:
        if (follower, Role.FOLLOWER) in ends:
            yield ends[follower, Role.FOLLOWER], replica.write_bytes_per_s


def _of_side(demand: Demand, earlier: Earlier) -> list[tuple[float, Demand]]:
    """Return the same side in the ticks before."""
    side = (demand.broker, demand.role)
    return [(age_s, demands[side]) for age_s, demands in earlier if side in demands]


def _slowest(demands: Sequence[Demand], throttle_bytes_per_s: float) -> list[Demand]:
    """Return of each role the sides that take longest by the mean."""

    def mean_s(demand: Demand) -> float:
        return _remaining(demand) / (throttle_bytes_per_s - _required(demand))

    ordered = sorted(demands, key=mean_s, reverse=True)
    return [d for role in Role for d in [d for d in ordered if d.role is role][:_MOST_SIDES]]


def _behind(demand: Demand) -> float:
    """Return what is written to out-of-sync replicas, bytes per second."""
    return max(0.0, _required(demand) - (demand.in_sync_bytes_per_s or 0.0)) if demand.required_bytes_per_s else 0.0


def _remaining(demand: Demand) -> float:
    return float(demand.remaining_bytes or 0)


def _required(demand: Demand) -> float:
    return demand.required_bytes_per_s or 0.0
