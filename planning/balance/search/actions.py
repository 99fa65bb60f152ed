"""Actions of a proposal: elections and moves, each of one partition."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ActionKind(str, Enum):
    """Kind of an action.

    Attributes:
        ELECT: a replica becomes the preferred leader and is elected; nothing is copied.
        MOVE: a replica moves to another broker, with the lead if it has it.
    """

    ELECT = "elect"
    MOVE = "move"


@dataclass(frozen=True, slots=True)
class BalanceAction:
    """One action. Partitions and brokers are indices into the model.

    Attributes:
        kind: kind of the action.
        partition: partition.
        source: broker that gives the lead or the replica.
        target: broker that takes it.
        bytes_copied: bytes that new replicas copy; 0 for an election.
        leads: whether the lead of the partition goes over with it.
    """

    kind: ActionKind
    partition: int
    source: int
    target: int
    bytes_copied: float = 0.0
    leads: bool = True

    @property
    def copies(self) -> int:
        """Return the number of replicas that are copied."""
        return int(self.kind is ActionKind.MOVE)
