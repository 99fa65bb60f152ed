"""Cases of the group ``plan_truth``: a state of four brokers, and a plan for a topic on them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

# The broker that is killed, cordoned, small, or not readable.
TROUBLED = 4
KAFKA_4_3, KAFKA_3_9 = KAFKA = ("4.3", "3.9")
_MB = 1_000_000


class TruthTrouble(str, Enum):
    """What is wrong with the troubled broker.

    Attributes:
        NONE: nothing.
        DEAD: it is killed after the topic was written.
        UNREADABLE: its metrics cannot be read, by its endpoint in the settings.
        CORDONED: its log directory takes no new replicas.
        SMALL: its log directory is on a small file system.
        TIERED: nothing; topics have remote storage, and all their segments but the active ones are uploaded.
    """

    NONE = "none"
    DEAD = "dead"
    UNREADABLE = "unreadable"
    CORDONED = "cordoned"
    SMALL = "small"
    TIERED = "tiered"


@dataclass(frozen=True)
class TruthCase:
    """One plan.

    Attributes:
        name: name in records and progress.
        trouble: state of the troubled broker.
        before: replicas before.
        after: replicas after.
        history_bytes: bytes of the log.
        write_bytes_per_s: write rate meanwhile.
        throttle_ratio: throttle as a multiple of the required rate; None: the recommended one.
        partitions: number of partitions, all with the same replicas.
        kafka: version of the brokers; those of 3.9 are in ZooKeeper mode.
    """

    name: str
    trouble: TruthTrouble
    before: tuple[int, ...]
    after: tuple[int, ...]
    history_bytes: int = 4 * _MB
    write_bytes_per_s: float = 0.0
    throttle_ratio: float | None = None
    partitions: int = 1
    kafka: str = KAFKA_4_3

    @property
    def required_bytes_per_s(self) -> float:
        """What a throttle has to exceed at the leader, which sends all that is written to every other replica."""
        return self.write_bytes_per_s * self.partitions * (len({*self.before, *self.after}) - 1)


Shape = tuple[str, tuple[int, ...], tuple[int, ...]]
_COPIES: tuple[Shape, ...] = (
    ("factor 1 moves", (1,), (2,)),
    ("factor 2, a follower is replaced", (1, 2), (1, 3)),
    ("factor 2, the leader leaves", (1, 2), (3, 2)),
    ("factor 3, a follower is replaced", (1, 2, 3), (1, 2, 4)),
    ("factor 2 becomes 3", (2, 3), (2, 3, 1)),
)
_UNCOPIED: tuple[Shape, ...] = (
    ("factor 3 becomes 2", (1, 2, 3), (1, 2)),
    ("another order", (1, 2), (2, 1)),
)
_DEAD: tuple[Shape, ...] = (
    ("it keeps a replica, a follower is replaced", (1, 2, 4), (1, 3, 4)),
    ("it keeps a replica, the leader leaves", (1, 2, 4), (3, 2, 4)),
    ("it led and keeps a replica", (4, 1, 2), (4, 1, 3)),
    ("it keeps a replica, the factor falls", (1, 2, 4), (1, 4)),
    ("it keeps a replica, the factor falls with a copy", (1, 2, 3, 4), (1, 4)),
    ("it keeps a replica, three become two others", (1, 2, 4), (3, 4)),
    ("it keeps a replica, the factor rises", (1, 4), (1, 4, 2)),
    ("it keeps a replica, another order", (1, 2, 4), (2, 1, 4)),
    ("it gives up a replica", (1, 4), (1, 2)),
    ("it gives up the lead and a replica", (4, 2), (1, 2)),
    ("it gives up a replica, the factor falls", (1, 2, 4), (1, 2)),
    ("it would get a replica", (1, 2), (1, 4)),
    ("it would get a replica, the factor rises", (1, 2), (1, 2, 4)),
    ("no leader, it had the only replica", (4,), (2,)),
    ("no leader, the factor would rise", (4,), (4, 2)),
)
_UNREADABLE: tuple[Shape, ...] = (
    ("it leads", (4, 1), (4, 2)),
    ("it leads and leaves", (4, 1), (2, 1)),
    ("it follows and leaves", (1, 4), (1, 2)),
    ("it gets a replica", (1, 2), (1, 4)),
    ("it takes no part", (1, 2), (1, 3)),
    ("it leads, and the factor falls", (4, 1, 2), (4, 1)),
)
_CORDONED: tuple[Shape, ...] = (
    ("it would get a replica", (1, 2), (1, 4)),
    ("it would get a replica, the factor rises", (1, 2), (1, 2, 4)),
    ("it keeps a replica", (1, 4), (2, 4)),
    ("it gives up a replica", (1, 4), (1, 2)),
)
_TIERED: tuple[Shape, ...] = (
    ("factor 1 moves", (1,), (2,)),
    ("a follower is replaced", (1, 2), (1, 3)),
    ("factor 2 becomes 3", (1, 2), (1, 2, 3)),
)
_SMALL_BYTES = {"fits": 4 * _MB, "does not fit": 70 * _MB}


def _cases(
    trouble: TruthTrouble,
    shapes: Sequence[Shape],
    suffix: str = "",
    kafka: str = KAFKA_4_3,
    **fields: int | float | None,
) -> list[TruthCase]:
    if kafka != KAFKA_4_3:
        suffix += f", Kafka {kafka}"
    return [
        TruthCase(f"{trouble.value}: {name}{suffix}", trouble, before, after, kafka=kafka, **fields)  # type: ignore[arg-type]
        for name, before, after in shapes
    ]


CASES: tuple[TruthCase, ...] = (
    *_cases(TruthTrouble.NONE, _COPIES),
    *_cases(TruthTrouble.NONE, _UNCOPIED),
    *_cases(TruthTrouble.NONE, _COPIES, ", written", write_bytes_per_s=0.3 * _MB),
    *_cases(TruthTrouble.NONE, _COPIES, ", throttle too low", write_bytes_per_s=1.5 * _MB, throttle_ratio=0.8),
    *_cases(TruthTrouble.NONE, _COPIES[1:2], ", ten partitions", partitions=10, history_bytes=_MB),
    *_cases(TruthTrouble.DEAD, _DEAD),
    *_cases(TruthTrouble.DEAD, _DEAD[:3], ", written", write_bytes_per_s=0.3 * _MB),
    *_cases(TruthTrouble.UNREADABLE, _UNREADABLE),
    *_cases(TruthTrouble.CORDONED, _CORDONED),
    *[
        case
        for what, size in _SMALL_BYTES.items()
        for case in _cases(
            TruthTrouble.SMALL,
            (
                ("a follower is replaced", (1, 2), (1, 4)),
                ("the factor rises", (1, 2), (1, 2, 4)),
                ("moves", (1,), (4,)),
            ),
            f", {what}",
            history_bytes=size,
        )
    ],
    *_cases(TruthTrouble.TIERED, _TIERED),
    *_cases(TruthTrouble.TIERED, _TIERED, ", written", write_bytes_per_s=0.3 * _MB),
    *_cases(TruthTrouble.TIERED, _TIERED[:2], ", ten partitions", partitions=10, history_bytes=4 * _MB),
    # Records have the number of their case: others come last.
    *_cases(TruthTrouble.DEAD, _DEAD, kafka=KAFKA_3_9),
    *_cases(TruthTrouble.DEAD, _DEAD[:3], ", written", KAFKA_3_9, write_bytes_per_s=0.3 * _MB),
    *_cases(TruthTrouble.NONE, _COPIES, kafka=KAFKA_3_9),
    *_cases(TruthTrouble.NONE, _UNCOPIED, kafka=KAFKA_3_9),
    *_cases(
        TruthTrouble.NONE,
        _COPIES[:2],
        ", throttle too low",
        KAFKA_3_9,
        write_bytes_per_s=1.5 * _MB,
        throttle_ratio=0.8,
    ),
    *_cases(TruthTrouble.UNREADABLE, _UNREADABLE, kafka=KAFKA_3_9),
)
