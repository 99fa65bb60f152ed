"""A leader or a destination dies in a large move; the throttle of the new leader may then be too low as well."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

from benchmarks.groups.large_moves.scenes.base import AFTER_S, MB, SIZES, MoveScene, all_rates
from benchmarks.groups.large_moves.scoring.claims import broker_claims, number_checks, throttle_claims
from benchmarks.groups.large_moves.scoring.remedies import follow_advice, repair_by_hand, restart_by_hand
from benchmarks.groups.large_moves.scoring.truth import Cause, all_of
from benchmarks.groups.large_moves.stage.acts import await_in_sync, finish_fast, start_move
from benchmarks.groups.large_moves.stage.groups import Group, Load, inbound_load, leader_load
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from headroom.schemas.keys import Role

# Time until the controllers fence a dead broker: broker.session.timeout.ms.
SESSION_S = 9.0
# Limits for the alerts. The watch waits 20 s for out-of-sync replicas, and not at all for a low throttle after a
# switch.
DEAD_S, SWITCHED_S = SESSION_S + 45.0, SESSION_S + 20.0
_HEALTHY_S, _OBSERVED_S = 15.0, 12.0
_SMALL = (20_000, 60_000)


class LeaderDeath(MoveScene):
    """A leader dies, and one or two other brokers take over."""

    key: ClassVar[str] = "death"
    titles: ClassVar[Sequence[str]] = tuple(
        f"leader dies, {new_leaders}, throttle then {throttle}"
        for throttle in ("too low", "enough")
        for new_leaders in ("one takes over", "two take over")
    )

    @property
    def split(self) -> bool:
        """Return whether two brokers take over; otherwise one does."""
        return self.number % 4 in (1, 3)

    @property
    def enough(self) -> bool:
        """Return whether the throttle is sufficient after the death too."""
        return self.number % 4 >= 2

    @property
    def unit_bytes_per_s(self) -> float:
        """Return the write rate of all partitions of the dying leader."""
        return self.loaded(0.7, 0.9) * MB

    def groups(self) -> Sequence[Group]:
        """Return partitions of the dying leader and of the new leaders, and some that do not move."""
        unit, a, b, c, d = self.unit_bytes_per_s, self.a, self.b, self.c, self.d
        rest = (Group(40, (c, a), (c, a), 0.0, *_SMALL), Group(20, (a, c), (a, c), 0.0, *_SMALL))
        if self.split:
            return (
                Group(30, (a, b, c), (b, c, d), unit / 60, *SIZES),
                Group(30, (a, c, b), (c, b, d), unit / 60, *SIZES),
                Group(40, (b, c), (b, d), 1.5 * unit / 40, *SIZES),
                Group(40, (c, b), (c, d), 1.5 * unit / 40, *SIZES),
                *rest,
            )
        return (
            Group(60, (a, b, c), (b, c, d), unit / 60, *SIZES),
            Group(60, (b, c, a), (b, c, d), unit / 60, *SIZES),
            *rest,
        )

    def new_leaders(self) -> tuple[int, ...]:
        """Return the brokers that take over."""
        return (self.b, self.c) if self.split else (self.b,)

    def load_before(self) -> Load:
        """Return the greatest load of a leader while all brokers are up."""
        return max((leader_load(self.groups(), b) for b in (self.a, self.b, self.c)), key=_required_rate)

    def load_after(self) -> Load:
        """Return the load of each new leader."""
        return max((leader_load(self.groups(), b, {self.a}) for b in self.new_leaders()), key=_required_rate)

    def rates(self) -> Rates:
        """Return one rate for leaders, and one for destinations that does not limit them.

        In units, the leaders require 3 before the death, 4 after it, and 6 once the dead broker is back.
        """
        unit = self.unit_bytes_per_s
        leader = (8.0 if self.enough else self.between(3.25, 3.5)) * unit
        return all_rates(leader, 8 * unit if self.split or self.enough else leader)

    def play(self, context: SceneContext) -> None:
        """Kill the leader in a healthy move, follow the advice, let the move end, and restart the broker."""
        start_move(context, self.rates())
        context.observe(_HEALTHY_S)
        low = [] if self.enough else [self._too_low(context)]
        dead = context.expect(f"broker {self.a} is dead", broker_claims(self.a), DEAD_S)
        context.kill(self.a)
        context.await_announced(*low, dead)
        context.observe(_OBSERVED_S)
        follow_advice(context)
        context.end_causes(*low)
        context.observe(AFTER_S)
        finish_fast(context)
        context.clear()
        repair_by_hand(context, lambda: self._start_dead(context), lambda: await_in_sync(context, self.a))
        context.end_causes(dead)
        context.observe(AFTER_S)

    def _start_dead(self, context: SceneContext) -> None:
        context.start(self.a)
        # Rates of a broker cannot be cleared while it is down.
        context.clear()

    def _too_low(self, context: SceneContext) -> Cause:
        groups, load = self.groups(), self.load_after()
        moving = [group for group in groups if group.moves]
        led = [group for group in moving if group.leader({self.a}) == self.b]
        enough = max(load.lasting_bytes_per_s, inbound_load(groups, self.d).required_bytes_per_s)
        throttle = min(self.rates().values())
        checks = all_of(*number_checks(throttle, load, context.topic.logs.to_copy_bytes(led), enough))
        return context.expect(
            "throttle too low for who leads now", throttle_claims(Role.LEADER, self.new_leaders(), checks), SWITCHED_S
        )


class DestinationDeath(MoveScene):
    """A destination dies that also has other replicas."""

    key: ClassVar[str] = "destination"
    count: ClassVar[int] = 2
    titles: ClassVar[Sequence[str]] = ("destination dies in a move of 120 partitions",)

    @property
    def unit_bytes_per_s(self) -> float:
        """Return the write rate of all partitions of one leader."""
        return self.loaded(0.6, 1.0) * MB

    def groups(self) -> Sequence[Group]:
        """Return partitions of two leaders that move to the dying broker, and some that it already has."""
        write, a, b, c, d = self.unit_bytes_per_s / 60, self.a, self.b, self.c, self.d
        rest = (Group(40, (c, d), (c, d), 0.0, *_SMALL), Group(20, (d, c), (d, c), 0.0, *_SMALL))
        return Group(60, (a, b), (a, d), write, *SIZES), Group(60, (b, a), (b, d), write, *SIZES), *rest

    def rates(self) -> Rates:
        """Return a sufficient rate; in units, every leader and the destination require 2."""
        return all_rates(self.between(3.0, 3.8) * self.unit_bytes_per_s)

    def play(self, context: SceneContext) -> None:
        """Kill the destination, wait for its alert, and restart it."""
        start_move(context, self.rates())
        context.observe(_HEALTHY_S)
        dead = context.expect(f"broker {self.d} is dead", broker_claims(self.d), DEAD_S)
        context.kill(self.d)
        context.await_announced(dead)
        context.observe(_OBSERVED_S)
        restart_by_hand(context, self.d)
        context.end_causes(dead)
        follow_advice(context)
        finish_fast(context)
        context.clear()
        context.observe(AFTER_S)


def _required_rate(load: Load) -> float:
    return load.required_bytes_per_s
