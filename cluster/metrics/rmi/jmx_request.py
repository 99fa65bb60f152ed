"""Request of the JMX bulk reader for a read plan, and the parser of its answer."""

from __future__ import annotations

from headroom.cluster.metrics.mbeans import (
    LOG_PARTS,
    START,
    MetricsAccumulator,
    ReadPlan,
    keys_of,
    log_reads,
    reading,
    topic_reads,
)
from headroom.cluster.model import Metrics


class JmxRequest:
    """Bulk request for one broker, with one line per read.

    Args:
        plan: the metrics to read.

    Attributes:
        plan: the same plan.
        text: the request, one line per MBean or pattern.
    """

    def __init__(self, plan: ReadPlan) -> None:
        self.plan = plan
        self._reads = [
            START,
            # The lags and the log ends that they refer to are read close together.
            *plan.scope.first_reads,
            *log_reads(plan.watched, LOG_PARTS),
            *topic_reads(plan),
            *log_reads(plan.ends_only, LOG_PARTS[:1]),
            *plan.scope.broker_reads,
        ]
        self.text = "\n".join(f"{read.mbean}\t{read.attribute}" for read in self._reads)

    def parse(self, answer: str) -> Metrics:
        """Return the metrics of an answer; MBeans that the broker does not have are missing.

        Raises:
            ValueError: a line of the answer is not in the bulk reader's format.
        """
        accumulator = MetricsAccumulator(self.plan)
        for line in answer.splitlines():
            index, read_ms, value, *name = line.split("\t")
            read = self._reads[int(index)]
            keys = keys_of(name[0]) if name else read.keys
            # Java writes a double with a point, an exponent, or as NaN or Infinity.
            number = float(value) if any(sign in value for sign in ".NEI") else int(value)
            accumulator.add(read.kind, read.name, keys, reading(int(read_ms), number))
        return accumulator.metrics()
