"""Causes that findings of several rules share, by which ``alerts.grouping`` makes one alert of them."""

from __future__ import annotations

from enum import IntEnum

# All partitions without a leader.
NO_LEADER = "no leader"


class BrokerPrecedence(IntEnum):
    """Precedence among the findings that one broker causes: the first represents the others.

    Missing metrics and lost leadership are consequences, so they come last.
    """

    STALLED = 0
    ISR_SHRINK = 1
    UNDER_REPLICATED = 2
    NO_METRICS = 3
    NOT_LEADING = 4


def broker_cause(broker: int, alive: bool) -> str:
    """Return the group of findings on one broker; being down and being out of sync are different causes."""
    return f"broker {broker}" if alive else f"broker {broker} down"


def broker_causes(broker: int, alive: bool) -> tuple[str, ...]:
    """Return the causes whose alert continues: a broker that was down stays out of sync until it has caught up."""
    down = broker_cause(broker, alive=False)
    return (broker_cause(broker, alive=True), down) if alive else (down,)
