"""Recommendations of alerts: their vocabulary, and the one place that writes them as JSON."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from enum import Enum
from typing import Any, Protocol

from headroom.schemas.alerts import Verdict
from headroom.schemas.keys import Role


class Action(str, Enum):
    """What an operator should do."""

    NONE = "none"
    RAISE_THROTTLE = "raise_throttle"
    REDUCE_MOVE = "reduce_move"
    SET_RATE = "set_rate"
    LIST_LEADER = "list_leader"
    CLEAR_THROTTLE = "clear_throttle"
    ELECT_PREFERRED = "elect_preferred"
    BALANCE_LOAD = "balance_load"
    RESTORE_BROKER = "restore_broker"
    INSPECT_BROKER = "inspect_broker"
    CHECK = "check"
    RUN_MIGRATION = "run_migration"
    RAISE_RETENTION = "raise_retention"
    SECURE_WRITES = "secure_writes"
    MOVE_PRODUCERS = "move_producers"
    DROP_ORIGIN = "drop_origin"


@dataclass(frozen=True)
class BrokerThrottle:
    """Throttle of one broker and role of a move, now and as recommended, bytes/s.

    Attributes:
        broker_id: broker id.
        role: role that the throttle limits.
        verdict: verdict on the throttle in force.
        throttle_bytes_per_s: throttle in force; None if there is none.
        required_bytes_per_s: rate that it has to exceed; None if unknown.
        recommended_bytes_per_s: recommended throttle; None if there is none.
        down_required_bytes_per_s: known addition to the required rate once dead brokers are back; None if unknown.
    """

    broker_id: int
    role: Role
    verdict: Verdict
    throttle_bytes_per_s: float | None
    required_bytes_per_s: float | None
    recommended_bytes_per_s: float | None
    down_required_bytes_per_s: float | None = None


@dataclass(frozen=True)
class FinishRange:
    """Finish of a move under the recommended throttle, in seconds after it is applied; None if unknown or never.

    Attributes:
        finish_s: expected finish.
        finish_low_s: earliest finish.
        finish_high_s: latest finish.
    """

    finish_s: float | None = None
    finish_low_s: float | None = None
    finish_high_s: float | None = None


NO_FINISH = FinishRange()


class Recommendation(Protocol):
    """Recommended action with its numbers and commands.

    A firing alert is compared in every tick by action, throttle, and throttles per broker. The other values, above
    all the simulated finish, are needed only when an event is written, so implementations may compute each value when
    it is read.
    """

    @property
    def action(self) -> Action:
        """Return what to do."""

    @property
    def throttle_bytes_per_s(self) -> int | None:
        """Return the one throttle to set, bytes/s; None if there is none."""

    @property
    def smallest_bytes_per_s(self) -> float | None:
        """Return the rate that the throttle has to exceed, bytes/s; None if there is none."""

    @property
    def per_broker(self) -> Sequence[BrokerThrottle]:
        """Return the throttle of every broker and role that a throttle limits; may be empty."""

    @property
    def finish(self) -> FinishRange:
        """Return when the move finishes under the recommended throttle."""

    @property
    def reason(self) -> str | None:
        """Return the reason, or the action in words; None if there is nothing to add."""

    @property
    def commands(self) -> Sequence[str]:
        """Return shell commands that do it, the best first."""

    def to_json(self) -> dict[str, Any]:
        """Return the recommendation as it is stored, ready for JSON."""


@dataclass(frozen=True)
class Advice:
    """A recommendation whose values are all known, and cheap."""

    action: Action = Action.NONE
    reason: str | None = None
    throttle_bytes_per_s: int | None = None
    smallest_bytes_per_s: float | None = None
    per_broker: Sequence[BrokerThrottle] = ()
    finish: FinishRange = NO_FINISH
    commands: Sequence[str] = field(default_factory=list)

    def to_json(self) -> dict[str, Any]:
        """Return the recommendation as it is stored, ready for JSON."""
        return recommendation_json(self)


def recommendation_json(recommendation: Recommendation) -> dict[str, Any]:
    """Return the keys that every stored recommendation has, which computes all values."""
    return {
        "action": recommendation.action.value,
        "throttle_bytes_per_s": recommendation.throttle_bytes_per_s,
        "smallest_bytes_per_s": recommendation.smallest_bytes_per_s,
        "per_broker": [
            {**vars(one), "role": one.role.value, "verdict": one.verdict.value} for one in recommendation.per_broker
        ],
        **asdict(recommendation.finish),
        "reason": recommendation.reason,
        "commands": list(recommendation.commands),
    }
