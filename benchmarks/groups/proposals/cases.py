"""Clusters of the group ``proposals``: four brokers out of balance, under a steady load.

Some seconds pass from the reading of a proposal to its first copy, and a throttle lets bytes through in bursts that are
11 s apart. In a cluster that is older than a benchmark neither matters. So logs that are copied hold ten minutes or
more of their own write rate, and batches take half a minute or more.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.throttled_move import MovedPartition
from benchmarks.groups.reassign.cases import partitions_in_turn

_NETWORK = "network_in,network_out"
_LEADS = "network_out,leaders"
_ALL = "network_in,network_out,disk,leaders,replicas"


@dataclass(frozen=True)
class ProposalCase:
    """One cluster, and what is asked of a proposal for it.

    Attributes:
        name: name in tables and record files.
        partitions: partitions of its topic, where they are before.
        goals: goals of the proposal, comma-separated.
        throttle_bytes_per_s: throttle of the proposal; None: it may copy nothing.
        busy: number of processes that keep a core busy meanwhile.
    """

    name: str
    partitions: tuple[MovedPartition, ...]
    goals: str
    throttle_bytes_per_s: float | None = None
    busy: int = 0


def _placement(
    count: int, replicas: Sequence[tuple[int, ...]], live_mb_per_s: float, history_mb: float, growth_ratio: float = 0.0
) -> tuple[MovedPartition, ...]:
    """Return partitions on the given replicas in turn; the proposal decides where they go."""
    return partitions_in_turn(count, [(own, own) for own in replicas], live_mb_per_s, history_mb, growth_ratio)


_FROM_1 = ((1, 2), (1, 3), (1, 4))
_FROM_1_OF_3 = ((1, 2, 3), (1, 3, 4), (1, 4, 2))
CASES: tuple[ProposalCase, ...] = (
    ProposalCase("RF 2, all leads on one broker", _placement(12, _FROM_1, 0.5, 2), _LEADS),
    ProposalCase("RF 3, all leads on one broker", _placement(12, _FROM_1_OF_3, 0.3, 2), _LEADS),
    ProposalCase("RF 2, unequal writes, leads on two brokers", _placement(12, ((1, 3), (2, 4)), 0.3, 2, 0.1), _LEADS),
    ProposalCase("RF 1, network, two brokers full", _placement(8, ((1,), (2,)), 0.1, 60), _NETWORK, 4e6),
    ProposalCase("RF 2, network, two brokers full", _placement(8, ((1, 2), (2, 1)), 0.06, 80), _NETWORK, 5e6),
    ProposalCase("RF 3, network, one broker empty", _placement(12, ((1, 2, 3), (2, 3, 1)), 0.05, 40), _NETWORK, 5e6),
    ProposalCase("RF 1, disk, one broker full", _placement(12, ((1,),), 0.05, 26), "disk", 3e6),
    ProposalCase("RF 2, disk, two brokers full", _placement(8, ((1, 2),), 0.05, 40), "disk", 4e6),
    ProposalCase("RF 2, disk, unequal sizes", _placement(12, ((1, 2), (1, 3)), 0.05, 20, 0.2), "disk", 4e6),
    ProposalCase("RF 2, all goals, two brokers full", _placement(12, ((1, 2),), 0.06, 40), _ALL, 5e6),
    ProposalCase("RF 3, all goals, all leads on one broker", _placement(12, _FROM_1_OF_3, 0.05, 30), _ALL, 5e6),
    ProposalCase("RF 1, all goals, a new broker", _placement(12, ((1,), (2,), (3,)), 0.1, 40), _ALL, 4e6),
    ProposalCase("RF 2, network, busy machine", _placement(8, ((1, 2), (2, 1)), 0.06, 80), _NETWORK, 5e6, busy=2),
    ProposalCase("RF 2, disk, busy machine", _placement(8, ((1, 2),), 0.05, 40), "disk", 4e6, busy=2),
)
