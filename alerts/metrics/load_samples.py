"""Loads of brokers, and the last proposal to balance them, as metric samples."""

from __future__ import annotations

from collections.abc import Iterator

from headroom.alerts.inputs.broker_load import BalanceAdvice, BrokerLoadState, MinuteLoads
from headroom.alerts.metrics.samples import Sample
from headroom.schemas import metrics
from headroom.schemas.metrics import MetricSpec


def load_samples(cluster: str, loads: MinuteLoads) -> Iterator[Sample]:
    """Yield the known values of every broker and resource.

    Args:
        cluster: name of the cluster.
        loads: loads of one minute.
    """
    for broker, states in loads.by_broker.items():
        for state in states:
            for spec, value in _numbers(state):
                if value is not None:
                    yield spec, (cluster, str(broker), state.resource), float(value)
        rounds = states[0].slow_rounds
        if rounds is not None:
            yield metrics.SLOW_ROUNDS, (cluster, str(broker)), float(rounds)


def proposal_samples(cluster: str, advice: BalanceAdvice) -> Iterator[Sample]:
    """Yield what the last proposal gains, costs and promises.

    Args:
        cluster: name of the cluster.
        advice: the proposal.
    """
    yield metrics.PROPOSAL_ACTIONS, (cluster,), float(advice.actions)
    yield metrics.PROPOSAL_GAIN, (cluster,), advice.gain_ratio
    yield metrics.PROPOSAL_COPIED_BYTES, (cluster,), advice.copied_bytes
    if advice.duration_s is not None:
        yield metrics.PROPOSAL_DURATION, (cluster,), advice.duration_s
    for (broker, resource), load in sorted(advice.promised.items()):
        yield metrics.BROKER_LOAD_PROMISED, (cluster, str(broker), resource), load


def _numbers(state: BrokerLoadState) -> list[tuple[MetricSpec, float | None]]:
    # Resources that no broker reports have no load, and then no series at all.
    return [
        (metrics.BROKER_LOAD, state.load),
        (metrics.BROKER_LOAD_MEAN, state.mean),
        (metrics.BROKER_LOAD_LOWER, state.lower),
        (metrics.BROKER_LOAD_UPPER, state.upper),
        (metrics.BROKER_LOAD_LIMIT, state.load_limit),
        (metrics.BROKER_LOAD_IN_BAND, state.in_band),
        (metrics.BROKER_LOAD_SCORE, state.band_score),
    ]
