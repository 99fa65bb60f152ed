"""The ticks topic is deleted, emptied or extended under a running watch."""

from __future__ import annotations

from dataclasses import dataclass

from benchmarks.groups.outages.scenarios.scenario import Scenario
from benchmarks.groups.outages.context import ScenarioContext

_STOPPED_S = 2.0
_MORE_PARTITIONS = 2


@dataclass(frozen=True, kw_only=True)
class TicksDeleted(Scenario):
    """The ticks topic is deleted and created again, with the same partitions."""

    # The history job stops at lost records until an operator decides, so the next scenario needs new tables.
    fresh_after: bool = True

    def begin(self, context: ScenarioContext) -> None:
        """Delete the topic, and create it again."""
        span = context.ticks.renew()
        context.add_kafka_span(span)
        context.note(f"there was no ticks topic for {span.length_s:.1f} s")


@dataclass(frozen=True, kw_only=True)
class RecordsDeleted(Scenario):
    """All records of the ticks topic are deleted.

    Attributes:
        stopped: whether the watch and its JVM are suspended meanwhile, so that they have not read the records.
    """

    stopped: bool
    fresh_after: bool = True

    def begin(self, context: ScenarioContext) -> None:
        """Delete the records."""
        if self.stopped:
            context.suspend(context.live.evaluating())
            context.wait(_STOPPED_S)
        context.ticks.delete_records()

    # The usual end resumes a suspended watch.


@dataclass(frozen=True, kw_only=True)
class PartitionsAdded(Scenario):
    """The ticks topic gets more partitions."""

    def begin(self, context: ScenarioContext) -> None:
        """Add the partitions."""
        context.ticks.add_partitions(_MORE_PARTITIONS)


SCENARIOS: tuple[Scenario, ...] = (
    TicksDeleted(name="ticks_deleted", title="ticks topic deleted and made again"),
    RecordsDeleted(
        name="records_deleted_stopped",
        title="records of the ticks deleted while the watch is stopped",
        stopped=True,
        length_s=0.0,
    ),
    RecordsDeleted(name="records_deleted", title="records of the ticks deleted", stopped=False),
    PartitionsAdded(name="partitions_added", title="partitions added to the ticks topic"),
)
