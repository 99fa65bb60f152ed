"""Throttles that differ between brokers and roles: one too low, others far higher, and all left behind at the end."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.groups.large_moves.scenes.base import AFTER_S, ALERT_S, MB, SIZES, MoveScene
from benchmarks.groups.large_moves.scoring.claims import number_checks, throttle_claims
from benchmarks.groups.large_moves.scoring.remedies import follow_advice, lose_until_advised
from benchmarks.groups.large_moves.scoring.truth import Claim, all_of
from benchmarks.groups.large_moves.stage.acts import FAST_BYTES_PER_S, finish_fast
from benchmarks.groups.large_moves.stage.groups import Group, Load, inbound_load, leader_load
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from headroom.schemas.alerts import AlertKind
from headroom.schemas.keys import Role

_COUNT = 30
_LEFT_S = 25.0


class UnevenThrottles(MoveScene):
    """One of many rates is too low."""

    key: ClassVar[str] = "uneven"
    titles: ClassVar[Sequence[str]] = (
        "rate of a leader too low, others far higher",
        "rate of a destination too low, others far higher",
        "rate of a leader too low, others not set",
        "rate of a leader too low, others one just enough, the others far higher",
    )

    @property
    def inbound(self) -> bool:
        """Return whether the rate of the destination is too low; otherwise that of a leader."""
        return self.number % 4 == 1

    @property
    def unit_bytes_per_s(self) -> float:
        """Return the write rate of all partitions of one leader.

        A destination gets a response of up to 10 MB from a leader in each quota window of 11 s, at any rate. So the
        move is only slow if a leader's rate is too low by less than 0.9 MB/s. For a destination with two leaders it is
        1.8 MB/s.
        """
        return (self.loaded(1.6, 2.2) if self.inbound else self.loaded(1.4, 1.8)) * MB

    def groups(self) -> Sequence[Group]:
        """Return partitions of two leaders with one destination."""
        write = self.unit_bytes_per_s / _COUNT
        return (
            Group(_COUNT, (self.a, self.b), (self.a, self.d), write, *SIZES),
            Group(_COUNT, (self.b, self.a), (self.b, self.d), write, *SIZES),
        )

    def rates(self) -> Rates:
        """Return the rates in multiples of the unit. Each leader and the destination require 2."""
        unit = self.unit_bytes_per_s
        leader, follower = Role.LEADER, Role.FOLLOWER
        high = {(self.b, leader): 10.0, (self.c, leader): 20.0, (self.d, leader): 15.0}
        high |= {(self.a, follower): 8.0, (self.b, follower): 9.0, (self.c, follower): 20.0, (self.d, follower): 12.0}
        chosen = (
            {**high, (self.a, leader): self.between(1.1, 1.3)},
            {**high, (self.a, leader): 15.0, (self.d, follower): self.between(0.4, 0.6)},
            {(self.a, leader): self.between(1.1, 1.3)},
            {**high, (self.a, leader): self.between(0.6, 0.8), (self.b, leader): 2.6},
        )[self.number % 4]
        return {key: multiple * unit for key, multiple in chosen.items()}

    def low_rate_key(self) -> tuple[int, Role]:
        """Return the broker and role whose rate is too low."""
        return (self.d, Role.FOLLOWER) if self.inbound else (self.a, Role.LEADER)

    def load_of_low_rate(self) -> Load:
        """Return the load of that broker and role."""
        broker, role = self.low_rate_key()
        return inbound_load(self.groups(), broker) if role is Role.FOLLOWER else leader_load(self.groups(), broker)

    def play(self, context: SceneContext) -> None:
        """Start the move and follow the advice. Then leave throttles behind and follow the advice about them."""
        broker, role = self.low_rate_key()
        load = self.load_of_low_rate()
        affected_groups = self.groups() if self.inbound else self.groups()[:1]
        to_copy = context.topic.logs.to_copy_bytes(affected_groups)
        checks = all_of(*number_checks(self.rates()[broker, role], load, to_copy, load.required_bytes_per_s))
        claims = throttle_claims(role, [broker], checks)
        low = context.expect(f"rate of broker {broker} as {role.value} too low", claims, ALERT_S)
        lose_until_advised(context, self.rates(), [low], affected_groups)
        context.end_causes(low)
        context.observe(AFTER_S)
        self._leave_behind(context)

    def _leave_behind(self, context: SceneContext) -> None:
        """End the move. In half of the scenes some brokers have a rate in one role only."""
        few = {(self.a, Role.LEADER): FAST_BYTES_PER_S, (self.d, Role.FOLLOWER): FAST_BYTES_PER_S}
        if self.number % 4 >= 2:
            context.topic.clear_rates()
        finish_fast(context, few if self.number % 4 >= 2 else None)
        pending_s = context.bench.settings.alerts.left_behind_s
        claims = [Claim(AlertKind.THROTTLE_LEFT_BEHIND, "throttles")]
        left = context.expect("throttles left behind", claims, pending_s + _LEFT_S)
        context.await_announced(left)
        follow_advice(context)
        context.end_causes(left)
        context.observe(AFTER_S)
