"""A small alert is active when a large fault happens: a replica is out of sync, then its broker dies with hundreds."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.fixtures.bench_cluster import BenchCluster, failure
from benchmarks.groups.large_moves.scenes.base import AFTER_S, MB, MoveScene, all_rates
from benchmarks.groups.large_moves.scenes.death import DEAD_S
from benchmarks.groups.large_moves.scoring.claims import broker_claims
from benchmarks.groups.large_moves.scoring.remedies import restart_by_hand
from benchmarks.groups.large_moves.scoring.truth import shows_extent
from benchmarks.groups.large_moves.stage.acts import finish_fast, start_move
from benchmarks.groups.large_moves.stage.groups import Group, partitions
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates

# The next checkpoint notices the missing directory within 5 s. If the controller knows the directory, it removes its
# replicas from the ISR then. Otherwise the leader does, 30 s after the last fetch. The alert fires after 20 s more.
SMALL_S = 60.0
# The broker has 220 replicas or more.
_EXTENT = 50
_COPYING_S, _ACTIVE_S, _MOVING_S, _OBSERVED_S = 8.0, 10.0, 8.0, 10.0
_LEAST, _MOST = 20_000, 60_000


class GrowingFault(MoveScene):
    """The log directory of one replica fails, and later its broker dies."""

    key: ClassVar[str] = "growing"
    titles: ClassVar[Sequence[str]] = (
        "one replica is lost, then its broker dies with hundreds",
        "a small move stalls, then its broker dies with hundreds",
    )

    @property
    def stalls(self) -> bool:
        """Return whether the one replica is a new one, whose move stalls; otherwise it is an old one."""
        return self.number % 2 == 1

    def groups(self) -> Sequence[Group]:
        """Return the one partition, and those that the broker follows, leads, and gets by the move."""
        a, b, d = self.a, self.b, self.d
        write = self.loaded(0.3, 0.6) * MB / 60
        if self.stalls:
            one = Group(1, (a, b), (a, d), 20_000, 120 * MB, 120 * MB)
        else:
            one = Group(1, (a, d), (a, d), 20_000, MB, MB)
        return (
            one,
            Group(100, (a, d), (a, d), 0.0, _LEAST, _MOST),
            Group(60, (d, b), (d, b), 0.0, _LEAST, _MOST),
            Group(60, (b, a), (b, d), write, 1_600_000, 2_400_000),
        )

    def rates(self) -> Rates:
        """Return a rate far above the write rate that cannot copy 120 MB before the directory fails."""
        return all_rates(self.between(4.0, 5.0) * MB)

    def log_dirs(self, bench: BenchCluster) -> Mapping[tuple[int, int], Path]:
        """Return the second directory for the one replica, and the first one for all others of its broker."""
        affected = [
            number for number, group in enumerate(partitions(self.groups())) if self.d in group.before + group.after
        ]
        return {(number, self.d): bench.log_dir(self.d, second=number == 0) for number in affected}

    def play(self, context: SceneContext) -> None:
        """Let the small alert fire, then kill the broker during a large move to it."""
        if self.stalls:
            start_move(context, self.rates(), [0])
            context.observe(_COPYING_S)
            if not context.topic.moving():
                raise failure("the small move had ended before the log directory failed")
        small = context.expect("one replica is lost", broker_claims(self.d), SMALL_S)
        context.fail_second_log_dir(self.d)
        context.await_announced(small)
        context.observe(_ACTIVE_S)
        start_move(context, self.rates())
        context.observe(_MOVING_S)
        large = context.expect(
            "its broker is dead, with hundreds", broker_claims(self.d, shows_extent(_EXTENT)), DEAD_S
        )
        context.kill(self.d)
        context.await_announced(large)
        context.observe(_OBSERVED_S)
        restart_by_hand(context, self.d)
        context.end_causes(small, large)
        finish_fast(context)
        context.clear()
        context.observe(AFTER_S)
