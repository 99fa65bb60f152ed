"""Follows a reassignment from outside, as Kafka lists it: when it moves, how far it is, and when throttles are gone."""

from __future__ import annotations

import subprocess
import time
from dataclasses import dataclass

from benchmarks.fixtures.bench_cluster import BenchCluster, failure
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.reassign.throttle_state import ThrottleSnapshot, throttles_in_force

_POLL_S = 0.1
_SAMPLE_S = 0.5


@dataclass(frozen=True)
class FollowedRun:
    """What was seen of a run.

    Attributes:
        code: exit code of its process.
        spans: seconds of the clock at which something began and ended to move, in order.
        clean_s: seconds from the end of the last move until no throttle of the run was left; None if one was left.
        throttles: throttles after its end.
    """

    code: int
    spans: tuple[tuple[float, float], ...]
    clean_s: float | None
    throttles: ThrottleSnapshot

    @property
    def moved_s(self) -> list[float]:
        """Return the length of each move, seconds."""
        return [ended_s - began_s for began_s, ended_s in self.spans]


def follow_run(
    bench: BenchCluster, process: subprocess.Popen[bytes], others: ThrottleSnapshot, deadline_s: float
) -> FollowedRun:
    """Follow a run to the end of its process.

    Args:
        bench: the cluster; nothing else moves.
        process: process of the run.
        others: throttles of others, which are there afterwards.
        deadline_s: longest time, seconds.

    Raises:
        HeadroomError: it did not end in time.
    """
    give_up_s, spans, clean_at_s = time.monotonic() + deadline_s, [], None
    began_s: float | None = None
    while process.poll() is None:
        now_s = time.monotonic()
        if now_s > give_up_s:
            raise failure(f"a run did not end within {deadline_s:.0f} s")
        if bench.admin.list_partition_reassignments():
            began_s = now_s if began_s is None else began_s
            clean_at_s = None
        elif began_s is not None:
            spans.append((began_s, now_s))
            began_s = None
        elif spans and clean_at_s is None and throttles_in_force(bench.settings) == others:
            clean_at_s = time.monotonic()
        time.sleep(_POLL_S)
    left = throttles_in_force(bench.settings)
    if clean_at_s is None and left == others:
        clean_at_s = time.monotonic()
    clean_s = clean_at_s - spans[-1][1] if spans and clean_at_s is not None and left == others else None
    return FollowedRun(process.returncode, tuple(spans), clean_s, left)


def follow_move(
    bench: BenchCluster, move: ThrottledMove, name: str, deadline_s: float
) -> tuple[float, list[tuple[float, int, int]]]:
    """Follow a move that has just been submitted.

    Returns:
        Seconds until its end; and samples: seconds, bytes that new replicas have, and bytes that they are to have.

    Raises:
        HeadroomError: it did not end in time.
    """
    began_s, samples, next_s = time.monotonic(), [], 0.0
    while move.moving():
        elapsed_s = time.monotonic() - began_s
        if elapsed_s > deadline_s:
            raise failure(f"{name}: not finished within {deadline_s:.0f} s")
        if elapsed_s >= next_s:
            done, total = copied_bytes(bench, move)
            samples.append((time.monotonic() - began_s, done, total))
            next_s = elapsed_s + _SAMPLE_S
        time.sleep(_POLL_S)
    return time.monotonic() - began_s, samples


def copied_bytes(bench: BenchCluster, move: ThrottledMove) -> tuple[int, int]:
    """Return the bytes that the new replicas of a move have now, and those that they are to have."""
    sizes = {
        (found["partition_index"], broker["broker"]): int(found["partition_size"])
        for broker in bench.admin.describe_log_dirs()
        for folder in broker["log_dirs"]
        for topic in folder["topics"]
        if topic["name"] == move.topic
        for found in topic["partitions"]
    }
    done = total = 0
    for number, moved in enumerate(move.partitions):
        largest = max(sizes.get((number, broker), 0) for broker in moved.before)
        for broker in moved.after:
            if broker not in moved.before:
                done, total = done + min(largest, sizes.get((number, broker), 0)), total + largest
    return done, total
