"""A plan as the request of the bulk reader, and its answer as metrics."""

from __future__ import annotations

from cluster.metrics.mbeans import (
    BROKER_READS,
    LAGS,
    LOG_PARTS,
    START,
    MetricsAccumulator,
    ReadPlan,
    keys_of,
    log_reads,
    reading,
    topic_reads,
)
from cluster.model import Metrics


class JmxRequest:
    """One broker's reads of one tick, for the bulk reader: a line for each.

    Args:
        plan: what is read.

    Attributes:
        plan: the same.
        text: the request, one line per MBean or pattern.
    """

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan
        self._reads = [
            START,
            # The lags and the ends they belong to are read close together.
            LAGS,
            *log_reads(plan.watched, LOG_PARTS),
            *topic_reads(plan),
            *log_reads(plan.ends_only, LOG_PARTS[:1]),
            *BROKER_READS,
        ]
        self.text = "\n".join(f"{read.mbean}\t{read.attribute}" for read in self._reads)

    def parse(self, answer: str) -> Metrics:
        """Return what the broker said; an MBean that it does not have is missing.

        Raises:
            ValueError: a line of the answer is not what the bulk reader writes.
        """
        gathered = MetricsAccumulator(self.plan)
        for line in answer.splitlines():
            index, read_ms, value, *name = line.split("\t")
            read = self._reads[int(index)]
            keys = keys_of(name[0]) if name else read.keys
            gathered.take(read.kind, read.name, keys, reading(int(read_ms), _number(value)))
        return gathered.metrics()


def _number(text: str) -> float:
    # Java writes a double with a point, an exponent, or as NaN or Infinity.
    return float(text) if any(sign in text for sign in ".NEI") else int(text)
