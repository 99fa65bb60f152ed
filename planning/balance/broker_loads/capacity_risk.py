"""Record of a broker that would exceed its limit if others were lost."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class CapacityRisk:
    """A broker that would exceed its limit if others were lost.

    Attributes:
        lost: what is lost: ``broker 3`` or ``rack a``.
        broker: broker that takes over more than its limit.
        resource: resource, as in ``gold/broker_load``.
        load: its load then, in the unit of the resource.
        limit: share of its capacity that it may use, in the same unit.
    """

    lost: str
    broker: int
    resource: str
    load: float
    limit: float

    @property
    def over(self) -> float:
        """Return by how much the load exceeds the limit."""
        return self.load - self.limit
