"""Summary of an election plan: its first batch, its totals and the resulting balance."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.planning.elections.planner import Batch, ElectionPlan, RequiredThrottleIncrease
from headroom.schemas.keys import TopicPartition


@dataclass(frozen=True)
class BalanceForecast:
    """Imbalance of one broker after elections.

    Attributes:
        broker: broker that is the preferred leader of at least one partition.
        first_batch_ratio: imbalance after the first batch, 0 to 1; without batches, the current one.
        last_batch_ratio: imbalance after all batches, 0 to 1.
    """

    broker: int
    first_batch_ratio: float
    last_batch_ratio: float


@dataclass(frozen=True)
class ElectionPlanSummary:
    """Summary of an election plan, whose size does not grow with the number of partitions.

    Attributes:
        tick_ms: tick of the plan, epoch milliseconds.
        batches: number of batches.
        elections: number of partitions in all batches.
        write_bytes_per_s: sum of their write rates; None if one is unknown.
        first_batch: partitions of the first batch, in order.
        first_batch_write_bytes_per_s: sum of their write rates; None if one is unknown.
        outlooks: forecast of every broker that is the preferred leader of a partition, by id.
        left_out: number of partitions in no batch, by ``planning.elections.planner.Reason``.
        raise_first: throttles to raise before these can be elected.
    """

    tick_ms: int
    batches: int
    elections: int
    write_bytes_per_s: float | None
    first_batch: tuple[TopicPartition, ...]
    first_batch_write_bytes_per_s: float | None
    outlooks: tuple[BalanceForecast, ...]
    left_out: tuple[tuple[str, int], ...] = ()
    raise_first: tuple[RequiredThrottleIncrease, ...] = ()

    @property
    def greatest_first_batch_ratio(self) -> float:
        """Return the highest imbalance of a broker after the first batch, 0 to 1."""
        return max((outlook.first_batch_ratio for outlook in self.outlooks), default=0.0)

    @property
    def greatest_last_batch_ratio(self) -> float:
        """Return the highest imbalance of a broker after all batches, 0 to 1."""
        return max((outlook.last_batch_ratio for outlook in self.outlooks), default=0.0)


def summarize(plan: ElectionPlan, tick_ms: int) -> ElectionPlanSummary:
    """Return the summary of a plan.

    Args:
        plan: election plan.
        tick_ms: tick of the plan, epoch milliseconds.
    """
    first = plan.batches[0] if plan.batches else None
    before = {balance.broker: balance.imbalance_ratio for balance in plan.before}
    left_out = Counter(left.reason.value for left in plan.left_out)
    return ElectionPlanSummary(
        tick_ms=tick_ms,
        batches=len(plan.batches),
        elections=sum(len(batch.partitions) for batch in plan.batches),
        write_bytes_per_s=_write_rate(plan.batches),
        first_batch=first.partitions if first else (),
        first_batch_write_bytes_per_s=_write_rate(plan.batches[:1]),
        outlooks=tuple(
            BalanceForecast(b.broker, (first.imbalance_ratios if first else before)[b.broker], b.imbalance_ratio)
            for b in plan.after
        ),
        left_out=tuple(sorted(left_out.items())),
        raise_first=plan.raise_first,
    )


def _write_rate(batches: Sequence[Batch]) -> float | None:
    known = all(not batch.unknown_rates for batch in batches)
    return sum((batch.write_bytes_per_s for batch in batches), 0.0) if known else None
