"""Time that brokers take to move replicas between their log directories."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from headroom.planning.quotas.limits import DEFAULT_FETCH, DEFAULT_WINDOW, FetchLimits, QuotaWindow
from headroom.planning.quotas.long_run import CopyTime, copy_rate
from headroom.planning.reassignments.directory_moves import DirectoryMove, bytes_by_broker, within_brokers


def directory_moves_time(
    moves: Iterable[DirectoryMove],
    rate_bytes_per_s: float | None,
    window: QuotaWindow = DEFAULT_WINDOW,
    fetch: FetchLimits = DEFAULT_FETCH,
) -> CopyTime | None:
    """Return the time of the moves of one broker; None if unknown.

    The rate is one for all directories of the broker. It counts everything that is copied, including records that are
    written meanwhile. A thread copies one partition at a time, in the order of their names; the others grow while they
    wait. Several threads share the rate, so they end at nearly the same time as one. A thread that exceeded the rate
    checks again after ``replica.fetch.backoff.ms``, and each check lets a whole fetch through.

    Args:
        moves: moves between directories of one broker.
        rate_bytes_per_s: ``replica.alter.log.dirs.io.max.bytes.per.second``; None if none is set: as fast as the disks
            are, which is unknown.
        window: samples of the quota (``alter.log.dirs.replication.quota.window.num`` and ``.size.seconds``).
        fetch: limits of one fetch.

    Source: Kafka 4.3.1, ``ReplicaAlterLogDirsThread`` and ``LocalLeaderEndPoint.buildFetch``.
    """
    ordered = sorted(moves, key=lambda move: move.name)
    sizes = [(move.size_bytes, move.write_bytes_per_s) for move in ordered]
    if rate_bytes_per_s is None or any(size is None for size, _ in sizes):
        return None if ordered else CopyTime(0.0, 0.0, 0.0)
    if any(written is None for _, written in sizes):
        return None
    known = [(float(size or 0), float(written or 0.0)) for size, written in sizes]
    rate = copy_rate(rate_bytes_per_s, 0.0, fetch.partition_bytes, window)
    return CopyTime(*(_in_turn_s(known, at) for at in (rate.high, rate.middle, rate.low)))


@dataclass(frozen=True)
class DirectoryEstimate:
    """Moves between the log directories of one broker.

    Attributes:
        broker: broker id.
        replicas: number of replicas that move.
        size_bytes: bytes to copy; None if unknown.
        rate_bytes_per_s: throttle rate of the moves; None: no throttle.
        time: time of all of them; None if unknown.
    """

    broker: int
    replicas: int
    size_bytes: int | None
    rate_bytes_per_s: float | None
    time: CopyTime | None


def directory_estimates(
    moves: Iterable[DirectoryMove], rates: Mapping[int, float | None], least_bytes_per_s: float | None = None
) -> tuple[DirectoryEstimate, ...]:
    """Return the estimate of every broker that moves replicas between its directories, by broker.

    Args:
        moves: directory moves of a plan; new replicas are left out.
        rates: rate in force by broker; None, or missing, where there is none.
        least_bytes_per_s: rate that every broker gets which has none or a lower one; None: rates stay.
    """
    within = within_brokers(moves)
    by_broker: dict[int, list[DirectoryMove]] = defaultdict(list)
    for move in within:
        by_broker[move.broker].append(move)
    sizes_bytes = bytes_by_broker(within)
    estimates = []
    for broker, own in sorted(by_broker.items()):
        known = [rate for rate in (rates.get(broker), least_bytes_per_s) if rate is not None]
        rate = max(known, default=None)
        time = directory_moves_time(own, rate)
        estimates.append(DirectoryEstimate(broker, len(own), sizes_bytes[broker], rate, time))
    return tuple(estimates)


def _in_turn_s(sizes: Iterable[tuple[float, float]], copied_bytes_per_s: float) -> float | None:
    """Return the time to copy one log after another, each with what was written to it until its end."""
    passed_s = 0.0
    for size_bytes, written_bytes_per_s in sizes:
        gained = copied_bytes_per_s - written_bytes_per_s
        if gained <= 0:
            return None
        passed_s += (size_bytes + written_bytes_per_s * passed_s) / gained
    return passed_s
