"""Follower of the table of broker loads, for the alert rules: polled, because another process may write it."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from pyspark.sql import SparkSession

from headroom.alerts.inputs.broker_load import BrokerLoadState, MinuteLoads
from headroom.schemas.records import record
from headroom.schemas.tables import BROKER_LOAD
from headroom.streaming.clock import now_ms
from headroom.streaming.store.followed_table import FollowedTable
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.periodic_task import PeriodicTask

# The table has new rows once a minute. Polling a local folder takes less than 1 ms. Through Spark it is a small job.
_EVERY_S, _EVERY_BY_SPARK_S = 3.0, 15.0


class BrokerLoadFollower:
    """Passes on the loads of each newer minute, on a thread of its own.

    Args:
        spark: session, for a store at a URL.
        store: tables.
        on_loads: gets a cluster and the loads of its brokers.
        clock_ms: returns the time now, epoch milliseconds.
    """

    def __init__(
        self,
        spark: SparkSession,
        store: Store,
        on_loads: Callable[[str, MinuteLoads], None],
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._on_loads = on_loads
        self._clock_ms = clock_ms
        self._table = FollowedTable(spark, store, BROKER_LOAD)
        every_s = _EVERY_BY_SPARK_S if self._table.path is None else _EVERY_S
        self._task = PeriodicTask("broker-loads", self.poll, every_s, first_s=0.0)

    def start(self) -> None:
        """Start the thread; the newest existing minutes are passed on at once."""
        self._task.start()

    def stop(self) -> None:
        """Stop following."""
        self._task.stop()

    def poll(self) -> None:
        """Read the table, and pass on minutes that are newer than at the last read."""
        newer = self._table.newer(self._clock_ms(), partial(record, BrokerLoadState), "the load of brokers is unknown")
        for (cluster, tick_ms), states in newer.items():
            self._table.passed_on([(cluster, tick_ms)])
            self._on_loads(cluster, MinuteLoads(tick_ms, tuple(states)))
