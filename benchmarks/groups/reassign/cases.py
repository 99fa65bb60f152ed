"""Moves of the group ``reassign``: 15 to 60 s long, factor 1 to 3, 1 to 40 even or uneven partitions, idle and busy.

A leader or destination takes its bytes / (throttle - required). The bytes are the history, and what is written to it in
the 22 s or so of steady load and of ``headroom plan``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.fixtures.throttled_move import MovedPartition

_MB = 1_000_000


@dataclass(frozen=True)
class PlannedCase:
    """One planned move.

    Attributes:
        name: name in tables and record files.
        partitions: partitions that move.
        throttle_bytes_per_s: throttle of the estimate and the move; None: the recommended one.
        busy: number of processes that keep a core busy during estimate and move.
    """

    name: str
    partitions: tuple[MovedPartition, ...]
    throttle_bytes_per_s: float | None = None
    busy: int = 0


def partitions_in_turn(
    count: int,
    moves: Sequence[tuple[tuple[int, ...], tuple[int, ...]]],
    live_mb_per_s: float,
    history_mb: float,
    growth_ratio: float = 0.0,
) -> tuple[MovedPartition, ...]:
    """Return partitions that use the given moves in turn.

    Args:
        count: number of partitions.
        moves: replicas before and after; of the first partition, the second and so on, then again from the first.
        live_mb_per_s: write rate of the first partition.
        history_mb: size of the first partition.
        growth_ratio: how much more each partition is written and has than the one before it, in shares of the first.
    """
    return tuple(
        MovedPartition(*moves[number % len(moves)], live_mb_per_s * factor * _MB, round(history_mb * factor * _MB))
        for number in range(count)
        for factor in [1 + growth_ratio * number]
    )


def _one(before: tuple[int, ...], after: tuple[int, ...], live_mb_per_s: float, history_mb: float) -> MovedPartition:
    return partitions_in_turn(1, [(before, after)], live_mb_per_s, history_mb)[0]


_FORTY = [((1, 2, 3), (1, 2, 4)), ((2, 3, 4), (2, 3, 1))]
MOVES: tuple[PlannedCase, ...] = (
    PlannedCase("RF 1, one partition", (_one((1,), (3,), 1.0, 44),), 3e6),
    PlannedCase("RF 2, one partition, recommended throttle", (_one((1, 2), (1, 3), 1.0, 2),)),
    PlannedCase("RF 3, one partition, recommended throttle", (_one((1, 2, 3), (1, 2, 4), 1.0, 10),)),
    PlannedCase("RF 3, the leader leaves", (_one((1, 2, 3), (4, 2, 3), 0.7, 65),), 4.5e6),
    PlannedCase("RF 2 becomes RF 3", (_one((1, 2), (1, 2, 3), 1.0, 44),), 4e6),
    PlannedCase(
        "RF 2, two leaders, one destination",
        partitions_in_turn(2, [((1, 2), (1, 3)), ((2, 1), (2, 3))], 0.8, 16),
        3.6e6,
    ),
    PlannedCase("RF 2, eight partitions", partitions_in_turn(8, [((1, 2), (1, 3))], 0.15, 5), 4.4e6),
    PlannedCase(
        "RF 1, ten partitions, two destinations", partitions_in_turn(10, [((1,), (3,)), ((2,), (4,))], 0.2, 8.8), 3e6
    ),
    PlannedCase("RF 3, forty partitions, two destinations", partitions_in_turn(40, _FORTY, 0.04, 3.4), 5e6),
    PlannedCase("RF 2, unequal partitions", (_one((1, 2), (1, 3), 1.5, 40), _one((2, 1), (2, 4), 0.5, 20)), 5e6),
    PlannedCase("RF 2, one partition, busy machine", (_one((1, 2), (1, 3), 1.0, 78),), 5e6, busy=2),
    PlannedCase(
        "RF 3, a broker replaced, busy machine",
        partitions_in_turn(12, [((1, 2, 3), (1, 2, 4)), ((2, 3, 1), (2, 4, 1)), ((3, 1, 2), (4, 1, 2))], 0.1, 3.3),
        3.2e6,
        busy=2,
    ),
    PlannedCase("RF 1, one partition, busy machine", (_one((1,), (3,), 1.0, 44),), 3e6, busy=2),
    PlannedCase("RF 3, forty partitions, busy machine", partitions_in_turn(40, _FORTY, 0.04, 3.4), 5e6, busy=2),
    # The largest partition has 3, 4, 6 and 8 times the bytes and writes of the smallest.
    PlannedCase("RF 2, five uneven partitions", partitions_in_turn(5, [((1, 2), (1, 3))], 0.1, 6, 0.5), 4e6),
    PlannedCase("RF 1, four uneven partitions", partitions_in_turn(4, [((1,), (3,))], 0.1, 5, 1.0), 3e6),
    PlannedCase(
        "RF 3, eleven uneven partitions, two destinations", partitions_in_turn(11, _FORTY, 0.03, 3, 0.5), 4.5e6
    ),
    PlannedCase(
        "RF 2, eight uneven partitions, two leaders",
        partitions_in_turn(8, [((1, 2), (1, 3)), ((2, 1), (2, 3))], 0.03, 2.5, 1.0),
        4.4e6,
    ),
    PlannedCase(
        "RF 2, five uneven partitions, busy machine",
        partitions_in_turn(5, [((1, 2), (1, 4))], 0.1, 6, 0.5),
        4e6,
        busy=2,
    ),
    PlannedCase(
        "RF 3, eleven uneven partitions, busy machine", partitions_in_turn(11, _FORTY, 0.03, 3, 0.5), 4.5e6, busy=2
    ),
)

# Cut into three batches of about 25 s. Little is written, because a later batch grows while the ones before it move.
BATCHED: tuple[PlannedCase, ...] = (
    PlannedCase("RF 1, six partitions", partitions_in_turn(6, [((1,), (3,)), ((2,), (4,))], 0.03, 60), 3e6),
    PlannedCase("RF 2, nine partitions", partitions_in_turn(9, [((1, 2), (1, 3)), ((2, 1), (2, 4))], 0.02, 40), 3e6),
    PlannedCase(
        "RF 3, nine partitions",
        partitions_in_turn(9, [((1, 2, 3), (1, 2, 4)), ((2, 3, 1), (2, 3, 4)), ((3, 1, 2), (3, 1, 4))], 0.02, 40),
        3.5e6,
    ),
)

# The history is large enough that no trial of a throttle reaches the end of its move.
SITUATIONS: tuple[PlannedCase, ...] = (
    PlannedCase("RF 1, two leaders, one destination", partitions_in_turn(2, [((1,), (3,)), ((2,), (3,))], 1.5, 150)),
    PlannedCase("RF 2 becomes RF 3", partitions_in_turn(1, [((1, 2), (1, 2, 3))], 2.0, 150)),
    PlannedCase(
        "RF 3, two leaders, one destination",
        partitions_in_turn(2, [((1, 2, 3), (1, 2, 4)), ((2, 3, 1), (2, 3, 4))], 1.0, 120),
    ),
)
