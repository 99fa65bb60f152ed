"""Queries that are planned once and run on the rows of every batch.

Spark analyses a plan at every step that builds it, and optimizes it before it runs. For the few rows of a tick that is
most of a batch's time, and the plan is the same each time except for its input rows. A streaming query is analysed once
and then gets each batch's rows. Spark has no such way for queries that ``foreachBatch`` builds. This module adds it: it
keeps the physical plan, and runs copies of it with other rows at its leaves. It uses Spark's internal classes. If they
are missing, each batch gets a new plan, as without this module.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Iterator, Mapping, Sequence
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
# Position of a constructor argument of a logical leaf.
_PARTITIONING = 2


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
        single: Spark's ``SinglePartition``: all rows in one partition.
    """

    gateway: Any
    sessions: Any
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
    return _Java(gateway, spark.sql.classic.SparkSession, getattr(single, "MODULE$"))


@dataclass(frozen=True)
class _Plan:
    """A physical plan that was kept.

    Attributes:
        java: Java classes.
        root: Spark's last node. It is never run itself: a node runs once.
        inputs: leaves with input rows: position among all leaves to number of the frame.
        rdd: Java's field of a leaf's rows.
        schema: Spark's schema of its rows.
    """

    java: _Java
    root: Any
    inputs: Mapping[int, int]
    rdd: Any
    schema: Any

    def over(self, session: SparkSession, rdds: Sequence[Any]) -> DataFrame:
        """Return the plan's result for these input rows."""
        # A copied node belongs to the active session.
        self.java.sessions.setActiveSession(session._jsparkSession)
        copy = self.root.clone()
        leaves = copy.collectLeaves()
        for position, frame in self.inputs.items():
            # Spark can replace a leaf, but then all nodes above it have to be copied one by one from here, which takes
            # ten times as long.
            self.rdd.set(leaves.apply(position), rdds[frame])
        rows = copy.execute()
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
        root = query._jdf.queryExecution().executedPlan()
    _require_nothing_kept(root)
    inputs = _inputs(java, root, rdds)
    if not inputs:
        raise TypeError("the plan has no rows of the batch")
    rdd = root.collectLeaves().apply(min(inputs)).getClass().getDeclaredField("rdd")
    rdd.setAccessible(True)
    return _Plan(java, root, inputs, rdd, query._jdf.schema())


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


def _require_nothing_kept(node: Any) -> None:
    """Check a plan.

    Raises:
        TypeError: it would keep rows of this batch elsewhere than in its leaves.
    """
    name = node.getClass().getSimpleName()
    if name in _CACHING_NODES or node.subqueries().size():
        raise TypeError(f"rows of a batch would stay in {name}")
    for child in _each(node.children()):
        _require_nothing_kept(child)


def _inputs(java: _Java, root: Any, rdds: Sequence[Any]) -> dict[int, int]:
    """Return the position of each leaf with input rows among all leaves, and the number of its frame."""
    leaves = enumerate(_each(root.collectLeaves()))
    rows = {position: leaf.rdd() for position, leaf in leaves if is_instance_of(java.gateway, leaf, _LEAF)}
    return {position: n for position, own in rows.items() for n, rdd in enumerate(rdds) if own.equals(rdd)}


def _each(sequence: Any) -> Iterator[Any]:
    """Yield the elements of a Scala sequence."""
    for n in range(sequence.size()):
        yield sequence.apply(n)
