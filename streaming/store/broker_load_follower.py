"""Follower of the table of broker loads, for the alert rules: polled, because another process may write it."""

from __future__ import annotations

import logging
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from pyspark.sql import SparkSession

from alerts.inputs.broker_load import BrokerLoadState, MinuteLoads, broker_load_of
from schemas.keys import Tick
from schemas.tables import BROKER_LOAD
from streaming.clock import now_ms
from streaming.delta.append import without_panic
from streaming.store.followed_table import FollowedTable
from streaming.store.store import Store
from streaming.supervision.failure import cause_of
from streaming.supervision.periodic_task import PeriodicTask

log = logging.getLogger(__name__)

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
        self._is_unreadable = False
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
        try:
            with without_panic(self._table.location):
                newer = _by_tick(self._table.newer_rows(self._clock_ms()))
        except Exception as error:
            self._table.close()
            if not self._is_unreadable:
                self._is_unreadable = True
                message = "%s cannot be read, so the load of brokers is unknown: %s"
                log.warning(message, self._table.location, cause_of(error))
            return
        self._is_unreadable = False
        for (cluster, tick_ms), states in newer.items():
            self._table.passed_on([(cluster, tick_ms)])
            self._on_loads(cluster, MinuteLoads(tick_ms, tuple(states)))


def _by_tick(rows: Sequence[Mapping[str, Any]]) -> dict[Tick, list[BrokerLoadState]]:
    ticks: dict[Tick, list[BrokerLoadState]] = defaultdict(list)
    for row in rows:
        ticks[(row["cluster"], row["tick_ms"])].append(broker_load_of(row))
    return ticks
