"""Queries that are planned once, and run on the rows of every batch.

Spark analyses a plan at every step that makes it, and optimizes it before it runs: for the few rows of a tick that is
most of what a batch takes, and it comes to the same plan each time, but for where the rows are. A streaming query has
its own plan analysed once and puts each batch's rows in; what ``foreachBatch`` makes of a batch has no such way. Here
it has: the physical plan is kept, and its leaves are exchanged. That uses what Spark has for itself; where it is not
there, the plan is made anew for every batch, as always.
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

_LEAF = "org.apache.spark.sql.execution.RDDScanExec"
# Rows that a plan has elsewhere than at such a leaf, where they would stay those of the first batch.
_KEPT_ROWS = ("ReusedExchangeExec", "InMemoryTableScanExec")
# Of the constructors of a leaf, before and after it is planned.
_RDD, _PARTITIONING = 1, 2


class Prepared:
    """A query over frames of one partition each.

    Args:
        make: makes the query of the frames; what it makes depends on their columns alone, and not on the time.
    """

    def __init__(self, make: Callable[..., DataFrame]) -> None:
        self._make = make
        self._plan: _Plan | None = None
        self.works = True

    def on(self, *frames: DataFrame) -> DataFrame:
        """Return the query over some frames, which have the same columns every time."""
        if self.works:
            try:
                return self._on(frames)
            except (Py4JError, TypeError) as error:
                self.works = False
                log.info("plans are made in every batch: %s", str(error).strip().splitlines()[0])
        return self._make(*frames)

    def _on(self, frames: Sequence[DataFrame]) -> DataFrame:
        session = frames[0].sparkSession
        rdds = [frame._jdf.queryExecution().toRdd() for frame in frames]
        if any(rdd.getNumPartitions() != 1 for rdd in rdds):
            # The plan shuffles nothing, because all of its rows are in one place.
            return self._make(*frames)
        if self._plan is None:
            self._plan = _planned(self._make, frames, rdds)
        return self._plan.over(session, rdds)


@dataclass(frozen=True)
class _Java:
    """Names of Spark's, looked up once: the JVM looks through all jars for each part of a name.

    Attributes:
        gateway: to the JVM.
        sessions: ``SparkSession``.
        sequences: what makes a Scala sequence of a list.
        single: the partitioning of rows in one place.
    """

    gateway: Any
    sessions: Any
    sequences: Any
    single: Any

    def copy(self, node: Any, changed: dict[int, Any]) -> Any:
        """Return a node with other arguments of its constructor, by their places."""
        arguments = self.gateway.new_array(self.gateway.jvm.Object, node.productArity())
        for n in range(node.productArity()):
            arguments[n] = changed[n] if n in changed else node.productElement(n)
        return node.makeCopy(arguments)


def _java(session: SparkSession) -> _Java:
    gateway = session.sparkContext._gateway
    assert gateway is not None
    spark = gateway.jvm.org.apache.spark
    single = getattr(spark.sql.catalyst.plans.physical, "SinglePartition$")
    return _Java(gateway, spark.sql.classic.SparkSession, spark.api.python.PythonUtils, getattr(single, "MODULE$"))


@dataclass(frozen=True)
class _Node:
    """A node of a physical plan, with those below it that lead to a leaf with the rows.

    Attributes:
        node: the node, Spark's own.
        below: its children: as here, or as they are where no rows come from; of a leaf none.
        frame: of a leaf, which frame's rows it has.
    """

    node: Any
    below: tuple[_Node | Any, ...] = ()
    frame: int | None = None

    def over(self, java: _Java, rdds: Sequence[Any]) -> Any:
        """Return the node with other rows at its leaves."""
        if self.frame is not None:
            return java.copy(self.node, {_RDD: rdds[self.frame]})
        children = [child.over(java, rdds) if isinstance(child, _Node) else child for child in self.below]
        return self.node.withNewChildren(java.sequences.toSeq(children))


@dataclass(frozen=True)
class _Plan:
    """A physical plan.

    Attributes:
        java: names of Spark's.
        root: its last node.
        schema: columns of its rows, Spark's own.
    """

    java: _Java
    root: _Node
    schema: Any

    def over(self, session: SparkSession, rdds: Sequence[Any]) -> DataFrame:
        """Return the rows that the plan makes of others; a node belongs to the session that is active."""
        self.java.sessions.setActiveSession(session._jsparkSession)
        rows = self.root.over(self.java, rdds).execute()
        return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, self.schema, False), session)


def _planned(make: Callable[..., DataFrame], frames: Sequence[DataFrame], rdds: Sequence[Any]) -> _Plan:
    java = _java(frames[0].sparkSession)
    made = make(*[_leaf(java, frame, rdd) for frame, rdd in zip(frames, rdds, strict=True)])
    root = _leading_to(java, made._jdf.queryExecution().executedPlan(), rdds)
    if root is None:
        raise TypeError("the plan has no rows of the batch")
    return _Plan(java, root, made._jdf.schema())


def _leaf(java: _Java, frame: DataFrame, rdd: Any) -> DataFrame:
    """Return a frame whose plan is a leaf with the rows, and tells nothing of them but that they are in one place."""
    session = frame.sparkSession
    rows = session._jsparkSession.internalCreateDataFrame(rdd, frame._jdf.schema().asNullable(), False)
    single = java.copy(rows.queryExecution().analyzed(), {_PARTITIONING: java.single})
    dataset = java.gateway.jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, single), session)


def _leading_to(java: _Java, node: Any, rdds: Sequence[Any]) -> _Node | None:
    """Return the part of a plan that has the rows; None: it has none of them.

    Raises:
        TypeError: rows are elsewhere too.
    """
    if is_instance_of(java.gateway, node, _LEAF):
        number = next((n for n, rdd in enumerate(rdds) if node.rdd().equals(rdd)), None)
        return None if number is None else _Node(node, frame=number)
    name = node.getClass().getSimpleName()
    if name in _KEPT_ROWS or node.subqueries().size():
        raise TypeError(f"rows of a batch would stay in {name}")
    children = list(_each(node.children()))
    leading = [_leading_to(java, child, rdds) for child in children]
    if not any(leading):
        return None
    return _Node(node, tuple(found or child for found, child in zip(leading, children, strict=True)))


def _each(sequence: Any) -> Iterator[Any]:
    for n in range(sequence.size()):
        yield sequence.apply(n)
