"""The moves that go wrong: what the groups ``finish`` and ``smallest`` try their throttles on."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.scene import Part

_MB = 1_000_000


@dataclass(frozen=True)
class Case:
    """One move that goes wrong.

    Attributes:
        name: what it shows.
        parts: its partitions.
        throttle_bytes_per_s: too small from the start, or from the switch on.
        switch: the partition whose preferred leader is elected once all is healthy; None: none.
    """

    name: str
    parts: tuple[Part, ...]
    throttle_bytes_per_s: float
    switch: int | None = None


def _part(before: tuple[int, ...], after: tuple[int, ...], live_mb_per_s: float, history_mb: int) -> Part:
    return Part(before, after, live_mb_per_s * _MB, history_mb * _MB)


# RF 2 needs 2 x the write rate on a leader, RF 3 needs 3 x; the in-sync part of it is 1 x and 2 x.
CASES: tuple[Case, ...] = (
    Case("RF 2, starved, small", (_part((1, 2), (1, 3), 2.0, 10),), 1.5e6),
    Case("RF 2, losing", (_part((1, 2), (1, 3), 2.0, 25),), 3e6),
    Case("RF 2, losing, fast", (_part((1, 2), (1, 3), 3.0, 40),), 4.5e6),
    Case("RF 2, slow write", (_part((3, 4), (3, 1), 1.0, 20),), 1.5e6),
    Case(
        "RF 2, leader switch",
        (_part((1, 2), (2, 3), 2.0, 25), _part((2, 1), (3, 1), 2.0, 25)),
        5.6e6,
        switch=0,
    ),
    Case(
        "RF 2, one destination for four",
        tuple(_part((1, 2) if n % 2 else (2, 1), (3, 1), 1.0, 4) for n in range(4)),
        3e6,
    ),
    Case(
        "RF 2, two destinations",
        (_part((1, 2), (1, 3), 1.5, 30), _part((2, 1), (2, 4), 2.0, 15)),
        2.5e6,
    ),
    Case("RF 3, losing", (_part((1, 2, 3), (1, 2, 4), 1.0, 25),), 2.5e6),
    Case("RF 3, starved", (_part((1, 2, 3), (1, 2, 4), 1.0, 15),), 1.5e6),
    Case(
        "RF 3, unequal",
        (_part((1, 2, 3), (1, 2, 4), 0.7, 40), _part((2, 3, 1), (2, 3, 4), 1.5, 20)),
        3.5e6,
    ),
    Case(
        "RF 3, leader switch",
        (_part((1, 2, 3), (2, 3, 4), 1.0, 28), _part((2, 1, 3), (2, 3, 4), 1.0, 28)),
        3.8e6,
        switch=0,
    ),
    Case("RF 3, large", (_part((4, 1, 2), (4, 1, 3), 1.2, 50),), 3e6),
)

# So much history that no trial of a throttle comes to the end of its move.
SITUATIONS: tuple[Case, ...] = (
    Case("RF 2, one partition", (_part((1, 2), (1, 3), 2.0, 150),), 3e6),
    Case("RF 3, one partition", (_part((1, 2, 3), (1, 2, 4), 1.0, 120),), 2.5e6),
    Case(
        "RF 2, unequal partitions, one destination",
        (_part((1, 2), (1, 3), 1.0, 100), _part((2, 1), (2, 3), 2.2, 100)),
        2.5e6,
    ),
)
