"""The moves that go wrong: what the groups ``finish`` and ``smallest`` try their throttles on."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from benchmarks.scene import RECORD_BYTES, Part

_MB = 1_000_000


@dataclass(frozen=True)
class Case:
    """One move that goes wrong.

    Attributes:
        name: what it shows.
        parts: its partitions.
        throttle_bytes_per_s: too small from the start, or from the switch on.
        switch: the partition whose preferred leader is elected once all is healthy; None: none.
        record_bytes: size of a record's value; a batch of the producer holds 32 kB, or one record if that is larger.
        sway_ratio: how far write rates swing about their mean, 0 to 1.
        busy: processes that keep a core busy from before the move to its end.
    """

    name: str
    parts: tuple[Part, ...]
    throttle_bytes_per_s: float
    switch: int | None = None
    record_bytes: int = RECORD_BYTES
    sway_ratio: float = 0.0
    busy: int = 0


def _part(before: tuple[int, ...], after: tuple[int, ...], live_mb_per_s: float, history_mb: float) -> Part:
    return Part(before, after, live_mb_per_s * _MB, round(history_mb * _MB))


def _parts(
    count: int, moves: Sequence[tuple[tuple[int, ...], tuple[int, ...]]], live_mb_per_s: float, history_mb: float
) -> tuple[Part, ...]:
    """Return partitions of one write rate and size that take turns at some moves."""
    return tuple(_part(*moves[number % len(moves)], live_mb_per_s, history_mb) for number in range(count))


# RF 1 needs the write rate on a leader, RF 2 needs 2 x, RF 3 needs 3 x; the in-sync part of it is 0, 1 x and 2 x.
_QUIET: tuple[Case, ...] = (
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
    Case("RF 1, one partition", (_part((1,), (3,), 2.0, 30),), 1.2e6),
    Case(
        "RF 1, two leaders, two destinations",
        _parts(4, [((1,), (3,)), ((1,), (4,)), ((2,), (3,)), ((2,), (4,))], 0.8, 15),
        1.2e6,
    ),
    Case(
        "RF 2 becomes RF 3, three destinations",
        _parts(3, [((1, 2), (1, 2, 3)), ((2, 3), (2, 3, 4)), ((3, 4), (3, 4, 1))], 1.0, 30),
        1.5e6,
    ),
    Case(
        "RF 3, a broker replaced",
        _parts(12, [((1, 2, 3), (1, 2, 4)), ((2, 3, 1), (2, 4, 1)), ((3, 1, 2), (4, 1, 2))], 0.3, 6),
        3e6,
    ),
    Case(
        "RF 2, each leader to each destination",
        _parts(4, [((1, 2), (1, 3)), ((2, 1), (2, 3)), ((1, 2), (1, 4)), ((2, 1), (2, 4))], 1.0, 45),
        3e6,
    ),
    Case(
        "RF 2, one large of twenty",
        (
            _part((1, 2), (1, 3), 0.5, 60),
            *_parts(19, [((1, 2), (1, 3))], 0.1, 3),
        ),
        3.5e6,
    ),
    Case("RF 2, ten small partitions", _parts(10, [((1, 2), (1, 3))], 0.2, 8), 1.5e6),
    Case(
        "RF 3, forty partitions, two destinations",
        _parts(40, [((1, 2, 3), (1, 2, 4)), ((2, 3, 4), (2, 3, 1))], 0.05, 4),
        2.5e6,
    ),
    Case("RF 1, 200 partitions, two destinations", _parts(200, [((1,), (3,)), ((2,), (4,))], 0.02, 0.8), 1.5e6),
    Case("RF 2, 200 partitions, two destinations", _parts(200, [((1, 2), (1, 3)), ((2, 1), (2, 4))], 0.02, 1.0), 3e6),
    Case("RF 2, large batches", (_part((1, 2), (1, 3), 2.0, 40),), 3e6, record_bytes=200_000),
    Case("RF 2, writes swing", (_part((1, 2), (1, 3), 2.0, 80),), 3e6, sway_ratio=0.2),
)
_ALSO_BUSY = (
    "RF 2, losing",
    "RF 2, leader switch",
    "RF 2, one destination for four",
    "RF 2, two destinations",
    "RF 3, unequal",
    "RF 3, leader switch",
    "RF 1, one partition",
    "RF 3, a broker replaced",
    "RF 2, each leader to each destination",
    "RF 2, one large of twenty",
    "RF 3, forty partitions, two destinations",
    "RF 1, 200 partitions, two destinations",
)
CASES: tuple[Case, ...] = (
    *_QUIET,
    *(replace(case, name=f"{case.name}, busy machine", busy=2) for case in _QUIET if case.name in _ALSO_BUSY),
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
    Case("RF 1, one partition", (_part((1,), (3,), 3.0, 150),), 1.8e6),
    Case("RF 1, two leaders, one destination", _parts(2, [((1,), (3,)), ((2,), (3,))], 1.5, 150), 1.8e6),
    Case("RF 2, two destinations", _parts(2, [((1, 2), (1, 3)), ((2, 1), (2, 4))], 2.0, 150), 2.5e6),
    Case("RF 2 becomes RF 3", (_part((1, 2), (1, 2, 3), 2.0, 150),), 3e6),
    Case(
        "RF 3, two leaders, one destination", _parts(2, [((1, 2, 3), (1, 2, 4)), ((2, 3, 1), (2, 3, 4))], 1.0, 120), 2e6
    ),
    Case(
        "RF 2, each leader to each destination",
        _parts(4, [((1, 2), (1, 3)), ((2, 1), (2, 3)), ((1, 2), (1, 4)), ((2, 1), (2, 4))], 1.0, 120),
        2.5e6,
    ),
    Case("RF 2, eight partitions", _parts(8, [((1, 2), (1, 3))], 0.5, 60), 5e6),
    Case("RF 2, large batches", (_part((1, 2), (1, 3), 2.0, 150),), 3e6, record_bytes=200_000),
    Case("RF 3, the leader leaves", (_part((1, 2, 3), (4, 2, 3), 1.0, 120),), 2.5e6),
)
