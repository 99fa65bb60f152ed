"""Leader balances as metric samples, one set per broker."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from headroom.alerts.inputs.leader_balance import LeaderBalance
from headroom.alerts.metrics.samples import Sample
from headroom.schemas import metrics
from headroom.schemas.metrics import MetricSpec


def balance_samples(cluster: str, balances: Iterable[LeaderBalance]) -> Iterator[Sample]:
    """Yield the known values of every broker that is the preferred leader of a partition.

    Args:
        cluster: name of the cluster.
        balances: leader balances of one tick.
    """
    for state in balances:
        for spec, value in _numbers(state):
            if value is not None:
                yield spec, (cluster, str(state.broker)), float(value)


def _numbers(state: LeaderBalance) -> list[tuple[MetricSpec, float | None]]:
    balance = state.balance
    return [
        (metrics.IMBALANCE, balance.imbalance_ratio),
        (metrics.IMBALANCE_THRESHOLD, state.threshold_ratio),
        (metrics.PREFERRED_PARTITIONS, balance.preferred_partitions),
        (metrics.LEADER_PARTITIONS, state.leader_partitions),
        (metrics.ELECTABLE, balance.electable_now),
        (metrics.WAITING, balance.waiting_for_move),
        (metrics.UNAVAILABLE, state.unavailable),
        (metrics.LEADER_WRITE_RATE, balance.write_bytes_per_s),
        (metrics.PREFERRED_WRITE_RATE, balance.preferred_write_bytes_per_s),
        (metrics.LEADER_READ_RATE, state.read_bytes_per_s),
        (metrics.PREFERRED_READ_RATE, state.preferred_read_bytes_per_s),
    ]
