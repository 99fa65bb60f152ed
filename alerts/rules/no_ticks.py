"""Ticks that stay away: what is known of it, and where to look, the likeliest first."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import NOTHING
from alerts.text.formatting import clock, format_duration
from schemas.alerts import AlertKind, Finding, Severity

TICKS = "ticks"
# A batch takes a second or two; one that takes longer than this is no chance of the moment.
_LONG_BATCH_S = 5.0

_COLLECTOR = "the collector: does it run, and does it reach the brokers (its log, `headroom check`)"
_TOPIC = "the cluster that holds the ticks topic: is it within reach of both"
_MACHINE = "the process that judges (`headroom watch`): is its machine overloaded"


def is_missing(away_s: float, limit_s: float, batch_s: float | None) -> bool:
    """Return whether ticks stay away.

    Args:
        away_s: for how long none was judged, seconds.
        limit_s: for how long one may stay away, seconds.
        batch_s: for how long a batch of ticks has been worked on, seconds; None: none is.
    """
    # What is worked on has come. That gets as long by itself: the first rows of a large move take a busy machine ten
    # seconds, and nobody can do anything about those.
    is_judged = batch_s is not None and _LONG_BATCH_S <= batch_s < limit_s
    return away_s >= (2 * limit_s if is_judged else limit_s)


@dataclass(frozen=True)
class MissingTicks:
    """What the desk knows of a cluster whose ticks stay away.

    Attributes:
        cluster: name of the cluster.
        tick_ms: time of the last tick that was judged; None: none was since the start.
        judged_ms: when it was judged; without one, the start.
        now_ms: now.
        batch_s: for how long a batch of ticks has been worked on; None: none is.
        old_s: a tick judged this long after its time is an old one.
    """

    cluster: str
    tick_ms: int | None
    judged_ms: int
    now_ms: int
    batch_s: float | None
    old_s: float

    @property
    def late_s(self) -> float | None:
        """Return how long after its time the last tick was judged, if that was late; None: in time, or none was."""
        late_s = 0.0 if self.tick_ms is None else (self.judged_ms - self.tick_ms) / 1000
        return late_s if late_s > self.old_s else None

    @property
    def long_batch_s(self) -> float | None:
        """Return for how long a batch has been worked on, if that is long; None: it is not, or there is none."""
        return self.batch_s if self.batch_s is not None and self.batch_s >= _LONG_BATCH_S else None

    def finding(self, recommender: Recommender) -> Finding:
        """Return that no verdict is possible, with what is known and what to look at, the likeliest first."""
        return Finding(
            kind=AlertKind.NO_DATA,
            subject=TICKS,
            severity=Severity.CRITICAL,
            summary=f"No verdict on any move: {self._last()}{self._cause()}",
            evidence=self._evidence(),
            recommendation=recommender.nothing(self._where(), "check"),
            hold_s=0.0,
        )

    def _last(self) -> str:
        if self.tick_ms is None:
            since = format_duration((self.now_ms - self.judged_ms) / 1000)
            return (
                f"no tick of cluster {self.cluster} was judged since the start at {clock(self.judged_ms)}, {since} ago"
            )
        ago = format_duration(max(0, self.now_ms - self.tick_ms) / 1000)
        return f"the last tick of cluster {self.cluster} that was judged is of {clock(self.tick_ms)}, {ago} ago"

    def _cause(self) -> str:
        if self.long_batch_s is not None:
            return f"; ticks have come, but their batch has been worked on for {format_duration(self.long_batch_s)}"
        if self.late_s is not None:
            return f"; that one was judged {format_duration(self.late_s)} late"
        return ""

    def _where(self) -> str:
        if self.long_batch_s is not None:
            places = [_MACHINE, _TOPIC, _COLLECTOR]
        elif self.late_s is not None:
            places = [f"{_MACHINE}, or is its clock not the collector's", _TOPIC, _COLLECTOR]
        else:
            places = [_COLLECTOR, _TOPIC, _MACHINE]
        return "look, in this order, at " + "; ".join(f"({i}) {place}" for i, place in enumerate(places, 1))

    def _evidence(self) -> dict[str, Any]:
        return {
            **NOTHING,
            "last_tick_ms": self.tick_ms,
            "last_judged_ms": None if self.tick_ms is None else self.judged_ms,
            "silent_ms": None if self.tick_ms is None else self.now_ms - self.tick_ms,
            "batch_s": self.batch_s,
        }
