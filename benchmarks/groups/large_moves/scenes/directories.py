"""Replicas move between log directories of a broker during a throttled move: no alert and no number may be wrong."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.large_moves.scenes.base import AFTER_S, COUNT, MB, SIZES, OneLeaderScene
from benchmarks.groups.large_moves.scoring.remedies import follow_advice
from benchmarks.groups.large_moves.scoring.truth import Cause, Claim
from benchmarks.groups.large_moves.stage.acts import end_healthy, start_move
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext
from headroom.schemas.alerts import AlertKind
from headroom.schemas.tables import THROTTLE_HEADROOM
from headroom.streaming.delta.query_table import query

_MOVED = 20
# Slow enough that the copies outlast the alert, and fast enough to keep up with the writes.
_DIRS_BYTES_PER_S = 1_500_000
_STEADY_S, _WINDOW_S, _SAMPLE_S = 10.0, 50.0, 1.5
_LATE_S = 240.0
# The required rate falls when replicas complete between two readings; a rate window is 10 s.
_TOLERANCE = 0.2
# Sizes are read some seconds apart, while bursts of 10 MB arrive.
_LEFT_TOLERANCE, _LEAST_MISSING = 0.3, 50 * MB
# The gold job writes in bigger batches than the alert path.
_ROWS_S, _LAST_ROW_MS = 120.0, 3_000


@dataclass(frozen=True)
class Sample:
    """True numbers of a move at one time.

    Attributes:
        at_s: epoch seconds.
        moving: number of partitions that are being reassigned.
        missing_bytes: bytes that new replicas have to copy.
    """

    at_s: float
    moving: int
    missing_bytes: int


class LogDirectories(OneLeaderScene):
    """Replicas of the leader, of an in-sync follower or of the destination move to another directory."""

    key: ClassVar[str] = "directories"
    titles: ClassVar[Sequence[str]] = tuple(
        f"{_MOVED} replicas of the {role} move between directories, throttle {throttle}"
        for role, throttle in (
            ("destination", "enough"),
            ("leader", "enough"),
            ("leader", "too low"),
            ("in-sync follower", "too low"),
        )
    )

    @property
    def low(self) -> bool:
        """Return whether the throttle is too low."""
        return self.number % 4 >= 2

    @property
    def broker(self) -> int:
        """Return the broker whose replicas move between directories."""
        return (self.c, self.a, self.a, self.b)[self.number % 4]

    def groups(self) -> Sequence[Group]:
        """Return partitions of one leader."""
        write = self.loaded(1.4, 2.0) * MB / COUNT
        return (Group(COUNT, (self.a, self.b), (self.a, self.c), write, *SIZES),)

    def throttle_bytes_per_s(self) -> float:
        """Return the rate."""
        load = self.load_of_leader()
        if self.low:
            return load.in_sync_bytes_per_s * self.between(1.3, 1.6)
        return load.required_bytes_per_s * self.between(1.35, 1.5)

    def play(self, context: SceneContext) -> None:
        """Start both moves, follow the advice of true alerts, and compare the numbers with the true ones."""
        check = self.low_throttle_check(context)
        low = [self.expect_low(context, check)] if self.low else []
        start_move(context, self.rates())
        context.observe(_STEADY_S)
        context.topic.logs.limit_log_dir_moves(self.broker, _DIRS_BYTES_PER_S)
        count = context.topic.logs.swap_log_dirs(self.broker, range(_MOVED))
        context.note(f"{count} replicas of broker {self.broker} move between its log directories")
        samples = self._samples(context)
        context.await_announced(*low)
        left: list[Cause] = []

        def on_poll() -> None:
            # After the end of the move its throttles are left behind until the scene clears them.
            if not left and not context.topic.moving():
                claims = [Claim(AlertKind.THROTTLE_LEFT_BEHIND, "throttles")]
                left.append(context.expect("throttles left behind", claims, _LATE_S, required=False))

        self._compare(context, samples, on_poll)
        on_poll()
        follow_advice(context)
        context.end_causes(*low, *left)
        if not self.low:
            end_healthy(context, _LATE_S)
        context.clear()
        context.observe(AFTER_S)

    def _samples(self, context: SceneContext) -> list[Sample]:
        samples: list[Sample] = []
        until_s = time.monotonic() + _WINDOW_S
        while time.monotonic() < until_s and (moving := len(context.topic.moving())):
            samples.append(Sample(time.time(), moving, context.topic.logs.missing_bytes()))
            context.observe(_SAMPLE_S)
        return samples

    def _compare(self, context: SceneContext, samples: Sequence[Sample], on_poll: Callable[[], None]) -> None:
        """Compare the leader's rows in the table of verdicts with the true numbers of their time.

        Raises:
            HeadroomError: the move ended before there was anything to compare, or the table was not written.
        """
        if not samples:
            raise failure("the move had ended before replicas moved between directories")
        for row in leader_rows(context, self.a, samples[0].at_s, samples[-1].at_s, on_poll):
            near = around(samples, row["tick_ms"] / 1000)
            at = f"at {row['tick_ms']}"
            required, remaining = row["required_bytes_per_s"], row["remaining_bytes"]
            context.compare(f"required {at}", required, nearest(required, map(self.required, near)), _TOLERANCE)
            missing = [sample.missing_bytes for sample in near]
            if min(missing) >= _LEAST_MISSING:
                context.compare(f"remaining {at}", remaining, nearest(remaining, missing), _LEFT_TOLERANCE)

    def required(self, sample: Sample) -> float:
        """Return the leader's required rate. In a completed partition only the new replica fetches."""
        write = self.groups()[0].write_bytes_per_s
        return write * (2 * sample.moving + (COUNT - sample.moving))


def around(samples: Sequence[Sample], at_s: float) -> Sequence[Sample]:
    """Return the last sample before a time and the first after it, or the one of them that there is."""
    before = [sample for sample in samples if sample.at_s <= at_s]
    after = [sample for sample in samples if sample.at_s > at_s]
    return [*before[-1:], *after[:1]]


def nearest(number: float | None, edges: Iterable[float]) -> float:
    """Return the value nearest to a number in the range of the edges, between which the true one lies."""
    low, high = min(numbers := list(edges)), max(numbers)
    return low if number is None else min(max(number, low), high)


def leader_rows(
    context: SceneContext, broker: int, from_s: float, until_s: float, on_poll: Callable[[], None]
) -> list[dict[str, Any]]:
    """Return the rows of ``gold/throttle_headroom`` of a leader between two times, epoch seconds.

    Raises:
        HeadroomError: they were not written in time.
    """
    sql = (
        f"SELECT * FROM data WHERE broker = {broker} AND role = 'leader' "
        f"AND tick_ms BETWEEN {from_s * 1000:.0f} AND {until_s * 1000:.0f} ORDER BY tick_ms"
    )

    def rows() -> list[dict[str, Any]]:
        on_poll()
        answer = query(str(context.store), THROTTLE_HEADROOM.path, sql) or []
        return answer if answer and answer[-1]["tick_ms"] >= until_s * 1000 - _LAST_ROW_MS else []

    return context.watch.wait(rows, _ROWS_S, f"rows of {THROTTLE_HEADROOM.path} for broker {broker}", _SAMPLE_S)
