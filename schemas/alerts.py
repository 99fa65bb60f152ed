"""Alert events and their vocabulary, shared by verdicts, rules and receivers."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Verdict(str, Enum):
    """Effect of a throttle on the out-of-sync replicas behind it.

    Attributes:
        IDLE: no replica is out of sync, so the throttle limits nothing.
        CATCHING_UP: the throttle exceeds the required rate; replicas catch up.
        SLOW: the throttle does not exceed the required rate, but replicas still gain. No quota cuts a response, so they
            get at least one response per quota window.
        LOSING: the throttle exceeds the in-sync traffic, but not the required rate; the lag grows.
        STARVED: the throttle is below the in-sync traffic; replicas get nothing.
        UNTHROTTLED: no rate and list limit the replicas.
        NO_DATA: an input of the verdict is unknown.
    """

    IDLE = "idle"
    CATCHING_UP = "catching_up"
    SLOW = "slow"
    LOSING = "losing"
    STARVED = "starved"
    UNTHROTTLED = "unthrottled"
    NO_DATA = "no_data"


# Throttles under which replicas never get in sync.
TOO_LOW = frozenset({Verdict.STARVED, Verdict.LOSING})
# Throttles that do not exceed the required rate; under a slow one replicas still gain.
BELOW_REQUIRED = TOO_LOW | {Verdict.SLOW}


class AlertKind(str, Enum):
    """Kind of an alert: the condition that it reports."""

    THROTTLE_BELOW_LEADER_WRITE = "throttle_below_leader_write"
    THROTTLE_BELOW_INBOUND = "throttle_below_inbound"
    THROTTLE_LEFT_BEHIND = "throttle_left_behind"
    THROTTLE_AT_RISK = "throttle_at_risk"
    LEADER_UNTHROTTLED = "leader_unthrottled"
    REASSIGNMENT_WITHOUT_THROTTLE = "reassignment_without_throttle"
    REASSIGNMENT_STALLED = "reassignment_stalled"
    ETA_SLIPPING = "eta_slipping"
    ISR_SHRINK_DURING_MOVE = "isr_shrink_during_move"
    UNDER_REPLICATED = "under_replicated"
    LEADER_IMBALANCE = "leader_imbalance"
    PREFERRED_LEADER_UNAVAILABLE = "preferred_leader_unavailable"
    LOAD_OUT_OF_BAND = "load_out_of_band"
    HOT_BROKER = "hot_broker"
    SLOW_BROKER = "slow_broker"
    CAPACITY_AT_RISK = "capacity_at_risk"
    MIGRATION_RECORDS_LOST = "migration_records_lost"
    MIGRATION_READER_OVERTAKEN = "migration_reader_overtaken"
    MIGRATION_UNROUTED_WRITES = "migration_unrouted_writes"
    MIGRATION_SWITCH_OFF_PLAN = "migration_switch_off_plan"
    MIGRATION_ACKS_AT_RISK = "migration_acks_at_risk"
    MIGRATION_MIRROR_BEHIND = "migration_mirror_behind"
    MIGRATION_ORIGIN_REMOVABLE = "migration_origin_removable"
    NO_DATA = "no_data"
    STORE_UNWRITABLE = "store_unwritable"


class AlertState(str, Enum):
    """State of an alert in its lifecycle."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"

    @property
    def rank(self) -> int:
        """Return the position in the order of states, in which an alert may pass several in one tick."""
        return list(AlertState).index(self)


class Severity(str, Enum):
    """Urgency of an alert."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return the position in the order of severity; 0 is the most severe."""
        return list(Severity).index(self)

    @classmethod
    def of(cls, stored: str) -> Severity:
        """Return the severity of a stored event; an unknown word, as of a newer version, counts as critical."""
        return cls(stored) if stored in [severity.value for severity in cls] else cls.CRITICAL


@dataclass(frozen=True)
class AlertEvent:
    """One state change of one alert: a row of ``alerts/events``, with the columns of that table."""

    alert_id: str
    kind: str
    severity: str
    state: str
    cluster: str
    subject: str
    summary: str
    evidence: str
    recommendation: str
    tick_ms: int
    event_ms: int

    def as_objects(self) -> dict[str, Any]:
        """Return the event for JSON, with evidence and recommendation as objects; None if they are damaged."""
        parsed = {"evidence": stored_object(self.evidence), "recommendation": stored_object(self.recommendation)}
        return asdict(self) | parsed


def stored_object(text: str) -> dict[str, Any] | None:
    """Return the JSON object of a stored column; None if the row is damaged, so that it is none.

    Numbers that JSON does not have are unknown.
    """
    try:
        value = json.loads(text, parse_constant=lambda _: None)
    except (TypeError, ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None
