"""Whether a move keeps to the finish that was expected of it first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from alerts.inputs.throttle_status import ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import NOTHING
from alerts.rules.throttle_below_required import Assessment
from alerts.text.formatting import clock, format_duration
from planning.throttles.load import BrokerRole
from schemas.alerts import AlertKind, Finding, Role, Severity
from schemas.config import AlertSettings

# Rates are unsteady at the start of a move, and after a change of its throttle: the latest finish of this long counts.
_SETTLE_MS = 30_000
# Of a move that is nearly done, a share of what is left would be seconds.
_LEAST_SLIP_S = 60.0
_SUBJECT = "moves"
# By side, what an expectation was made for: the throttle, and how many partitions move.
_Terms = Mapping[BrokerRole, "tuple[float | None, int]"]


@dataclass(frozen=True)
class _FirstEta:
    """What was expected first.

    Attributes:
        made_ms: tick of the first expectation.
        finish_ms: expected finish.
        terms: what moved at the last tick, and how fast it might; with more, or otherwise, it holds no longer.
    """

    made_ms: int
    finish_ms: float
    terms: _Terms


class EtaTracker:
    """The finish that was expected of a cluster's running move, first and now.

    It knows what it saw itself: after a restart the next expectation is the first one.
    """

    def __init__(self) -> None:
        self._promise: _FirstEta | None = None

    def observe(
        self, tick_ms: int, sides: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
    ) -> Assessment:
        """Return a finding if the finish that a tick lets expect is much later than it was expected first.

        Of a move without an expected finish it is held: there is an alert of another kind, or only just the first tick.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            sides: every broker and role of the tick.
            settings: section ``[alerts]``.
            recommender: makes recommendations.
        """
        busy = [side for side in sides if side.demand.limited_replicas + side.demand.free_replicas]
        etas = [side.eta_s for side in busy if side.eta_s is not None]
        if not busy:
            self._promise = None
            return Assessment()
        if len(etas) < len(busy):
            return Assessment(held={(AlertKind.ETA_SLIPPING, _SUBJECT)})
        finish_ms = tick_ms + max(etas) * 1000
        promise = self._kept(tick_ms, finish_ms, busy)
        left_s = (promise.finish_ms - promise.made_ms) / 1000
        late_s = (finish_ms - promise.finish_ms) / 1000
        if late_s <= max(_LEAST_SLIP_S, settings.slip_ratio * left_s):
            return Assessment()
        return Assessment([_finding(promise, finish_ms, late_s, settings, recommender)])

    def move(self, by_ms: int, but_made_ms: int | None = None) -> None:
        """Take up that the clock that ticks have their times from was set.

        Args:
            by_ms: by how many milliseconds; negative: back.
            but_made_ms: tick of the new clock: what was expected at it is of the new clock already.
        """
        promise = self._promise
        if promise is not None and promise.made_ms != but_made_ms:
            self._promise = replace(promise, made_ms=promise.made_ms + by_ms, finish_ms=promise.finish_ms + by_ms)

    def _kept(self, tick_ms: int, finish_ms: float, busy: Sequence[ThrottleStatus]) -> _FirstEta:
        terms = {(s.broker, s.role): (s.demand.throttle_bytes_per_s, s.moving_partitions) for s in busy}
        promise = self._promise
        if promise is None or _wider(promise.terms, terms):
            promise = _FirstEta(tick_ms, finish_ms, terms)
        elif tick_ms - promise.made_ms <= _SETTLE_MS:
            promise = replace(promise, finish_ms=max(promise.finish_ms, finish_ms))
        self._promise = replace(promise, terms=terms)
        return promise


def _wider(before: _Terms, now: _Terms) -> bool:
    """Return whether a throttle has changed, or a destination gets more: partitions that are done are no news.

    A leader gets more by a switch too, and it is that which may make the finish late.
    """
    changed = any(now[side][0] != before[side][0] for side in before.keys() & now.keys())
    destinations = [side for side in now if side[1] is Role.FOLLOWER]
    return changed or any(now[side][1] > before.get(side, (None, 0))[1] for side in destinations)


def _finding(
    promise: _FirstEta, finish_ms: float, late_s: float, settings: AlertSettings, recommender: Recommender
) -> Finding:
    first, now = clock(round(promise.finish_ms)), clock(round(finish_ms))
    return Finding(
        kind=AlertKind.ETA_SLIPPING,
        subject=_SUBJECT,
        severity=Severity.INFO,
        summary=(
            f"The move is expected to finish at {now}, {format_duration(late_s)} later than was "
            f"expected first ({first})"
        ),
        evidence={
            **NOTHING,
            "expected_since_ms": promise.made_ms,
            "first_finish_ms": round(promise.finish_ms),
            "finish_ms": round(finish_ms),
            "late_s": late_s,
        },
        recommendation=recommender.nothing(
            "compare what leaders write now with what they wrote at the start; a higher throttle shortens the rest"
        ),
        hold_s=settings.hold_s,
    )
