"""The ticks topic is deleted, emptied or extended under a running watch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from benchmarks.groups.outages.context import ScenarioContext
from benchmarks.groups.outages.scenarios.scenario import Scenario

_STOPPED_S = 2.0
_MORE_PARTITIONS = 2


@dataclass(frozen=True, kw_only=True)
class TopicChanged(Scenario):
    """The ticks topic is changed.

    Attributes:
        change: changes it.
    """

    change: Callable[[ScenarioContext], None]

    def begin(self, context: ScenarioContext) -> None:
        """Change the topic."""
        self.change(context)


def _delete_topic(context: ScenarioContext) -> None:
    """Delete the topic, and create it again with the same partitions."""
    span = context.ticks.renew()
    context.kafka_spans.append(span)
    context.note(f"there was no ticks topic for {span.length_s:.1f} s")


def _delete_unread_records(context: ScenarioContext) -> None:
    """Delete all records while the watch and its JVM are suspended, so that they have not read them.

    The usual end of a scenario resumes them.
    """
    context.suspend(context.live.evaluating())
    context.wait(_STOPPED_S)
    context.ticks.delete_records()


# The history job stops at lost records until an operator decides, so the next scenario needs new tables.
SCENARIOS: tuple[Scenario, ...] = (
    TopicChanged(
        name="ticks_deleted", title="ticks topic deleted and made again", change=_delete_topic, fresh_after=True
    ),
    TopicChanged(
        name="records_deleted_stopped",
        title="records of the ticks deleted while the watch is stopped",
        change=_delete_unread_records,
        length_s=0.0,
        fresh_after=True,
    ),
    TopicChanged(
        name="records_deleted",
        title="records of the ticks deleted",
        change=lambda s: s.ticks.delete_records(),
        fresh_after=True,
    ),
    TopicChanged(
        name="partitions_added",
        title="partitions added to the ticks topic",
        change=lambda s: s.ticks.add_partitions(_MORE_PARTITIONS),
    ),
)
