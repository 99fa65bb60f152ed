"""A partition without a leader, and a throttle of other partitions that is too low: two causes, each announced once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true
from benchmarks.groups.large_moves.scenes.base import AFTER_S, COUNT, MB, SIZES, OneLeaderScene
from benchmarks.groups.large_moves.scoring.claims import broker_claims, leaderless_claims
from benchmarks.groups.large_moves.scoring.remedies import lose_until_advised, repair_by_hand
from benchmarks.groups.large_moves.stage.acts import await_in_sync, finish_fast
from benchmarks.groups.large_moves.stage.groups import Group
from benchmarks.groups.large_moves.stage.stage import SceneContext

# Kafka's leader id for a partition without a leader.
_NO_LEADER = -1
_LEADERLESS_S, _STALLED_S = 40.0, 45.0


class LeaderlessPartition(OneLeaderScene):
    """The only replica of one partition is lost, and the others fall behind under their throttle."""

    key: ClassVar[str] = "leaderless"
    titles: ClassVar[Sequence[str]] = (
        "log directory of an only replica lost, throttle of 60 others too low",
        "broker of an only replica lost, throttle of 60 others too low",
    )

    @property
    def dies(self) -> bool:
        """Return whether the broker of the only replica dies; otherwise its log directory fails."""
        return self.number % 2 == 1

    def groups(self) -> Sequence[Group]:
        """Return the partition with one replica, and those of the leader whose throttle is too low."""
        write = self.loaded(1.6, 2.4) * MB / COUNT
        return (
            Group(1, (self.d,), (self.c,), 0.0, 5 * MB, 5 * MB),
            Group(COUNT, (self.a, self.b), (self.a, self.c), write, *SIZES),
        )

    def throttle_bytes_per_s(self) -> float:
        """Return a rate between in-sync use and the required rate."""
        return self.load_of_leader().in_sync_bytes_per_s * self.between(1.3, 1.6)

    def log_dirs(self, bench: BenchCluster) -> Mapping[tuple[int, int], Path]:
        """Return the second directory for the only replica; nothing else is in it."""
        return {(0, self.d): bench.log_dir(self.d, second=True)}

    def play(self, context: SceneContext) -> None:
        """Remove the leader, start the move, follow the advice, and restore the leader."""
        if self.dies:
            dead = [context.expect(f"broker {self.d} is dead", broker_claims(self.d), 0.0, required=False)]
            context.kill(self.d)
        else:
            dead = []
            context.fail_second_log_dir(self.d)
        await_true(lambda: context.topic.leaders()[0] == _NO_LEADER, _LEADERLESS_S, "a partition without a leader")
        context.note(f"{context.topic.name}-0 has no leader")
        low = self.expect_low(context, self.low_throttle_check(context))
        claims = [
            *leaderless_claims(self.c),
            *broker_claims(self.d, lambda one: f"{context.topic.name}-0" in one.summary),
        ]
        leaderless = context.expect(f"{context.topic.name}-0 has no leader", claims, _STALLED_S)
        lose_until_advised(context, self.rates(), [low, leaderless], self.groups()[1:])
        context.end_causes(low)
        repair_by_hand(context, lambda: context.start(self.d), lambda: self._await_leader(context))
        context.end_causes(leaderless, *dead)
        finish_fast(context)
        context.clear()
        context.observe(AFTER_S)

    def _await_leader(self, context: SceneContext) -> None:
        await_true(lambda: context.topic.leaders()[0] != _NO_LEADER, _LEADERLESS_S, "a leader of the partition")
        await_in_sync(context, self.d)
