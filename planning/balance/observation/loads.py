"""Rates of a cluster's partitions as observed: by hour where there is a history, and otherwise of one reading."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np

from headroom.planning.balance.arrays import BoolArray, FloatArray, IntArray
from headroom.planning.balance.slow_brokers.slow_brokers import NO_ADVICE, SlowAdvice
from headroom.planning.reassignments.cluster_state import ClusterState
from headroom.schemas.keys import TopicPartition

# An hour in which fewer of the partitions were seen is no picture of the cluster.
LEAST_SEEN_RATIO = 0.5


@dataclass(frozen=True, eq=False)
class LoadHistory:
    """Rates of partitions by hour, H hours and N partitions.

    Attributes:
        wanted_hours: number of hours that were asked for.
        names: partitions.
        hours_ms: start of each hour, epoch milliseconds, ascending.
        write_bytes_per_s: mean of each hour, (H, N); NaN if it was not seen.
        missing: why there is none; None if there is.
        read_bytes_per_s: mean rate of consumers in each hour, (H, N); NaN if unknown. None: unknown of all.
        requests_per_s: mean of produce and fetch requests in each hour, (H, N); NaN if unknown. None: unknown of all.
    """

    wanted_hours: int
    names: Sequence[TopicPartition]
    hours_ms: tuple[int, ...]
    write_bytes_per_s: FloatArray
    missing: str | None = None
    read_bytes_per_s: FloatArray | None = None
    requests_per_s: FloatArray | None = None


def no_history(wanted_hours: int, missing: str) -> LoadHistory:
    """Return a history without an hour, with the reason why there is none."""
    return LoadHistory(wanted_hours, (), (), np.zeros((0, 0)), missing)


@dataclass(frozen=True, eq=False)
class ObservedLoads:
    """Rates of the P partitions of a cluster state, in the order of its partitions; NaN if unknown.

    Attributes:
        wanted_hours: number of hours that were asked for; 0 if none were.
        hours_ms: start of each hour of the history, epoch milliseconds; empty without a history.
        write: bytes appended per second by hour, (H, P); without a history those of one reading, (1, P).
        read: bytes that consumers fetch per second, of one reading, (P,).
        requests: produce and fetch requests per second, of one reading, (P,).
        source: where the rates come from, as text for people.
        read_by_hour: bytes that consumers fetch per second by hour, (H, P); None without a history of them. Those of a
            topic are divided by writes of the hour, and by what each leader sends of the topic in the reading. What
            ``follower_reads`` has of the topic is no part of them.
        requests_by_hour: produce and fetch requests per second by hour, (H, P); None without a history of them. Those
            of a topic are divided as in the reading.
        follower_reads: bytes per second that consumers read from brokers of topics of which these lead nothing, by
            broker, of one reading; a broker without any is missing.
        unmeasured: brokers that are up and whose metrics could not be read in the reading.
        slow: what slow brokers are to be spared.
    """

    wanted_hours: int
    hours_ms: tuple[int, ...]
    write: FloatArray
    read: FloatArray
    requests: FloatArray
    source: str
    read_by_hour: FloatArray | None = None
    requests_by_hour: FloatArray | None = None
    follower_reads: Mapping[int, float] = field(default_factory=dict)
    unmeasured: frozenset[int] = frozenset()
    slow: SlowAdvice = NO_ADVICE


def observed_loads(
    state: ClusterState,
    history: LoadHistory,
    read_bytes_per_s: Mapping[TopicPartition, float],
    requests_per_s: Mapping[TopicPartition, float] = MappingProxyType({}),
    follower_reads_of: Mapping[str, float] = MappingProxyType({}),
) -> ObservedLoads:
    """Return the rates of a state's partitions.

    Args:
        state: the cluster, with write rates of one reading.
        history: rates by hour.
        read_bytes_per_s: bytes that consumers fetch per second, of one reading; a missing partition is unknown.
        requests_per_s: produce and fetch requests per second, of one reading; a missing partition is unknown.
        follower_reads_of: bytes per second that consumers read, by topic, from brokers that lead nothing of it, of one
            reading. The hours have them too, and they count for these brokers.
    """
    order = {name: number for number, name in enumerate(state.partitions)}
    read = np.array([read_bytes_per_s.get(name, np.nan) for name in order], dtype=np.float64)
    requests = np.array([requests_per_s.get(name, np.nan) for name in order], dtype=np.float64)
    matches = [(n, order[name]) for n, name in enumerate(history.names) if name in order]
    hours = _usable_hours(history, [n for n, _ in matches])
    if not hours.any():
        missing = history.missing or "no hour of which at least half of the partitions was seen"
        source = f"{state.rates_from} (no history: {missing})"
        return ObservedLoads(history.wanted_hours, (), measured_writes(state)[None, :], read, requests, source)

    def of_state(rates: FloatArray) -> FloatArray:
        placed = np.full((int(hours.sum()), len(order)), np.nan)
        placed[:, [at for _, at in matches]] = rates[hours][:, [n for n, _ in matches]]
        return placed

    def from_leaders(rates: FloatArray | None) -> FloatArray | None:
        if rates is None or not follower_reads_of:
            return rates
        shares = _leader_shares(read, follower_reads_of, state)
        return rates * np.array([shares.get(name.topic, 1.0) for name in history.names])

    def of_state_if_known(rates: FloatArray | None, weights: FloatArray) -> FloatArray | None:
        if rates is None or not np.isfinite(rates).any():
            return None
        return _divided_by_topic(of_state(rates), weights, state)

    write = of_state(history.write_bytes_per_s)
    hours_ms = tuple(ms for ms, usable in zip(history.hours_ms, hours, strict=True) if usable)
    source = f"hourly means of {len(hours_ms)} of the last {history.wanted_hours} hours"
    return ObservedLoads(
        history.wanted_hours,
        hours_ms,
        write,
        read,
        requests,
        source,
        of_state_if_known(from_leaders(history.read_bytes_per_s), write * _reads_per_write(read, state)),
        of_state_if_known(history.requests_per_s, np.broadcast_to(requests, write.shape)),
    )


def _leader_shares(read: FloatArray, follower_reads_of: Mapping[str, float], state: ClusterState) -> dict[str, float]:
    """Return which part of what consumers read of a topic leaders send, 0 to 1, of topics that others send, too.

    Where what leaders send is unknown in part, a topic is missing: all may be theirs.
    """
    sent = dict.fromkeys(follower_reads_of, 0.0)
    for rate, name in zip(read.tolist(), state.partitions, strict=True):
        if name.topic in sent:
            sent[name.topic] += rate
    totals = {topic: own + follower_reads_of[topic] for topic, own in sent.items()}
    return {topic: sent[topic] / total for topic, total in totals.items() if total > 0}


def _reads_per_write(read: FloatArray, state: ClusterState) -> FloatArray:
    """Return how often what is written is read, by what the leader of each partition sends of its topic, (P,).

    Where a broker or its writes are unknown, it is that of the topic; 1 if that is unknown, too.
    """
    write, topics = measured_writes(state), _topics(state)
    leaders = np.array([-1 if p.leader is None else p.leader for p in state.partitions.values()], dtype=np.int64)
    # One number for both is sorted much faster than pairs.
    _, pairs = np.unique(topics * (leaders.max(initial=-1) + 2) + leaders + 1, return_inverse=True)
    known = np.isfinite(read) & np.isfinite(write)
    ratios = np.ones(len(read))
    for groups in (topics, pairs.reshape(-1)):
        sent, written = (np.bincount(groups, np.where(known, rate, 0.0)) for rate in (read, write))
        ratios = np.where(written[groups] > 0, sent[groups] / np.where(written > 0, written, 1.0)[groups], ratios)
    return ratios


def _divided_by_topic(rates: FloatArray, weights: FloatArray, state: ClusterState) -> FloatArray:
    """Return rates whose sum over each topic and hour is divided among its partitions by weights.

    Args:
        rates: rates by hour, (H, P); NaN if unknown, which they remain.
        weights: weights by hour, (H, P). Where one of a topic is unknown, or all are 0, the rates stay as they are.
        state: the cluster.
    """
    topics = _topics(state)
    divided = rates.copy()
    for hour, (own, weight) in enumerate(zip(rates, weights, strict=True)):
        seen = np.isfinite(own)
        total, whole = (np.bincount(topics, np.where(seen, values, 0.0))[topics] for values in (own, weight))
        usable = seen & (whole > 0)
        divided[hour, usable] = total[usable] * weight[usable] / whole[usable]
    return divided


def _topics(state: ClusterState) -> IntArray:
    """Return the number of the topic of each partition, (P,)."""
    # Sorting all names takes ten times as long.
    numbers: dict[str, int] = {}
    topics = (numbers.setdefault(p.topic, len(numbers)) for p in state.partitions.values())
    return np.fromiter(topics, dtype=np.int64, count=len(state.partitions))


def measured_writes(state: ClusterState) -> FloatArray:
    """Return the write rates in a state, bytes per second, (P,); NaN if unknown."""
    write_bytes_per_s = [p.write_bytes_per_s for p in state.partitions.values()]
    return np.array([np.nan if rate is None else rate for rate in write_bytes_per_s], dtype=np.float64)


def fill_gaps(rates: FloatArray, measured: FloatArray) -> FloatArray:
    """Return rates by hour without gaps where a partition is known at all, (H, P).

    An hour in which a partition was not seen counts with the mean of its other hours. A partition without any hour, for
    example a new one, counts with its measured rate in every hour.

    Args:
        rates: rates by hour, (H, P); NaN if unknown.
        measured: rates of one reading, in the same unit, (P,); NaN if unknown.
    """
    seen = np.isfinite(rates)
    count = seen.sum(axis=0)
    mean = np.where(count > 0, np.where(seen, rates, 0.0).sum(axis=0) / np.maximum(count, 1), measured)
    return np.where(seen, rates, mean[None, :])


def _usable_hours(history: LoadHistory, known: Sequence[int]) -> BoolArray:
    """Return which hours count: those of which at least half of the cluster's partitions with a history was seen."""
    if not known or not history.hours_ms:
        return np.zeros(len(history.hours_ms), dtype=np.bool_)
    seen = np.isfinite(history.write_bytes_per_s[:, list(known)]).mean(axis=1)
    usable: BoolArray = seen >= LEAST_SEEN_RATIO
    return usable
