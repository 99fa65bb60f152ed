"""Rule ``slow_broker``: the log flushes of a broker take long, compared with its past or with the other brokers."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from headroom.alerts.evidence.evidence import Evidence
from headroom.alerts.finding import Finding
from headroom.alerts.inputs.broker_load import MinuteLoads
from headroom.alerts.rules.balance.broker_load_rule import BrokerLoadRule
from headroom.alerts.rules.rule import Assessment, RuleInputs
from headroom.planning.balance.slow_brokers.slow_brokers import GIVES_LEADERS_AT, advice
from headroom.schemas.alerts import AlertKind, Severity
from headroom.schemas.text.amounts import join_names

_MANY = "brokers"


@dataclass(frozen=True, kw_only=True)
class SlowBrokerEvidence(Evidence):
    """Evidence on slow brokers.

    Attributes:
        brokers: slow brokers.
        slow_rounds: minutes in which each was slow, less those in which it was not.
        flush_p999_s: 99.9th percentile of the log flush times of each in the last minute, seconds; None if unknown.
        minute_tick_ms: tick of these figures, epoch milliseconds.
    """

    brokers: Sequence[int]
    slow_rounds: Sequence[int]
    flush_p999_s: Sequence[float | None]
    minute_tick_ms: int


class SlowBroker(BrokerLoadRule):
    """A broker has counted as slow for several minutes. Without flush times nothing is known, and nothing is found.

    If more than a tenth of the brokers are slow at once, the cause is not one broker: one finding without advice.
    """

    kind = AlertKind.SLOW_BROKER

    def evaluate_loads(self, loads: MinuteLoads, tick: RuleInputs) -> Assessment:
        """Return a finding for each slow broker, or one for all of them; the count of rounds is the exit margin."""
        rounds = loads.slow_rounds
        slow = sorted(broker for broker, count in rounds.items() if count >= GIVES_LEADERS_AT)
        recovering = {(self.kind, f"broker {broker}") for broker, count in rounds.items() if count}
        kept = recovering & tick.active_of(self.kind)
        if not slow:
            return Assessment(keep_firing=kept)
        if advice(rounds).too_many:
            return Assessment([self._finding(_MANY, slow, loads, tick)], kept)
        return Assessment([self._finding(f"broker {broker}", [broker], loads, tick) for broker in slow], kept)

    def _finding(self, subject: str, slow: Sequence[int], loads: MinuteLoads, tick: RuleInputs) -> Finding:
        flushes = {broker: loads.by_broker[broker][0].flush_p999_s for broker in slow}
        return Finding(
            kind=self.kind,
            subject=subject,
            severity=Severity.WARNING,
            summary=_summary(subject, slow, loads, flushes[slow[0]]),
            evidence=SlowBrokerEvidence(
                broker_id=slow[0] if subject != _MANY else None,
                brokers=tuple(slow),
                slow_rounds=tuple(loads.slow_rounds[broker] for broker in slow),
                flush_p999_s=tuple(flushes.values()),
                minute_tick_ms=loads.tick_ms,
            ),
            recommendation=tick.recommender.inspect_slow(slow if subject != _MANY else ()),
            hold_s=tick.settings.slow_broker_s,
            weight=float(max(loads.slow_rounds[broker] for broker in slow)),
        )


def _summary(subject: str, slow: Sequence[int], loads: MinuteLoads, flush_s: float | None) -> str:
    if subject == _MANY:
        names = join_names([str(broker) for broker in slow], most=10)
        return f"Log flushes are slow on {len(slow)} of {len(loads.by_broker)} brokers at once ({names})"
    took = "unknown in the last minute" if flush_s is None else f"up to {flush_s:.1f} s (99.9th percentile)"
    minutes = loads.slow_rounds[slow[0]]
    return f"Broker {slow[0]} is slow: its log flushes take {took}, and it was slow in {minutes} minutes more than not"
