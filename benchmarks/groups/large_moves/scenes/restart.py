"""Rolling restarts: before a move whose throttle is then too low, and in the middle of a healthy move."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.large_moves.scenes.base import AFTER_S, ALERT_S, COUNT, MB, SIZES, MoveScene, all_rates
from benchmarks.groups.large_moves.scenes.short import lose_to_the_end
from benchmarks.groups.large_moves.scoring.claims import broker_claims, number_checks, throttle_claims
from benchmarks.groups.large_moves.scoring.remedies import follow_advice
from benchmarks.groups.large_moves.scoring.truth import GRACE_S, PrintedAlert, all_of, blames_no_switch
from benchmarks.groups.large_moves.stage.acts import await_in_sync, end_healthy, start_move
from benchmarks.groups.large_moves.stage.groups import Group, Load
from benchmarks.groups.large_moves.stage.stage import SceneContext
from benchmarks.groups.large_moves.stage.topic import Rates
from headroom.schemas.keys import Role

# From the last restart to the move; the first switch is then some minutes old.
_CALM_S = 60.0
_MIDDLE_S, _LATE_S = 10.0, 300.0
_NEVER_S = 0.0


def roll(context: SceneContext) -> None:
    """Restart all brokers one after another. Alerts about a broker that is down or out of sync are true.

    A broker that is up but not in sync yet has out-of-sync replicas. It copies, so no move to it is stalled.
    """
    for broker in context.bench.brokers:
        downtime = Downtime()
        claims = broker_claims(broker, stalled=downtime.applies)
        restart = context.expect(f"broker {broker} restarts", claims, _NEVER_S, required=False)
        context.stop(broker)
        context.start(broker)
        downtime.until_s = time.monotonic()
        await_in_sync(context, broker)
        context.end_causes(restart)


@dataclass
class Downtime:
    """Time in which a broker is down.

    Attributes:
        until_s: time at which it was up again, monotonic seconds.
    """

    until_s: float = float("inf")

    def applies(self, announcement: PrintedAlert) -> bool:
        """Return whether an announcement came while the broker was down, or with the tick that saw that."""
        return announcement.at_s <= self.until_s + GRACE_S


class RestartBefore(MoveScene):
    """A rolling restart, then a move whose throttle is too low, not because of a leader switch."""

    key: ClassVar[str] = "restart_before"
    count: ClassVar[int] = 2
    titles: ClassVar[Sequence[str]] = (
        "rolling restart, then a move that loses",
        "rolling restart, then a move that starves",
    )

    @property
    def starves(self) -> bool:
        """Return whether new replicas get nothing."""
        return self.number % 2 == 1

    @property
    def writes_bytes_per_s(self) -> float:
        """Return the write rate of all moving partitions."""
        return self.loaded(1.6, 2.4) * MB

    def groups(self) -> Sequence[Group]:
        """Return partitions that one of two brokers leads after the restarts, and others that do not move."""
        write = self.writes_bytes_per_s / COUNT
        rest = [Group(40, pair, pair, 0.0, 20_000, 60_000) for pair in ((self.c, self.d), (self.d, self.b))]
        return (Group(COUNT, (self.a, self.b), (self.a, self.c), write, *SIZES), *rest)

    def load_of_leader(self) -> Load:
        """Return the load of the leader, which is the same for both brokers."""
        return Load(self.writes_bytes_per_s, 2 * self.writes_bytes_per_s)

    def rates(self) -> Rates:
        """Return the same rate for all brokers and roles; it is too low."""
        ratio = self.between(0.5, 0.8) if self.starves else self.between(1.25, 1.5)
        return all_rates(ratio * self.writes_bytes_per_s)

    def play(self, context: SceneContext) -> None:
        """Restart the brokers, wait, start the move, and follow the advice of its alert."""
        roll(context)
        context.observe(_CALM_S)
        led = set(context.topic.leaders()[:COUNT])
        if len(led) != 1:
            raise failure(f"the moving partitions have several leaders after the restarts: {sorted(led)}")
        leader, throttle, load = led.pop(), next(iter(self.rates().values())), self.load_of_leader()
        to_copy = context.topic.logs.to_copy_bytes(self.groups())
        checks = all_of(*number_checks(throttle, load, to_copy, load.required_bytes_per_s), blames_no_switch)
        claims = throttle_claims(Role.LEADER, [leader], checks)
        low = context.expect(f"throttle of broker {leader} too low", claims, ALERT_S)
        lose_to_the_end(self, context, low)


class RestartDuring(MoveScene):
    """A rolling restart in the middle of a healthy move."""

    key: ClassVar[str] = "restart_during"
    count: ClassVar[int] = 2
    titles: ClassVar[Sequence[str]] = ("rolling restart in the middle of a healthy move of 160 partitions",)

    def groups(self) -> Sequence[Group]:
        """Return partitions of all brokers; each broker gets some from another one."""
        write = self.loaded(0.06, 0.1) * MB / 40
        a, b, c, d = self.a, self.b, self.c, self.d
        moves = (((a, b), (a, c)), ((b, a), (b, d)), ((c, d), (c, a)), ((d, c), (d, b)))
        return tuple(Group(40, before, after, write, 5_000_000, 5_500_000) for before, after in moves)

    def rates(self) -> Rates:
        """Return a sufficient rate for any leaders: at worst one broker leads two groups with two followers each."""
        return all_rates(self.between(2.2, 2.6) * MB)

    def play(self, context: SceneContext) -> None:
        """Restart every broker while the partitions move, and let the move end."""
        start_move(context, self.rates())
        context.observe(_MIDDLE_S)
        roll(context)
        if not context.topic.moving():
            raise failure("the move had ended before the last restart")
        follow_advice(context)
        end_healthy(context, _LATE_S)
        context.clear()
        context.observe(AFTER_S)
