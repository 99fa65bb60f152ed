"""Write rates that a plan rests on: those of the busy hour where the tables have them, otherwise measured ones."""

from __future__ import annotations

from dataclasses import replace

from headroom.cluster.live.plan_state import KnownRates
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.clock import now_ms
from headroom.streaming.tables.partition_load import BusyHourRates, read_busy_hour


def busy_hour_rates(settings: Settings) -> BusyHourRates:
    """Return the rates of the busy hour, or why there are none; a table that cannot be read stops no estimate.

    Args:
        settings: the cluster and the store of its tables.
    """
    try:
        return read_busy_hour(settings, now_ms())
    except HeadroomError as error:
        return BusyHourRates(settings.reassign.rate_percentile, missing=str(error))


def known_rates(busy_hour: BusyHourRates) -> KnownRates:
    """Return the rates of the busy hour as those of a plan."""
    return KnownRates(busy_hour.write_bytes_per_s, str(busy_hour))


def with_busy_hour(measured: ClusterState, busy_hour: BusyHourRates) -> ClusterState:
    """Return a state with the rates of the busy hour; partitions that have none keep their measured rates.

    Args:
        measured: the cluster with measured rates.
        busy_hour: the rates of the busy hour, or why there are none.
    """
    rates = busy_hour.write_bytes_per_s
    if not rates:
        return replace(measured, rates_from=f"{measured.rates_from} (no busy hour: {busy_hour.missing})")
    partitions = {
        name: replace(placement, write_bytes_per_s=rates.get(name, placement.write_bytes_per_s))
        for name, placement in measured.partitions.items()
    }
    source = f"{busy_hour}; partitions without such an hour: {measured.rates_from}"
    return replace(measured, partitions=partitions, rates_from=source)
