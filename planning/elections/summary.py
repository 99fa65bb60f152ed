"""A plan of elections in short: the first batch, how many there are, and what they come to."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

from planning.elections.planner import Batch, ElectionPlan, Name, RequiredThrottleIncrease


class BalanceForecast(NamedTuple):
    """What elections make of one broker's imbalance.

    Attributes:
        broker: broker that is preferred for at least one partition.
        first_batch_ratio: its imbalance once the first batch is done, 0 to 1; of no batch, as it is.
        last_batch_ratio: once all are done.
    """

    broker: int
    first_batch_ratio: float
    last_batch_ratio: float


@dataclass(frozen=True)
class ElectionPlanSummary:
    """A plan of elections in short, which does not grow with the partitions.

    Attributes:
        tick_ms: tick that it is for, epoch milliseconds.
        batches: how many there are.
        elections: how many partitions they elect a leader of.
        write_bytes_per_s: sum of their write rates; None: one of them is unknown.
        first_batch: its partitions, in order.
        first_batch_write_bytes_per_s: sum of their write rates; None: one of them is unknown.
        outlooks: of every broker that is preferred for anything, by id.
        left_out: partitions that are in no batch, by ``planning.elections.planner.Reason``.
        raise_first: throttles to raise before the others can be elected.
    """

    tick_ms: int
    batches: int
    elections: int
    write_bytes_per_s: float | None
    first_batch: tuple[Name, ...]
    first_batch_write_bytes_per_s: float | None
    outlooks: tuple[BalanceForecast, ...]
    left_out: tuple[tuple[str, int], ...] = ()
    raise_first: tuple[RequiredThrottleIncrease, ...] = ()

    @property
    def greatest_first_batch_ratio(self) -> float:
        """Return the greatest imbalance of a broker once the first batch is done, 0 to 1."""
        return max((outlook.first_batch_ratio for outlook in self.outlooks), default=0.0)

    @property
    def greatest_last_batch_ratio(self) -> float:
        """Return the greatest imbalance of a broker once all batches are done, 0 to 1."""
        return max((outlook.last_batch_ratio for outlook in self.outlooks), default=0.0)


def summarize(plan: ElectionPlan, tick_ms: int) -> ElectionPlanSummary:
    """Return a plan in short.

    Args:
        plan: what to elect.
        tick_ms: tick that it is for, epoch milliseconds.
    """
    first = plan.batches[0] if plan.batches else None
    before = {balance.broker: balance.imbalance_ratio for balance in plan.before}
    left_out = Counter(left.reason.value for left in plan.left_out)
    return ElectionPlanSummary(
        tick_ms=tick_ms,
        batches=len(plan.batches),
        elections=sum(len(batch.partitions) for batch in plan.batches),
        write_bytes_per_s=_written(plan.batches),
        first_batch=first.partitions if first else (),
        first_batch_write_bytes_per_s=_written(plan.batches[:1]),
        outlooks=tuple(
            BalanceForecast(b.broker, (first.imbalance_ratios if first else before)[b.broker], b.imbalance_ratio)
            for b in plan.after
        ),
        left_out=tuple(sorted(left_out.items())),
        raise_first=plan.raise_first,
    )


def _written(batches: Sequence[Batch]) -> float | None:
    known = all(not batch.unknown_rates for batch in batches)
    return sum((batch.write_bytes_per_s for batch in batches), 0.0) if known else None
