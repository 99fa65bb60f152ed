"""Recommendation of one throttle for every broker of a running move."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.alerts.recommendations.recommendation import (
    NO_FINISH,
    Action,
    BrokerThrottle,
    FinishRange,
    recommendation_json,
)
from headroom.alerts.recommendations.throttle_commands import (
    cancel_command,
    moving_brokers,
    raise_commands,
    unread_brokers,
)
from headroom.planning.finish.finish_time import Earlier, finish
from headroom.schemas.alerts import Verdict
from headroom.schemas.text.amounts import join_names


@dataclass(frozen=True)
class ThrottleChoice:
    """A throttle that is enough, or what to do without one.

    Attributes:
        action: raise_throttle; reduce_move if no throttle is enough; none.
        throttle_bytes_per_s: throttle to set, bytes/s; None for other actions.
        smallest_bytes_per_s: rate that a throttle has to exceed, bytes/s; None if unknown.
        reason: settings that it does not satisfy, or the action in words; None if there is nothing to add.
    """

    action: Action
    throttle_bytes_per_s: int | None = None
    smallest_bytes_per_s: float | None = None
    reason: str | None = None


@dataclass(frozen=True)
class ThrottleRaise:
    """The recommendation to raise the throttles of a move; each value is computed when it is read, once.

    Attributes:
        choose: returns the throttle. With a deadline it simulates the move, so it is called only when needed.
        statuses: every broker and role of the tick.
        bootstrap_servers: bootstrap servers in Kafka's commands.
        config: configuration file in Headroom's commands; None if there is none.
        earlier: previous ticks, newest first: age in seconds and throttle loads.
    """

    choose: Callable[[], ThrottleChoice]
    statuses: Sequence[ThrottleStatus]
    bootstrap_servers: str
    config: str | None
    earlier: Earlier

    @cached_property
    def _choice(self) -> ThrottleChoice:
        return self.choose()

    @property
    def action(self) -> Action:
        """Return what to do."""
        return self._choice.action

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Return the throttle to set, bytes/s; None if there is none."""
        return self._choice.throttle_bytes_per_s

    @property
    def smallest_bytes_per_s(self) -> float | None:
        """Return the rate that the throttle has to exceed, bytes/s; None if there is none."""
        return self._choice.smallest_bytes_per_s

    @cached_property
    def per_broker(self) -> list[BrokerThrottle]:
        """Return every broker and role that a throttle limits, or will once dead brokers are back; empty without
        a recommendation.
        """
        if self.action is Action.NONE:
            return []
        return [_per_broker(s, self.throttle_bytes_per_s) for s in self.statuses if s.load.needs_throttle]

    @cached_property
    def finish(self) -> FinishRange:
        """Return when the move finishes under the throttle, by a simulation of all its copies.

        Unknown while a new replica is offline, or there is no verdict on the throttle of any copy.
        """
        if any(map(_may_never_finish, self.statuses)):
            return NO_FINISH
        limited = [status.load for status in self.statuses if status.load.limited_replicas]
        throttle = self.throttle_bytes_per_s
        estimate = finish(limited, throttle, self.earlier) if limited and throttle is not None else None
        return NO_FINISH if estimate is None else FinishRange(estimate.middle_s, estimate.low_s, estimate.high_s)

    @cached_property
    def reason(self) -> str | None:
        """Return the limits of the throttle, and the brokers that cannot take it; None if there are none."""
        if self.action is not Action.RAISE_THROTTLE:
            return self._choice.reason
        limits = [self._choice.reason, _down_brokers(self.statuses), _unread_rates(self.statuses)]
        return "; ".join(filter(None, limits)) or None

    @cached_property
    def commands(self) -> list[str]:
        """Return the commands that raise the throttle, or cancel the move."""
        if self.throttle_bytes_per_s is not None:
            return raise_commands(self.statuses, self.throttle_bytes_per_s, self.bootstrap_servers, self.config)
        if self.action is Action.REDUCE_MOVE:
            return [cancel_command(self.statuses, self.bootstrap_servers, self.config)]
        return []

    def to_json(self) -> dict[str, Any]:
        """Return the recommendation as it is stored, ready for JSON."""
        return recommendation_json(self)


def _per_broker(status: ThrottleStatus, throttle: int | None) -> BrokerThrottle:
    own = status.load.throttle_bytes_per_s
    # Higher rates stay, and brokers without a rate stay without one.
    recommended = None if throttle is None or own is None else max(throttle, own)
    load = status.load
    return BrokerThrottle(
        status.broker,
        status.role,
        status.verdict,
        own,
        load.required_bytes_per_s,
        recommended,
        load.down_required_bytes_per_s,
    )


def _may_never_finish(status: ThrottleStatus) -> bool:
    """Return whether a new replica is offline, so that the move cannot finish, or the throttle of copies is unknown."""
    is_offline = status.down_replicas > 0 or any(stall.cause == "offline" for stall in status.stalls)
    copies = status.load.limited_replicas + status.load.free_replicas
    return is_offline or (status.verdict is Verdict.NO_DATA and copies > 0)


def _unread_rates(statuses: Sequence[ThrottleStatus]) -> str | None:
    """Return the advice on rates that could not be read; None if all could."""
    unread = unread_brokers(statuses)
    if not unread:
        return None
    which = join_names([str(broker) for broker in unread], most=10)
    return f"the rates of broker(s) {which} could not be read, and may be lower (headroom check)"


def _down_brokers(statuses: Sequence[ThrottleStatus]) -> str | None:
    """Return the advice on dead brokers of the move; None if all are alive."""
    down = sorted(moving_brokers([status for status in statuses if not status.alive]))
    if not down:
        return None
    which = join_names([str(broker) for broker in down], most=10)
    return f"broker(s) {which} of the move are down, and keep their rates: run the command again when they are back"
