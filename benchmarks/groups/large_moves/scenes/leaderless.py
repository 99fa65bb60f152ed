"""A partition without a leader, and a throttle of other partitions that is too low: two causes, each announced once."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import ClassVar

from benchmarks.fixtures.bench_cluster import BenchCluster, await_true
from benchmarks.groups.large_moves.scenes.base import BROKERS, MB, MoveScene
from benchmarks.groups.large_moves.scenes.short import ALERT_S, BURST_S, COUNT, SIZES
from benchmarks.groups.large_moves.scoring.claims import (
    broker_claims,
    leader_throttle_claims,
    leaderless_claims,
    number_checks,
)
from benchmarks.groups.large_moves.scoring.remedies import follow_advice, repair_by_hand
from benchmarks.groups.large_moves.scoring.truth import all_of
from benchmarks.groups.large_moves.stage.acts import LOSING_S, await_in_sync, finish_fast, require_losing, start_move
from benchmarks.groups.large_moves.stage.groups import Group, Load, leader_load
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates, both_roles

# Kafka's leader id for a partition without a leader.
_NO_LEADER = -1
_LEADERLESS_S, _STALLED_S, _AFTER_S = 40.0, 45.0, 5.0


class LeaderlessPartition(MoveScene):
    """The only replica of one partition is lost, and the others fall behind under their throttle."""

    key: ClassVar[str] = "leaderless"

    @property
    def dies(self) -> bool:
        """Return whether the broker of the only replica dies; otherwise its log directory fails."""
        return self.number % 2 == 1

    @property
    def title(self) -> str:
        """Return a short description of the fault."""
        return f"{'broker' if self.dies else 'log directory'} of an only replica lost, throttle of 60 others too low"

    def groups(self) -> Sequence[Group]:
        """Return the partition with one replica, and those of the leader whose throttle is too low."""
        write = self.loaded(1.6, 2.4) * MB / COUNT
        return (
            Group(1, (self.d,), (self.c,), 0.0, 5 * MB, 5 * MB),
            Group(COUNT, (self.a, self.b), (self.a, self.c), write, *SIZES),
        )

    def load_of_leader(self) -> Load:
        """Return the load of the leader of the other partitions."""
        return leader_load(self.groups(), self.a)

    def throttle_bytes_per_s(self) -> float:
        """Return a rate between in-sync use and the required rate."""
        return self.load_of_leader().in_sync_bytes_per_s * self.between(1.3, 1.6)

    def rates(self) -> Rates:
        """Return the same rate for all brokers and roles."""
        throttle = self.throttle_bytes_per_s()
        return both_roles(range(1, BROKERS + 1), throttle, throttle)

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
        load, to_copy = self.load_of_leader(), context.topic.logs.to_copy_bytes(self.groups()[1:])
        checks = all_of(*number_checks(self.throttle_bytes_per_s(), load, to_copy, load.required_bytes_per_s))
        low = context.expect(f"throttle of broker {self.a} too low", leader_throttle_claims([self.a], checks), ALERT_S)
        claims = [
            *leaderless_claims(self.c),
            *broker_claims(self.d, lambda one: f"{context.topic.name}-0" in one.summary),
        ]
        leaderless = context.expect(f"{context.topic.name}-0 has no leader", claims, _STALLED_S)
        start_move(context, self.rates())
        context.observe(BURST_S)
        context.await_announced(low, leaderless)
        require_losing(context, LOSING_S, self.groups()[1:])
        follow_advice(context)
        context.end_causes(low)
        repair_by_hand(context, lambda: context.start(self.d), lambda: self._await_leader(context))
        context.end_causes(leaderless, *dead)
        finish_fast(context)
        context.clear()
        context.observe(_AFTER_S)

    def _await_leader(self, context: SceneContext) -> None:
        await_true(lambda: context.topic.leaders()[0] != _NO_LEADER, _LEADERLESS_S, "a leader of the partition")
        await_in_sync(context, self.d)
