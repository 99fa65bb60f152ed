"""20 runs of proposals whose leads and replicas are compared with those that came: small topics on five brokers.

Ten of them are carried out by ``headroom balance run``, the others batch by batch by ``headroom reassign run``. They
are spread over four clusters: with and without racks, each with ``auto.leader.rebalance.enable`` on and off.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.throttled_move import MovedPartition

PROMISE_BROKERS = 5
# Of the brokers 1 to 5; three racks, two of them with two brokers.
RACKS = ("a", "b", "c", "a", "b")
# Options of the proposals. The throttle lets a copy of some MB take a moment.
_ELECT = ("--goals", "network_out,leaders", "--elections-only")
_MOVE, _MOVE_DISKS, _MOVE_COUNTS = (
    ("--goals", goals, "--throttle", "50MB")
    for goals in ("network_in,network_out,disk,leaders,replicas", "disk", "leaders,replicas")
)
# How a proposal is carried out.
_WHOLE, _BATCHES = True, False


@dataclass(frozen=True)
class PromiseCluster:
    """Settings of a cluster that runs share.

    Attributes:
        rebalances: whether Kafka gives leads back to preferred leaders by itself.
        has_racks: whether its brokers have racks.
    """

    rebalances: bool
    has_racks: bool


@dataclass(frozen=True)
class PromiseCase:
    """One run of a proposal.

    Attributes:
        name: name in tables and record files.
        cluster: settings of its cluster.
        partitions: partitions of its topic, where they are before.
        options: options of ``headroom balance propose``.
        by_balance_run: whether ``headroom balance run`` carries it out; otherwise ``headroom reassign run`` each batch.
        returned: broker that was stopped and started before the proposal; None if none was.
        dead: broker that is down from before the proposal to after its last batch; None if none is.
    """

    name: str
    cluster: PromiseCluster
    partitions: tuple[MovedPartition, ...]
    options: tuple[str, ...]
    by_balance_run: bool
    returned: int | None = None
    dead: int | None = None


def _skewed(
    seed: int, count: int, factor: int, weights: Sequence[float], live_mb_per_s: float = 0.0
) -> tuple[MovedPartition, ...]:
    """Return partitions with replicas on different brokers, drawn by a seed.

    Args:
        seed: seed of all that is random.
        count: number of partitions.
        factor: replication factor.
        weights: probability of each broker to have a replica, in proportion.
        live_mb_per_s: mean write rate of a partition.
    """
    draw, partitions = random.Random(seed), []
    for _ in range(count):
        # The largest of these keys are a weighted sample without replacement (Efraimidis and Spirakis, 2006).
        keys = {broker: draw.random() ** (1 / max(weight, 1e-9)) for broker, weight in enumerate(weights, start=1)}
        replicas = tuple(sorted(keys, key=lambda broker: -keys[broker])[:factor])
        factor_of_load = draw.uniform(0.5, 1.5)
        live = live_mb_per_s * factor_of_load * 1e6
        partitions.append(MovedPartition(replicas, replicas, live, round(factor_of_load * 1_000_000)))
    return tuple(partitions)


def _in_turn(count: int, placements: Sequence[tuple[int, ...]]) -> tuple[MovedPartition, ...]:
    """Return partitions of 1 MB on the given replicas in turn."""
    return tuple(
        MovedPartition(own, own, 0.0, 1_000_000)
        for number in range(count)
        for own in [placements[number % len(placements)]]
    )


_PLAIN, _AUTO = PromiseCluster(False, False), PromiseCluster(True, False)
_RACKS, _AUTO_RACKS = PromiseCluster(False, True), PromiseCluster(True, True)
_TWO_EMPTY, _ONE_FULL, _FALLING = (3, 3, 3, 0, 0), (8, 2, 2, 2, 2), (5, 4, 3, 2, 1)
_FROM_1, _ON_ONE_RACK = ((1, 2, 3), (1, 3, 4), (1, 4, 5), (1, 5, 2)), ((1, 4), (5, 2), (4, 1))
_FOUR_MOVES, _FIRST_ACTIONS = (*_MOVE_COUNTS, "--max-moves", "4"), (*_MOVE, "--prefix", "6")
PROMISE_CASES: tuple[PromiseCase, ...] = (
    PromiseCase("RF 3, all leads on one broker", _PLAIN, _in_turn(20, _FROM_1), _ELECT, _WHOLE),
    PromiseCase("RF 3, two brokers empty, written", _PLAIN, _skewed(1, 18, 3, _TWO_EMPTY, 0.05), _MOVE, _BATCHES),
    PromiseCase("RF 1, one broker full", _PLAIN, _skewed(2, 20, 1, _ONE_FULL), _MOVE_DISKS, _WHOLE),
    PromiseCase("RF 3, returned", _PLAIN, _skewed(3, 20, 3, _FALLING), _MOVE, _BATCHES, returned=3),
    PromiseCase("RF 2, returned, elections", _PLAIN, _skewed(4, 24, 2, _FALLING), _ELECT, _WHOLE, returned=2),
    PromiseCase("RF 3, dead, elections", _PLAIN, _skewed(5, 24, 3, _FALLING), _ELECT, _BATCHES, dead=5),
    PromiseCase("RF 2, dead, counts", _PLAIN, _skewed(6, 20, 2, _FALLING), _MOVE_COUNTS, _WHOLE, dead=4),
    PromiseCase("auto, RF 3, all leads on one broker", _AUTO, _in_turn(20, _FROM_1), _ELECT, _BATCHES),
    PromiseCase("auto, RF 2, two brokers empty, written", _AUTO, _skewed(7, 18, 2, _TWO_EMPTY, 0.05), _MOVE, _WHOLE),
    PromiseCase("auto, RF 3, returned", _AUTO, _skewed(8, 20, 3, _FALLING), _MOVE, _WHOLE, returned=3),
    PromiseCase("auto, RF 3, returned, elections", _AUTO, _skewed(9, 24, 3, _FALLING), _ELECT, _BATCHES, returned=1),
    PromiseCase("auto, RF 2, returned, counts", _AUTO, _skewed(10, 24, 2, _ONE_FULL), _MOVE_COUNTS, _WHOLE, returned=1),
    PromiseCase("auto, RF 3, dead", _AUTO, _skewed(11, 20, 3, _FALLING), _MOVE, _WHOLE, dead=5),
    PromiseCase("auto, RF 2, dead, elections", _AUTO, _skewed(12, 24, 2, _FALLING), _ELECT, _BATCHES, dead=4),
    PromiseCase("racks, repaired in part", _RACKS, _in_turn(12, _ON_ONE_RACK), _FOUR_MOVES, _WHOLE),
    PromiseCase("racks, returned, written", _RACKS, _skewed(13, 18, 3, _FALLING, 0.05), _MOVE, _BATCHES, returned=2),
    PromiseCase("racks, RF 4, dead", _RACKS, _skewed(14, 16, 4, _FALLING), _MOVE_COUNTS, _WHOLE, dead=5),
    PromiseCase("auto, racks, first actions", _AUTO_RACKS, _skewed(15, 20, 3, _TWO_EMPTY), _FIRST_ACTIONS, _BATCHES),
    PromiseCase("auto, racks, RF 2, returned", _AUTO_RACKS, _skewed(16, 20, 2, _FALLING), _MOVE, _BATCHES, returned=4),
    PromiseCase("auto, racks, RF 3, dead", _AUTO_RACKS, _skewed(17, 20, 3, _FALLING), _MOVE, _BATCHES, dead=5),
)
