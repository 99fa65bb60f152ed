"""Actions of a proposal: elections, moves and swaps, each of one partition or of two."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class ActionKind(str, Enum):
    """Kind of an action.

    Attributes:
        ELECT: a replica becomes the preferred leader and is elected; nothing is copied.
        MOVE: a replica moves to another broker, with the lead if it has it.
        SWAP: replicas of two partitions change places.
    """

    ELECT = "elect"
    MOVE = "move"
    SWAP = "swap"


@dataclass(frozen=True, slots=True)
class BalanceAction:
    """One action. Partitions and brokers are indices into the model.

    Attributes:
        kind: kind of the action.
        partition: partition.
        source: broker that gives the lead or the replica.
        target: broker that takes it.
        swapped: for a swap, the partition whose replica goes from target to source; -1 otherwise.
        bytes_copied: bytes that new replicas copy; 0 for an election.
        leads: whether the lead of the partition goes over with it.
        swapped_leads: for a swap, whether the lead of the other partition goes over.
    """

    kind: ActionKind
    partition: int
    source: int
    target: int
    swapped: int = -1
    bytes_copied: float = 0.0
    leads: bool = True
    swapped_leads: bool = False

    @property
    def copies(self) -> int:
        """Return the number of replicas that are copied."""
        return {ActionKind.ELECT: 0, ActionKind.MOVE: 1, ActionKind.SWAP: 2}[self.kind]

    def moves(self) -> tuple[tuple[int, int, int], ...]:
        """Return the replica moves as (partition, source, target)."""
        if self.kind is ActionKind.ELECT:
            return ()
        own = (self.partition, self.source, self.target)
        return (own,) if self.kind is ActionKind.MOVE else (own, (self.swapped, self.target, self.source))
