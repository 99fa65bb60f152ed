"""What the rules on loads of brokers share: what unknown loads mean, what a move explains, and the evidence."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Subject
from headroom.alerts.inputs.broker_load import BrokerLoadState, MinuteLoads
from headroom.alerts.rules.rule import Assessment, Rule, RuleInputs
from headroom.alerts.text.loads import VERBS, load_text
from headroom.schemas.text.amounts import percent_text

# Cause of all findings on uneven loads: one proposal ends them together, and what one broker has too much another one
# has too little.
UNEVEN = "broker load"
# Loads that leaders carry.
OF_LEADERS = ("network_out", "requests")


@dataclass(frozen=True, kw_only=True)
class BrokerLoadEvidence(Evidence):
    """Evidence on the load of a broker.

    Attributes:
        loads: its loads that are out of band or above their limit, the worst first; columns of ``gold/broker_load``.
        unknown: what is not known of the broker, and why.
        minute_tick_ms: tick of the loads, which may be older than that of the event; epoch milliseconds.
    """

    loads: Sequence[BrokerLoadState]
    unknown: Sequence[str]
    minute_tick_ms: int


class BrokerLoadRule(Rule):
    """A rule on the loads of brokers, which are read once a minute."""

    def evaluate(self, tick: RuleInputs) -> Assessment:
        """Return the assessment of the last minute; if it is stale, alerts keep firing."""
        if tick.loads.brokers is None:
            return Assessment(keep_firing=tick.active_of(self.kind))
        return self.evaluate_loads(tick.loads.brokers, tick)

    def unread(self, loads: MinuteLoads, tick: RuleInputs) -> set[Subject]:
        """Return the subjects of alerts on a load that could not be read in this minute: unknown is not in order."""
        return {
            (self.kind, subject)
            for broker, states in loads.by_broker.items()
            if (about := tick.active_resources.get((self.kind, subject := f"broker {broker}")))
            and any(s.alive and s.load is None and s.resource in about for s in states)
        }

    @abstractmethod
    def evaluate_loads(self, loads: MinuteLoads, tick: RuleInputs) -> Assessment:
        """Return the findings on the brokers, and the subjects whose alerts must not resolve.

        Args:
            loads: loads of all brokers.
            tick: the tick, which may be newer than the loads.
        """


def changed_by_move(tick: RuleInputs) -> set[int]:
    """Return the brokers that lead or follow a partition in a running reassignment, which explains their load."""
    return {status.broker for status in tick.statuses if status.moving_partitions}


def sort_by_deviation(states: Sequence[BrokerLoadState]) -> list[BrokerLoadState]:
    """Return states by their distance from the mean, in shares of it, the greatest first."""
    return sorted(states, key=lambda state: (-abs(deviation(state)), state.resource))


def evidence_of(broker: int, loads: MinuteLoads, states: Sequence[BrokerLoadState]) -> BrokerLoadEvidence:
    """Return the evidence on a broker.

    Args:
        broker: id.
        loads: loads of all brokers.
        states: its loads that the finding is about, the worst first.
    """
    return BrokerLoadEvidence(
        broker_id=broker, loads=tuple(states), unknown=_unknown(loads.by_broker[broker]), minute_tick_ms=loads.tick_ms
    )


def describe_bands(broker: int, states: Sequence[BrokerLoadState]) -> str:
    """Return in a sentence without its end how far the loads of a broker are from their bands, the worst first."""
    parts = []
    for state in states:
        load, share = (load_text(state.resource, value or 0.0) for value in (state.load, state.mean))
        where = "above" if state.is_above_band else "below"
        parts.append(
            f"{VERBS[state.resource]} {load}, {percent_text(abs(deviation(state)))} {where} its share of {share}"
        )
    return f"Broker {broker} {'; it '.join(parts)}"


def deviation(state: BrokerLoadState) -> float:
    """Return the distance of a load from the mean in shares of the mean; above it is positive."""
    if state.load is None or state.mean is None:
        return 0.0
    return (state.load - state.mean) / state.mean if state.mean else float(state.load > 0)


def _unknown(states: Sequence[BrokerLoadState]) -> tuple[str, ...]:
    loads = [f"{s.resource}: {s.unknown_reason}" for s in states if s.unknown_reason is not None]
    # Requests and leaders have no capacity of their own.
    limited = [s for s in states if s.resource not in ("requests", "leaders")]
    return (*loads, *(f"capacity of {s.resource}: unknown" for s in limited if s.capacity is None))
