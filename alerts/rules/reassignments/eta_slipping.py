"""Rule ``eta_slipping``: a reassignment is expected to finish much later than first expected."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from alerts.inputs.throttle_status import ThrottleStatus
from alerts.recommendations.recommender import Recommender
from alerts.rules.evidence import EMPTY_EVIDENCE
from alerts.rules.throttles.throttle_below_required import Assessment
from alerts.text.formatting import clock, format_duration
from planning.throttles.load import BrokerRole
from schemas.alerts import AlertKind, Finding, Role, Severity
from schemas.config import AlertSettings

# Rates are unsteady at the start of a move and after a throttle change: the latest finish within this time counts.
_SETTLE_MS = 30_000
# Near the end of a move, a fraction of the remaining time would be seconds.
_LEAST_SLIP_S = 60.0
_SUBJECT = "moves"
# By broker and role: the throttle and the number of moving partitions that an expectation was made for.
_Terms = Mapping[BrokerRole, "tuple[float | None, int]"]


@dataclass(frozen=True)
class _FirstEta:
    """First expected finish of a move.

    Attributes:
        made_ms: tick of the first expectation.
        finish_ms: expected finish, epoch milliseconds.
        terms: throttles and moving partitions at the last tick; if they change, there is a new expectation.
    """

    made_ms: int
    finish_ms: float
    terms: _Terms


class EtaTracker:
    """Compares the expected finish of a cluster's move with the first expectation.

    Nothing is stored: after a restart the next expectation is the first one.
    """

    def __init__(self) -> None:
        self._expected: _FirstEta | None = None

    def evaluate(
        self, tick_ms: int, statuses: Sequence[ThrottleStatus], settings: AlertSettings, recommender: Recommender
    ) -> Assessment:
        """Return a finding if the expected finish is much later than the first expectation.

        Without an expected finish the alert keeps firing: another rule has a finding, or this is the first tick.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            statuses: every broker and role of the tick.
            settings: section ``[alerts]``.
            recommender: makes recommendations.
        """
        busy = [status for status in statuses if status.load.limited_replicas + status.load.free_replicas]
        etas = [status.eta_s for status in busy if status.eta_s is not None]
        if not busy:
            self._expected = None
            return Assessment()
        if len(etas) < len(busy):
            return Assessment(keep_firing={(AlertKind.ETA_SLIPPING, _SUBJECT)})
        finish_ms = tick_ms + max(etas) * 1000
        expected = self._updated_expectation(tick_ms, finish_ms, busy)
        left_s = (expected.finish_ms - expected.made_ms) / 1000
        late_s = (finish_ms - expected.finish_ms) / 1000
        if late_s <= max(_LEAST_SLIP_S, settings.slip_ratio * left_s):
            return Assessment()
        return Assessment([_finding(expected, finish_ms, late_s, settings, recommender)])

    def shift_clock(self, by_ms: int, but_made_ms: int | None = None) -> None:
        """Shift the expectation after the collector's clock was set.

        Args:
            by_ms: milliseconds that the clock was set by; negative: back.
            but_made_ms: tick of the new clock; an expectation made at it is not shifted.
        """
        expected = self._expected
        if expected is not None and expected.made_ms != but_made_ms:
            self._expected = replace(expected, made_ms=expected.made_ms + by_ms, finish_ms=expected.finish_ms + by_ms)

    def _updated_expectation(self, tick_ms: int, finish_ms: float, busy: Sequence[ThrottleStatus]) -> _FirstEta:
        terms = {(s.broker, s.role): (s.load.throttle_bytes_per_s, s.moving_partitions) for s in busy}
        expected = self._expected
        if expected is None or _needs_new_expectation(expected.terms, terms):
            expected = _FirstEta(tick_ms, finish_ms, terms)
        elif tick_ms - expected.made_ms <= _SETTLE_MS:
            expected = replace(expected, finish_ms=max(expected.finish_ms, finish_ms))
        self._expected = replace(expected, terms=terms)
        return expected


def _needs_new_expectation(before: _Terms, now: _Terms) -> bool:
    """Return whether a throttle has changed, or a destination has more moving partitions than before."""
    changed = any(now[status][0] != before[status][0] for status in before.keys() & now.keys())
    # Leaders also gain partitions by a leader switch, which is a reason for a late finish and not a new move.
    destinations = [status for status in now if status[1] is Role.FOLLOWER]
    return changed or any(now[status][1] > before.get(status, (None, 0))[1] for status in destinations)


def _finding(
    expected: _FirstEta, finish_ms: float, late_s: float, settings: AlertSettings, recommender: Recommender
) -> Finding:
    first, now = clock(round(expected.finish_ms)), clock(round(finish_ms))
    return Finding(
        kind=AlertKind.ETA_SLIPPING,
        subject=_SUBJECT,
        severity=Severity.INFO,
        summary=(
            f"The move is expected to finish at {now}, {format_duration(late_s)} later than was "
            f"expected first ({first})"
        ),
        evidence={
            **EMPTY_EVIDENCE,
            "expected_since_ms": expected.made_ms,
            "first_finish_ms": round(expected.finish_ms),
            "finish_ms": round(finish_ms),
            "late_s": late_s,
        },
        recommendation=recommender.no_throttle_change(
            "compare what leaders write now with what they wrote at the start; a higher throttle shortens the rest"
        ),
        hold_s=settings.hold_s,
    )
