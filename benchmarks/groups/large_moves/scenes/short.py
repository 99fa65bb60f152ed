"""Sixty partitions on one leader whose throttle starves or loses: one alert about it, with the right numbers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.groups.large_moves.scenes.base import BROKERS, MB, MoveScene
from benchmarks.groups.large_moves.scoring.claims import leader_throttle_claims, number_checks, severity_of
from benchmarks.groups.large_moves.scoring.remedies import await_promised_end, follow_advice
from benchmarks.groups.large_moves.scoring.truth import Cause, all_of, has_severity
from benchmarks.groups.large_moves.stage.acts import LOSING_S, require_losing, start_move
from benchmarks.groups.large_moves.stage.groups import Group, Load, leader_load
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates, both_roles

COUNT = 60
# Larger than a fetch of 1 MiB per partition, so that the first burst completes no replica and changes no load.
SIZES = (1_600_000, 2_400_000)
# Bursts into the empty window of a new throttle are over by then.
BURST_S = 15.0
ALERT_S = 30.0
_AFTER_S, _END_S = 5.0, 60.0


class LowThrottle(MoveScene):
    """A throttle that is too low from the start."""

    key: ClassVar[str] = "short"

    @property
    def starves(self) -> bool:
        """Return whether new replicas get nothing; otherwise they get less than is written."""
        return self.number % 2 == 0

    @property
    def in_sync_followers(self) -> int:
        """Return the number of in-sync followers of each partition."""
        return 1 + self.number // 2 % 2

    @property
    def title(self) -> str:
        """Return a short description of the fault."""
        return f"{COUNT} partitions {'starve' if self.starves else 'lose'}, RF {self.in_sync_followers + 1}"

    def groups(self) -> Sequence[Group]:
        """Return partitions that all have the same leader."""
        others = (self.b, self.d)[: self.in_sync_followers]
        kept_replicas = others[1:]
        write = self.loaded(1.6, 2.4) * MB / COUNT
        return (Group(COUNT, (self.a, *others), (self.a, self.c, *kept_replicas), write, *SIZES),)

    def load_of_leader(self) -> Load:
        """Return the load of the leader."""
        return leader_load(self.groups(), self.a)

    def throttle_bytes_per_s(self) -> float:
        """Return a rate below in-sync use, or less than two thirds of the way to the required rate."""
        load = self.load_of_leader()
        if self.starves:
            return load.in_sync_bytes_per_s * self.between(0.5, 0.8)
        room = load.required_bytes_per_s - load.in_sync_bytes_per_s
        return load.in_sync_bytes_per_s + room * self.between(0.3, 0.6)

    def rates(self) -> Rates:
        """Return the same rate for all brokers and roles."""
        throttle = self.throttle_bytes_per_s()
        return both_roles(range(1, BROKERS + 1), throttle, throttle)

    def play(self, context: SceneContext) -> None:
        """Start the move, wait for its alert, and follow the advice."""
        throttle, load = self.throttle_bytes_per_s(), self.load_of_leader()
        to_copy = context.topic.logs.to_copy_bytes(self.groups())
        checks = all_of(
            *number_checks(throttle, load, to_copy, load.required_bytes_per_s),
            has_severity(severity_of(throttle, load)),
        )
        low = context.expect(f"throttle of broker {self.a} too low", leader_throttle_claims([self.a], checks), ALERT_S)
        run_losing_move(context, self.rates(), low, LOSING_S)


def run_losing_move(context: SceneContext, rates: Rates, low: Cause, losing_s: float) -> None:
    """Start a move that gains nothing for a number of seconds, await its alert, and follow the advice to the end."""
    start_move(context, rates)
    context.observe(BURST_S)
    context.await_announced(low)
    require_losing(context, losing_s)
    follow_advice(context)
    context.end_causes(low)
    context.observe(_AFTER_S)
    await_promised_end(context, _END_S)
