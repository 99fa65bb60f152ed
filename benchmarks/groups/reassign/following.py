"""Follows a reassignment from outside, as Kafka lists it: when it moves, how far it is, and when throttles are gone."""

from __future__ import annotations

import subprocess
import threading
import time
from contextlib import suppress
from dataclasses import dataclass
from types import TracebackType

from kafka.errors import KafkaError

from benchmarks.fixtures.bench_cluster import BenchCluster, failure
from benchmarks.fixtures.throttled_move import ThrottledMove
from benchmarks.groups.reassign.throttle_state import ThrottleValues, throttles_in_force

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
    throttles: ThrottleValues

    @property
    def moved_s(self) -> list[float]:
        """Return the length of each move, seconds."""
        return [ended_s - began_s for began_s, ended_s in self.spans]


class _MoveSpans:
    """Notes on a thread of its own when something begins and ends to move, because reads of throttles take longer."""

    def __init__(self, bench: BenchCluster) -> None:
        self._admin = bench.connect()
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._watch, name="move-spans", daemon=True)
        self._spans: list[tuple[float, float]] = []
        self.moving = False

    def __enter__(self) -> _MoveSpans:
        self._thread.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self._ended.set()
        self._thread.join()
        with suppress(KafkaError):
            self._admin.close()

    @property
    def spans(self) -> tuple[tuple[float, float], ...]:
        """Return the ends of all moves that have ended, seconds of the monotonic clock."""
        return tuple(self._spans)

    def _watch(self) -> None:
        began_s = 0.0
        while not self._ended.wait(_POLL_S):
            moving, now_s = bool(self._admin.list_partition_reassignments()), time.monotonic()
            if moving and not self.moving:
                began_s = now_s
            elif self.moving and not moving:
                self._spans.append((began_s, now_s))
            self.moving = moving


def follow_run(
    bench: BenchCluster, process: subprocess.Popen[bytes], others: ThrottleValues, deadline_s: float
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
    give_up_s, clean_at_s, seen = time.monotonic() + deadline_s, None, 0
    with _MoveSpans(bench) as watched:
        while process.poll() is None:
            if time.monotonic() > give_up_s:
                raise failure(f"a run did not end within {deadline_s:.0f} s")
            if watched.moving or len(watched.spans) > seen:
                clean_at_s, seen = None, len(watched.spans)
            elif watched.spans and clean_at_s is None and throttles_in_force(bench.settings) == others:
                clean_at_s = time.monotonic()
            time.sleep(_POLL_S)
    left, spans = throttles_in_force(bench.settings), watched.spans
    if clean_at_s is None:
        clean_at_s = time.monotonic()
    clean_s = clean_at_s - spans[-1][1] if spans and left == others else None
    return FollowedRun(process.returncode, spans, clean_s, left)


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
        (partition["partition_index"], broker["broker"]): int(partition["partition_size"])
        for broker in bench.admin.describe_log_dirs()
        for folder in broker["log_dirs"]
        for topic in folder["topics"]
        if topic["name"] == move.topic
        for partition in topic["partitions"]
    }
    done = total = 0
    for number, moved in enumerate(move.partitions):
        largest = max(sizes.get((number, broker), 0) for broker in moved.before)
        for broker in moved.after:
            if broker not in moved.before:
                done, total = done + min(largest, sizes.get((number, broker), 0)), total + largest
    return done, total
