"""Draft of one partition's target replicas, which the steps of the planner complete."""

from __future__ import annotations

from dataclasses import dataclass, field

from headroom.planning.reassignments.cluster_state import PartitionPlacement


# Compared by identity: two drafts are never equal, and comparing all fields would take long.
@dataclass(slots=True, eq=False)
class Draft:
    """Target replicas of one partition, as far as they are chosen.

    Attributes:
        present: the partition as it is.
        size_bytes: bytes of its log, or their estimate.
        factor: number of replicas that it is to have.
        replicas: replicas chosen so far; the first is the preferred leader.
        added: those of them that are new and were chosen freely, so that another choice costs no further copy.
        touched: whether the request asks for other replicas; if not, it may still be moved to spread the load.
        lead_options: replicas that may be the first; empty if the first one is to stay.
    """

    present: PartitionPlacement
    size_bytes: int
    factor: int
    replicas: list[int]
    added: set[int] = field(default_factory=set)
    touched: bool = True
    lead_options: tuple[int, ...] = ()

    @property
    def missing(self) -> int:
        """Number of replicas that are still to be chosen."""
        return self.factor - len(self.replicas)

    def exchange(self, old: int, new: int) -> None:
        """Replace one replica by another, at the same position."""
        self.replicas[self.replicas.index(old)] = new
        self.added.discard(old)
        self.added.add(new)

    def put_first(self, broker: int) -> None:
        """Move one replica to the first position; the others keep their order."""
        if self.replicas[0] != broker:
            self.replicas.remove(broker)
            self.replicas.insert(0, broker)
