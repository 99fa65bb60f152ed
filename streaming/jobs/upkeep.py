"""Upkeep of the tables: writes the load of complete hours, then maintains all tables."""

from __future__ import annotations

import logging
from collections.abc import Callable

from pyspark.sql import SparkSession

from headroom.schemas.config import StoreSettings
from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.clock import now_ms
from headroom.streaming.delta.maintenance import MaintenanceFailure, MaintenanceResult
from headroom.streaming.jobs.loads.partition_load import PartitionLoadJob
from headroom.streaming.session import throughput_session
from headroom.streaming.store.maintenance import Maintenance
from headroom.streaming.store.store import Store
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)


class Upkeep:
    """Upkeep of the tables of one store, in the record job and in ``headroom maintain``.

    Args:
        spark: session.
        settings: section ``[store]``.
        clock_ms: returns the time now, epoch milliseconds.
    """

    def __init__(self, spark: SparkSession, settings: StoreSettings, clock_ms: Callable[[], int] = now_ms) -> None:
        own = throughput_session(spark)
        self._load = PartitionLoadJob(spark, settings.path)
        self._maintenance = Maintenance(own, Store(own, settings.path), settings)
        self._clock_ms = clock_ms

    def run(self) -> list[MaintenanceResult | MaintenanceFailure]:
        """Write the due hours of the load, then maintain all tables; one failure does not stop the others.

        The load comes first, because maintenance may delete the day of silver that it is computed from.
        """
        return [*self._write_load(), *self._maintenance.run()]

    def _write_load(self) -> list[MaintenanceFailure]:
        try:
            self._load.run(self._clock_ms())
        # Any error: hours are written whole or not at all, and the next run writes the others.
        except Exception as error:
            reason = cause_of(error)
            log.warning("%s could not be written: %s", PARTITION_LOAD.path, reason)
            log.debug("writing %s", PARTITION_LOAD.path, exc_info=True)
            return [MaintenanceFailure(PARTITION_LOAD.path, reason)]
        return []
