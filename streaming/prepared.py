"""Queries that are analysed once, and run on the rows of every batch.

Spark analyses a plan at every step that makes it: for the few rows of a tick that is more than half of what a batch
takes, and it comes to the same plan each time, but for where the rows are. A streaming query has its own plan analysed
once and puts each batch's rows in; what ``foreachBatch`` makes of a batch has no such way. Here it has: the plan is
kept as it was analysed, and its leaves are exchanged. That uses what Spark has for itself; where it is not there, the
plan is made anew for every batch, as always.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_LEAF = "org.apache.spark.sql.execution.LogicalRDD"
# Of the leaf's constructor.
_RDD, _PARTITIONING = 1, 2


class Prepared:
    """A query over frames of one partition each.

    Args:
        make: makes the query of the frames; what it makes depends on their columns alone.
    """

    def __init__(self, make: Callable[..., DataFrame]) -> None:
        self._make = make
        self._plan: _Plan | None = None
        self._works = True

    def on(self, *frames: DataFrame) -> DataFrame:
        """Return the query over some frames, which have the same columns every time."""
        if self._works:
            try:
                return self._on(frames)
            except (Py4JError, TypeError) as error:
                self._works = False
                log.info("plans are analysed in every batch: %s", str(error).strip().splitlines()[0])
        return self._make(*frames)

    def _on(self, frames: Sequence[DataFrame]) -> DataFrame:
        session = frames[0].sparkSession
        rdds = [frame._jdf.queryExecution().toRdd() for frame in frames]
        if any(rdd.getNumPartitions() != 1 for rdd in rdds):
            # The plan shuffles nothing, because all of its rows are in one place.
            return self._make(*frames)
        if self._plan is None:
            leaves = [_frame_of(session, rdd, frame) for rdd, frame in zip(rdds, frames, strict=True)]
            self._plan = _analysed(self._make(*leaves), rdds)
        return _frame(session, self._plan.over(session, rdds))


@dataclass(frozen=True)
class _Plan:
    """A node of an analysed plan, with those below it that lead to a leaf with the rows.

    Attributes:
        node: the node, Spark's own.
        below: its children: as here, or as they are where no rows come from; of a leaf none.
        frame: of a leaf, which frame's rows it has.
    """

    node: Any
    below: tuple[_Plan | Any, ...] = ()
    frame: int | None = None

    def over(self, session: SparkSession, rdds: Sequence[Any]) -> Any:
        """Return the node with other rows at its leaves."""
        if self.frame is not None:
            return _copy(session, self.node, {_RDD: rdds[self.frame]})
        children = [child.over(session, rdds) if isinstance(child, _Plan) else child for child in self.below]
        return self.node.withNewChildren(_seq(session, children))


def _analysed(made: DataFrame, rdds: Sequence[Any]) -> _Plan:
    plan = _leading_to(made.sparkSession, made._jdf.queryExecution().analyzed(), rdds)
    if plan is None:
        raise TypeError("the plan has no rows of the batch")
    return plan


def _leading_to(session: SparkSession, node: Any, rdds: Sequence[Any]) -> _Plan | None:
    """Return the part of a plan that has the rows; None: it has none of them."""
    if is_instance_of(session.sparkContext._gateway, node, _LEAF):
        number = next((n for n, rdd in enumerate(rdds) if node.rdd().equals(rdd)), None)
        return None if number is None else _Plan(node, frame=number)
    children = list(_each(node.children()))
    leading = [_leading_to(session, child, rdds) for child in children]
    if not any(leading):
        return None
    return _Plan(node, tuple(found or child for found, child in zip(leading, children, strict=True)))


def _frame_of(session: SparkSession, rdd: Any, rows: DataFrame) -> DataFrame:
    """Return a frame whose plan is a leaf with rows of one partition, and tells nothing else of them."""
    java = _java(session)
    leaf = session._jsparkSession.internalCreateDataFrame(rdd, rows._jdf.schema(), False).queryExecution().analyzed()
    single = getattr(getattr(java.org.apache.spark.sql.catalyst.plans.physical, "SinglePartition$"), "MODULE$")
    return _frame(session, _copy(session, leaf, {_PARTITIONING: single}))


def _frame(session: SparkSession, plan: Any) -> DataFrame:
    plan.setAnalyzed()
    return DataFrame(_java(session).org.apache.spark.sql.classic.Dataset.ofRows(session._jsparkSession, plan), session)


def _copy(session: SparkSession, node: Any, changed: dict[int, Any]) -> Any:
    gateway = session.sparkContext._gateway
    assert gateway is not None
    arguments = gateway.new_array(gateway.jvm.java.lang.Object, node.productArity())
    for n in range(node.productArity()):
        arguments[n] = changed.get(n) or node.productElement(n)
    return node.makeCopy(arguments)


def _seq(session: SparkSession, elements: list[Any]) -> Any:
    return _java(session).org.apache.spark.api.python.PythonUtils.toSeq(elements)


def _each(sequence: Any) -> Iterator[Any]:
    for n in range(sequence.size()):
        yield sequence.apply(n)


def _java(session: SparkSession) -> Any:
    java = session.sparkContext._jvm
    assert java is not None
    return java
