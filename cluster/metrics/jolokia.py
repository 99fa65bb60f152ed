"""Reading brokers by Jolokia: an agent in the broker that answers many reads of MBeans with one JSON document."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from typing import Any

from cluster.metrics.http import Deadline, HttpReader, Request, Response
from cluster.metrics.mbeans import (
    BROKER_READS,
    LAGS,
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
from cluster.metrics.missing_metrics import REMEDIES
from cluster.metrics.source import NOT_ITS_OWN, MetricsError, check_plausible
from cluster.model import Metrics, TopicPartition
from schemas.config import Source

DEFAULT_PATH = "/jolokia/"
# All of a pattern's MBeans, without what nobody reads: the request once more, sorted names, stack traces.
_OPTIONS = (
    "maxCollectionSize=0&maxObjects=0&ignoreErrors=true&includeStackTrace=false&includeRequest=false"
    "&canonicalNaming=false&serializeLong=number"
)
# A read by name costs the agent about twice a value of a pattern, which in turn has to look at every MBean of the
# broker: below this many logs they are named.
_MOST_NAMED = 200
_NOT_THERE = 404
# Of an error's text; it may be as long as the agent likes.
_LOOKED_AT = 4096


class JolokiaSource:
    """Metrics by Jolokia. One thread at a time may read one broker; different brokers side by side.

    Args:
        http: asks the agents.
        path: where the agent answers; empty: where it does by default.
    """

    def __init__(self, http: HttpReader, path: str) -> None:
        self._http = http
        self._path = f"{path or DEFAULT_PATH}?{_OPTIONS}"

    def start(self) -> None:
        """Need nothing."""

    def stop(self) -> None:
        """Close every connection."""
        self._http.close()

    def read(self, broker: int, endpoint: str, plan: ReadPlan, timeout_s: float) -> Metrics:
        """Return what the broker's MBeans say.

        Raises:
            MetricsError: it could not be reached, did not answer within ``timeout_s`` seconds, or not wholly.
        """
        deadline, gathered, where = Deadline(timeout_s), MetricsAccumulator(plan), f"Jolokia {endpoint}"
        refusals: list[str] = []
        for reads in bulks(plan):
            request = Request(self._path, _body(reads), {"Content-Type": "application/json"})
            answer = self._http.ask(broker, endpoint, request, deadline)
            try:
                refusals += take(answer, reads, gathered)
            except (ValueError, RecursionError) as error:
                raise MetricsError(where, f"the answer is not Jolokia's ({error})", NOT_ITS_OWN) from None
        metrics = gathered.metrics()
        if refusals and not metrics.counters and not metrics.logs:
            raise MetricsError(where, self._http.shown(refusals[0]), REMEDIES[Source.JOLOKIA])
        return check_plausible(metrics, plan, where)


def bulks(plan: ReadPlan) -> list[list[MBeanRead]]:
    """Return the reads of a plan in bulks: what is near in time together, and the many ends of logs apart."""
    first = [
        START,
        # The lags and the ends they belong to are read close together.
        LAGS,
        *_logs(plan.watched, LOG_PARTS),
        *(MBeanRead("BrokerTopicMetrics", name, "Count", every=True) for name in plan.topic_meters),
        *(read for read in BROKER_READS if read.name not in plan.topic_meters),
    ]
    # The pattern of many watched logs tells all the others too.
    ends = _logs(plan.ends_only, LOG_PARTS[:1]) if len(plan.watched) <= _MOST_NAMED else []
    return [first, ends] if ends else [first]


def _logs(names: Sequence[TopicPartition], parts: Sequence[str]) -> list[MBeanRead]:
    if len(names) <= _MOST_NAMED:
        return log_reads(names, parts)
    return [MBeanRead("Log", part, "Value", every=True) for part in parts]


def _body(reads: Iterable[MBeanRead]) -> bytes:
    return json.dumps([{"type": "read", "mbean": read.mbean, "attribute": read.attribute} for read in reads]).encode()


def take(answer: Response, reads: Sequence[MBeanRead], gathered: MetricsAccumulator) -> list[str]:
    """Put the values of an answer where they belong, and return why others were refused.

    Raises:
        ValueError: it is not a JSON array with an object for each read.
    """
    said = json.loads(answer.body)
    if isinstance(said, dict) and "error" in said:
        return [_refusal(said)]
    if not isinstance(said, list) or len(said) != len(reads):
        raise ValueError("not one result for each read")
    refusals = []
    for read, result in zip(reads, said, strict=True):
        status = result.get("status") if isinstance(result, dict) else None
        if status == 200:
            _take_value(read, result.get("value"), answer.read_ms, gathered)
        elif status != _NOT_THERE:
            refusals.append(_refusal(result))
    return refusals


def _take_value(read: MBeanRead, value: Any, read_ms: int, gathered: MetricsAccumulator) -> None:
    if not read.every:
        number = _number(value)
        gathered.take(read.kind, read.name, read.keys, None if number is None else reading(read_ms, number))
        return
    if not isinstance(value, dict):
        raise ValueError("no object for a pattern")
    if read.kind == "Log" and read.name and _take_logs(read, value, read_ms, gathered):
        return
    for mbean, attributes in value.items():
        number = _of_pattern(attributes, read)
        if number is not None:
            gathered.take(read.kind, read.name, keys_of(mbean), reading(read_ms, number))


def _take_logs(read: MBeanRead, value: dict[str, Any], read_ms: int, gathered: MetricsAccumulator) -> bool:
    """Keep the logs that the plan asks for, by their names as brokers spell them, and return whether all were there.

    A broker has some times as many logs as it leads, and to take their names apart is most of the work.
    """
    part = read.name or ""
    wanted = gathered.missing(part)
    for name in wanted:
        number = _of_pattern(value.get(log_mbean(part, name)), read)
        if number is not None:
            gathered.take_log(part, name, reading(read_ms, number))
    return not gathered.missing(part)


def _of_pattern(attributes: Any, read: MBeanRead) -> float | None:
    return _number(attributes.get(read.attribute)) if isinstance(attributes, dict) else None


def _number(value: Any) -> float | None:
    return value if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def _refusal(result: Any) -> str:
    text = result.get("error") if isinstance(result, dict) else None
    return str(text)[:_LOOKED_AT].strip().partition("\n")[0] if text else "no result for a read"
