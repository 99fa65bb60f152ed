"""Faults of a migration, at random times that its number decides."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from random import Random

from benchmarks.fixtures.migrations.brokers import BROKERS

PARTITIONS, WRITERS = 4, 2
# Seconds from the start of the run to a fault. A run that is not disturbed takes 30 to 40 s.
_FROM_S, _TO_S = 1.0, 40.0
_RUN_TO_S = 30.0
_DOWN_S = (0.5, 6.0)


class FaultKind(str, Enum):
    """What happens."""

    LEADER_SWITCH = "leader switch on the origin"
    KILL_ON_ORIGIN = "kill of a broker of the origin"
    KILL_ON_TARGET = "kill of a broker of the target"
    KILL_WRITER = "kill of a producer"
    KILL_READER = "kill of the consumer"
    KILL_RUN = "kill of the run"


@dataclass(frozen=True)
class PlannedFault:
    """A fault.

    Attributes:
        at_s: seconds from the start of the run.
        kind: what happens.
        which: id of the broker, or number of the partition or the producer, from 0.
        down_s: seconds from a kill to the start of what was killed.
    """

    at_s: float
    kind: FaultKind
    which: int = 0
    down_s: float = 0.0


def faults_of(number: int) -> Sequence[PlannedFault]:
    """Return the faults of a migration, in the order of their times.

    Args:
        number: number of the migration, from 0. In each third one the consumer is killed, in the others a producer.
    """
    chance = Random(f"migration {number}")
    router = FaultKind.KILL_READER if number % 3 == 2 else FaultKind.KILL_WRITER
    brokers = range(1, BROKERS + 1)
    faults = [
        PlannedFault(chance.uniform(_FROM_S, _TO_S), FaultKind.LEADER_SWITCH, chance.randrange(PARTITIONS)),
        PlannedFault(
            chance.uniform(_FROM_S, _TO_S), FaultKind.KILL_ON_ORIGIN, chance.choice(brokers), chance.uniform(*_DOWN_S)
        ),
        PlannedFault(
            chance.uniform(_FROM_S, _TO_S), FaultKind.KILL_ON_TARGET, chance.choice(brokers), chance.uniform(*_DOWN_S)
        ),
        PlannedFault(chance.uniform(_FROM_S, _TO_S), router, chance.randrange(WRITERS), chance.uniform(*_DOWN_S)),
        PlannedFault(chance.uniform(_FROM_S, _RUN_TO_S), FaultKind.KILL_RUN, down_s=chance.uniform(*_DOWN_S)),
    ]
    return sorted(faults, key=lambda fault: fault.at_s)
