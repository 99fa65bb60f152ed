"""Metrics source for Jolokia, an agent that answers many MBean reads with one JSON document."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from headroom.cluster.metrics.http import Deadline, HttpReader, Request, Response
from headroom.cluster.metrics.mbeans import (
    LOG_PARTS,
    START,
    MBeanRead,
    MetricsAccumulator,
    ReadPlan,
    keys_of,
    log_mbean,
    log_reads,
    reading,
)
from headroom.cluster.metrics.missing_metrics import REMEDIES
from headroom.cluster.metrics.source import NOT_ITS_OWN, MetricsError, check_plausible
from headroom.cluster.model import Metrics
from headroom.schemas.config import Source
from headroom.schemas.keys import TopicPartition

DEFAULT_PATH = "/jolokia/"
# No limit on a pattern's MBeans; no echo of the request, sorted names or stack traces.
_OPTIONS = (
    "maxCollectionSize=0&maxObjects=0&ignoreErrors=true&includeStackTrace=false&includeRequest=false"
    "&canonicalNaming=false&serializeLong=number"
)
# A read by name costs the agent about twice as much per value as a pattern, but a pattern visits every MBean of the
# broker. Up to this many logs are read by name.
_MAX_NAMED = 200
_NOT_THERE = 404
_OUT_OF_MEMORY = "OutOfMemoryError"
_MORE_HEAP = "The broker is out of memory: see its log and its heap, and give it more (KAFKA_HEAP_OPTS)."
# Maximum length of an agent's error text.
_MAX_ERROR_CHARACTERS = 4096


class JolokiaSource:
    """Reads metrics from Jolokia. At most one thread at a time per broker.

    Args:
        http: HTTP client for the agents.
        path: path of the agent; empty: the default path.
    """

    def __init__(self, http: HttpReader, path: str) -> None:
        self._http = http
        self._path = f"{path or DEFAULT_PATH}?{_OPTIONS}"

    def start(self) -> None:
        """Do nothing: connections are opened at the first read."""

    def stop(self) -> None:
        """Close every connection."""
        self._http.close()

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return the broker's metrics.

        Raises:
            MetricsError: the agent could not be reached, or gave no complete answer within ``timeout_s`` seconds.
        """
        deadline, accumulator, where = Deadline(timeout_s), MetricsAccumulator(plan), f"Jolokia {endpoint}"
        refusals: list[str] = []
        for reads in bulk_reads(plan):
            body = [{"type": "read", "mbean": read.mbean, "attribute": read.attribute} for read in reads]
            request = Request(self._path, json.dumps(body).encode(), {"Content-Type": "application/json"})
            response = self._http.ask(broker, endpoint, request, deadline)
            try:
                refusals += add_values(response, reads, accumulator)
            except (ValueError, RecursionError) as error:
                raise MetricsError(where, f"the answer is not Jolokia's ({error})", NOT_ITS_OWN) from None
        metrics = accumulator.metrics()
        # What is missing then is no matter of the policy, and the rest is of a broker that may end any moment.
        if exhausted := next((text for text in refusals if _OUT_OF_MEMORY in text), None):
            raise MetricsError(where, self._http.safe_line(exhausted), _MORE_HEAP)
        if refusals and not metrics.counters and not metrics.logs:
            raise MetricsError(where, self._http.safe_line(refusals[0]), REMEDIES[Source.JOLOKIA])
        return check_plausible(metrics, broker, plan, where)


def bulk_reads(plan: ReadPlan) -> list[list[MBeanRead]]:
    """Return the reads of a plan by request: values that must be close in time first, the many log ends last."""
    first = [
        START,
        # The lags and the log ends that they refer to are read close together.
        *plan.scope.first_reads,
        *_logs(plan.watched, LOG_PARTS),
        *(MBeanRead("BrokerTopicMetrics", name, "Count", every=True) for name in plan.scope.topic_meters),
        *(read for read in plan.scope.broker_reads if read.name not in plan.scope.topic_meters),
    ]
    # A pattern for many watched logs returns the other logs too.
    ends = _logs(plan.ends_only, LOG_PARTS[:1]) if len(plan.watched) <= _MAX_NAMED else []
    return [first, ends] if ends else [first]


def _logs(names: Sequence[TopicPartition], parts: Sequence[str]) -> list[MBeanRead]:
    if len(names) <= _MAX_NAMED:
        return log_reads(names, parts)
    return [MBeanRead("Log", part, "Value", every=True) for part in parts]


def add_values(response: Response, reads: Sequence[MBeanRead], accumulator: MetricsAccumulator) -> list[str]:
    """Add the values of an answer to the accumulator and return the errors of refused reads.

    Raises:
        ValueError: the answer is not a JSON array with an object for each read.
    """
    results = json.loads(response.body)
    if isinstance(results, dict) and "error" in results:
        return [_refusal(results)]
    if not isinstance(results, list) or len(results) != len(reads):
        raise ValueError("not one result for each read")
    refusals = []
    for read, result in zip(reads, results, strict=True):
        status = result.get("status") if isinstance(result, dict) else None
        if status == 200:
            _add_value(read, result.get("value"), response.read_ms, accumulator)
        elif status != _NOT_THERE:
            refusals.append(_refusal(result))
    return refusals


def _add_value(read: MBeanRead, value: Any, read_ms: int, accumulator: MetricsAccumulator) -> None:
    if not read.every:
        number = _number(value)
        accumulator.add(read.kind, read.name, read.keys, None if number is None else reading(read_ms, number))
        return
    if not isinstance(value, dict):
        raise ValueError("no object for a pattern")
    if read.kind == "Log" and read.name and _add_logs(read, value, read_ms, accumulator):
        return
    for mbean, attributes in value.items():
        number = _pattern_value(attributes, read)
        if number is not None:
            accumulator.add(read.kind, read.name, keys_of(mbean), reading(read_ms, number))


def _add_logs(read: MBeanRead, value: dict[str, Any], read_ms: int, accumulator: MetricsAccumulator) -> bool:
    """Add the planned logs by their exact object names and return whether all were found.

    This avoids parsing the object names, which is most of the work: a broker has several times more logs than it leads.
    """
    part = read.name or ""
    wanted = accumulator.missing(part)
    for name in wanted:
        number = _pattern_value(value.get(log_mbean(part, name)), read)
        if number is not None:
            accumulator.add_log(part, name, reading(read_ms, number))
    return not accumulator.missing(part)


def _pattern_value(attributes: Any, read: MBeanRead) -> float | None:
    return _number(attributes.get(read.attribute)) if isinstance(attributes, dict) else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _refusal(result: Any) -> str:
    text = result.get("error") if isinstance(result, dict) else None
    return str(text)[:_MAX_ERROR_CHARACTERS].strip().partition("\n")[0] if text else "no result for a read"
