"""Findings and alert events: the words that the verdicts, rules and receivers share."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from enum import Enum
from typing import Any


class Role(str, Enum):
    """Which of a broker's two throttles is meant."""

    LEADER = "leader"
    FOLLOWER = "follower"


class Verdict(str, Enum):
    """What a throttle means for the replicas that are out of sync behind it.

    Attributes:
        IDLE: none is out of sync, so the throttle holds nobody back.
        CATCHING_UP: it exceeds what is required: they get there.
        SLOW: it does not exceed what is required, but they gain all the same: no quota cuts a response, so they get at
            least one in every window of the quota.
        LOSING: it exceeds the in-sync traffic but not what is required: their lag grows.
        STARVED: it is below the in-sync traffic: they get nothing.
        UNTHROTTLED: no rate and list limits them.
        NO_DATA: something that the verdict needs is not known.
    """

    IDLE = "idle"
    CATCHING_UP = "catching_up"
    SLOW = "slow"
    LOSING = "losing"
    STARVED = "starved"
    UNTHROTTLED = "unthrottled"
    NO_DATA = "no_data"


class AlertKind(str, Enum):
    """What an alert is about."""

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
    NO_DATA = "no_data"
    STORE_UNWRITABLE = "store_unwritable"


class AlertState(str, Enum):
    """Where an alert stands."""

    PENDING = "pending"
    FIRING = "firing"
    RESOLVED = "resolved"


class Severity(str, Enum):
    """How soon a person has to look."""

    CRITICAL = "critical"
    WARNING = "warning"
    INFO = "info"

    @property
    def rank(self) -> int:
        """Return its place, 0 for the gravest."""
        return list(Severity).index(self)


@dataclass(frozen=True)
class Finding:
    """One thing that is wrong in one tick.

    Attributes:
        kind: what it is about.
        subject: whom it is about; with cluster and kind it names the alert, so it holds no number that changes.
        severity: how soon a person has to look.
        summary: one sentence for a person.
        evidence: the numbers behind it, ready for JSON.
        recommendation: what puts it right, its values ready for JSON; it may be worked out only when it is read.
        hold_s: how long it must last before it fires; 0: at once.
        hold_of: what must last so long: one of the same kind and subject that says other here begins anew.
        cause: what makes it one with other findings of its cluster, of which one is told for all; empty: nothing.
        precedence: which of those is told: of the lowest, the gravest, then the one of the greatest weight.
        weight: see there.
        joins: whether it counts as told by an alert of its cause that fired without it; else it gets one of its own.
        affected: how many replicas or partitions it is about; 0: it does not say.
        continues: causes whose alert goes on while this is found, though what that was about first has ended.
    """

    kind: AlertKind
    subject: str
    severity: Severity
    summary: str
    evidence: dict[str, Any]
    recommendation: Mapping[str, Any]
    hold_s: float
    cause: str = ""
    precedence: int = 0
    weight: float = 0.0
    joins: bool = True
    affected: int = 0
    continues: tuple[str, ...] = ()
    hold_of: str = ""


@dataclass(frozen=True)
class AlertEvent:
    """One change of one alert's state: a row of ``alerts/events``, whose table tells the columns."""

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
        """Return the event with its evidence and recommendation as objects, ready for JSON."""
        parsed = {"evidence": json.loads(self.evidence), "recommendation": json.loads(self.recommendation)}
        return asdict(self) | parsed
