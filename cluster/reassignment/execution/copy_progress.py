"""How far the copies of a batch are: bytes, rate and expected end, from the sizes of their logs."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from dataclasses import replace

from headroom.cluster.reassignment.execution.control import ClusterControl
from headroom.planning.finish.finish_time import QUOTA_CYCLE_S
from headroom.planning.reassignments.run.snapshot import RunSnapshot, cluster_state_of_run
from headroom.schemas.errors import HeadroomError
from headroom.schemas.keys import ReplicaKey, TopicPartition
from headroom.schemas.text.amounts import UNKNOWN, duration_text, rate_text, size_text

# Sizes are read this often at most, and in at most this share of the time.
_EVERY_S, _TIME_SHARE = 10.0, 0.05
# Copies behind a throttle come in bursts; the mean over this time is even.
_RATE_S = 60.0
# Over less time, two readings may lie between two bursts, or around one more than usual.
_LEAST_RATE_S = 2 * QUOTA_CYCLE_S


class CopyProgress:
    """Progress of the new replicas of a batch.

    A log ends with the size of its leader's log, which grows meanwhile. A partition that has ended has copied all.

    Args:
        control: the cluster.
        clock: monotonic seconds.
    """

    def __init__(self, control: ClusterControl, clock: Callable[[], float] = time.monotonic) -> None:
        self._control = control
        self._clock = clock
        # By new replica: bytes that it has, and bytes of its leader's log.
        self._copied: dict[ReplicaKey, int] = {}
        self._whole: dict[ReplicaKey, int] = {}
        self._unknown: frozenset[ReplicaKey] = frozenset()
        # Time, and bytes copied and left then.
        self._readings: deque[tuple[float, int, int]] = deque()
        self._next_s = -1.0

    def text(self, moving: Iterable[TopicPartition], snapshot: RunSnapshot) -> str:
        """Return bytes, rate and expected end; empty if nothing is copied between brokers.

        Args:
            moving: partitions of the batch that still move.
            snapshot: the cluster now.
        """
        copying = {
            ReplicaKey(name, broker)
            for name in moving
            if (partition := snapshot.partitions.get(name)) is not None
            for broker in partition.adding
        }
        if not copying and not self._whole:
            return ""
        if self._clock() >= self._next_s:
            began_s = self._clock()
            self._read(copying, snapshot)
            now_s = self._clock()
            self._next_s = now_s + max(_EVERY_S, (now_s - began_s) / _TIME_SHARE)
        return self._text()

    def _read(self, copying: set[ReplicaKey], snapshot: RunSnapshot) -> None:
        names, known_before = {replica.name for replica in copying}, set(self._whole)
        partitions = {name: snapshot.partitions[name] for name in names}
        brokers = {broker for partition in partitions.values() for broker in partition.replicas} & snapshot.alive
        logs = {}
        if brokers:
            with suppress(HeadroomError):
                logs = dict(self._control.read_logs(sorted(brokers), sorted(names)).brokers)
        placed = cluster_state_of_run(replace(snapshot, partitions=partitions), logs).partitions
        unknown = set()
        for replica in copying:
            size_bytes = placed[replica.name].new_replica_bytes
            if size_bytes is None or replica.broker not in logs:
                unknown.add(replica)
                continue
            if placed[replica.name].untiered_bytes is not None:
                # What is uploaded meanwhile is copied nevertheless: the copy has begun before it.
                size_bytes = max(size_bytes, self._whole.get(replica, 0))
            self._whole[replica] = size_bytes
            # A broker that does not list it yet has nothing of it.
            copied = placed[replica.name].copied_bytes.get(replica.broker, 0)
            self._copied[replica] = min(copied, size_bytes)
        for replica in self._whole.keys() - copying:
            self._copied[replica] = self._whole[replica]
        self._unknown = frozenset(unknown)
        if self._whole.keys() != known_before:
            # Sums over other replicas say nothing of a rate.
            self._readings.clear()
        copied_bytes, whole_bytes = sum(self._copied.values()), sum(self._whole.values())
        now_s = self._clock()
        self._readings.append((now_s, copied_bytes, whole_bytes - copied_bytes))
        while len(self._readings) > 2 and now_s - self._readings[1][0] >= _RATE_S:
            self._readings.popleft()

    def _text(self) -> str:
        _, copied_bytes, left_bytes = self._readings[-1]
        if self._unknown and not self._whole:
            return f"bytes, rate and expected end are {UNKNOWN}: no log sizes were reported"
        amount = f"{size_text(copied_bytes)} of {size_text(copied_bytes + left_bytes)} copied"
        if self._unknown:
            return f"{amount}, {len(self._unknown)} more replicas {UNKNOWN}; {self._rate()}, expected end {UNKNOWN}"
        return f"{amount}, {self._rate()}, {self._end()}"

    def _rate(self) -> str:
        (first_s, first, _), (last_s, last, _) = self._readings[0], self._readings[-1]
        return rate_text(max(0, last - first) / (last_s - first_s)) if last_s > first_s else f"rate {UNKNOWN} so far"

    def _end(self) -> str:
        """Return the expected end, at the rate at which the bytes that are left have become fewer."""
        (first_s, _, first), (last_s, _, last) = self._readings[0], self._readings[-1]
        if not last:
            return "all is copied"
        if last_s - first_s < _LEAST_RATE_S:
            return f"expected end {UNKNOWN} so far"
        if last >= first:
            return "no end at this rate"
        return f"expected to end in {duration_text(last * (last_s - first_s) / (first - last))}"
