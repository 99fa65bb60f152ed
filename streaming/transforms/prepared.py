"""Queries that are planned once and run on the rows of every batch.

Spark analyses a plan at every step that builds it, and optimizes it before it runs. For the few rows of a tick that is
most of a batch's time, and the plan is the same each time except for its input rows. A streaming query is analysed once
and then gets each batch's rows. Spark has no such way for queries that ``foreachBatch`` builds. This module adds it: it
keeps the physical plan and replaces its leaves. It uses Spark's internal classes. If they are missing, each batch gets
a new plan, as without this module.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

from py4j.java_gateway import is_instance_of
from py4j.protocol import Py4JError
from pyspark.sql import DataFrame, SparkSession

log = logging.getLogger(__name__)

_LEAF = "org.apache.spark.sql.execution.RDDScanExec"
# Nodes that keep rows of their own: they would stay those of the first batch.
_CACHING_NODES = ("ReusedExchangeExec", "InMemoryTableScanExec")
_REUSE = "spark.sql.exchange.reuse"
# Positions of two constructor arguments of a leaf: of the planned leaf, and of the logical one.
_RDD, _PARTITIONING = 1, 2


class Prepared:
    """A query over DataFrames. It has one plan for rows in one partition each, without shuffles, and others with them.

    Args:
        make: builds the query from the frames. The query must depend on their columns only, not on rows or time.

    Attributes:
        works: False after Spark's internals have turned out to be missing.
    """

    def __init__(self, make: Callable[..., DataFrame]) -> None:
        self._make = make
        # By frame: whether its rows are in one partition.
        self._plans: dict[tuple[bool, ...], _Plan] = {}
        self.works = True

    def on(self, *frames: DataFrame) -> DataFrame:
        """Return the query over some frames, which must have the same columns in every call."""
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
        single = tuple(rdd.getNumPartitions() == 1 for rdd in rdds)
        if single not in self._plans:
            self._plans[single] = _plan_of(self._make, frames, rdds, single)
        return self._plans[single].over(session, rdds)


@dataclass(frozen=True)
class _Java:
    """Java classes, looked up once: the JVM searches all jars for each part of a name.

    Attributes:
        gateway: gateway to the JVM.
        sessions: Spark's ``SparkSession``.
        sequences: utility class that converts a list to a Scala sequence.
        single: Spark's ``SinglePartition``: all rows in one partition.
    """

    gateway: Any
    sessions: Any
    sequences: Any
    single: Any

    def copy(self, node: Any, changed: dict[int, Any]) -> Any:
        """Return a copy of a plan node with some constructor arguments replaced, by position."""
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
    """A node of a physical plan on a path to a leaf with input rows.

    Attributes:
        node: Spark's node.
        below: its children: a ``_Node`` on a path to input rows, otherwise Spark's node. Empty for a leaf.
        frame: number of the frame with a leaf's rows; None if it is not a leaf.
    """

    node: Any
    below: tuple[_Node | Any, ...] = ()
    frame: int | None = None

    def over(self, java: _Java, rdds: Sequence[Any]) -> Any:
        """Return Spark's node with these rows at its leaves."""
        if self.frame is not None:
            return java.copy(self.node, {_RDD: rdds[self.frame]})
        children = [child.over(java, rdds) if isinstance(child, _Node) else child for child in self.below]
        return self.node.withNewChildren(java.sequences.toSeq(children))


@dataclass(frozen=True)
class _Plan:
    """A physical plan that was kept.

    Attributes:
        java: Java classes.
        root: its last node.
        schema: Spark's schema of its rows.
    """

    java: _Java
    root: _Node
    schema: Any

    def over(self, session: SparkSession, rdds: Sequence[Any]) -> DataFrame:
        """Return the plan's result for these input rows."""
        # A copied node belongs to the active session.
        self.java.sessions.setActiveSession(session._jsparkSession)
        rows = self.root.over(self.java, rdds).execute()
        return DataFrame(session._jsparkSession.internalCreateDataFrame(rows, self.schema, False), session)


def _plan_of(
    make: Callable[..., DataFrame], frames: Sequence[DataFrame], rdds: Sequence[Any], single: Sequence[bool]
) -> _Plan:
    """Return a new plan.

    Args:
        make: builds the query.
        frames: frames of the first batch.
        rdds: their rows.
        single: for each frame whether its rows, in every batch, are in one partition.
    """
    java = _java(frames[0].sparkSession)
    leaves = [_leaf(java, *leaf) for leaf in zip(frames, rdds, single, strict=True)]
    with nullcontext() if all(single) else _without_reuse(frames[0].sparkSession):
        query = make(*leaves)
        root = _leading_to(java, query._jdf.queryExecution().executedPlan(), rdds)
    if root is None:
        raise TypeError("the plan has no rows of the batch")
    return _Plan(java, root, query._jdf.schema())


@contextmanager
def _without_reuse(session: SparkSession) -> Iterator[None]:
    """Let plans use no shuffle twice: the second use would be a node that keeps rows."""
    was = session.conf.get(_REUSE)
    session.conf.set(_REUSE, "false")
    try:
        yield
    finally:
        session.conf.set(_REUSE, was or "true")


def _leaf(java: _Java, frame: DataFrame, rdd: Any, single: bool) -> DataFrame:
    """Return a frame whose plan is one leaf. Spark knows at most that its rows are in one partition, not size or order.

    Args:
        java: Java classes.
        frame: frame with the columns.
        rdd: its rows.
        single: whether the rows of every batch are in one partition.
    """
    session = frame.sparkSession
    rows = session._jsparkSession.internalCreateDataFrame(rdd, frame._jdf.schema().asNullable(), False)
    if not single:
        return DataFrame(rows, session)
    leaf = java.copy(rows.queryExecution().analyzed(), {_PARTITIONING: java.single})
    dataset = java.gateway.jvm.org.apache.spark.sql.classic.Dataset
    return DataFrame(dataset.ofRows(session._jsparkSession, leaf), session)


def _leading_to(java: _Java, node: Any, rdds: Sequence[Any]) -> _Node | None:
    """Return the part of a plan that leads to input rows; None if it has no such leaf.

    Raises:
        TypeError: the plan would keep rows of this batch elsewhere.
    """
    if is_instance_of(java.gateway, node, _LEAF):
        number = next((n for n, rdd in enumerate(rdds) if node.rdd().equals(rdd)), None)
        return None if number is None else _Node(node, frame=number)
    name = node.getClass().getSimpleName()
    if name in _CACHING_NODES or node.subqueries().size():
        raise TypeError(f"rows of a batch would stay in {name}")
    children = list(_each(node.children()))
    leading = [_leading_to(java, child, rdds) for child in children]
    if not any(leading):
        return None
    return _Node(node, tuple(found or child for found, child in zip(leading, children, strict=True)))


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    for n in range(sequence.size()):
        yield sequence.apply(n)
