"""First expected finish of a cluster's move, across ticks: the state of rule ``eta_slipping``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from headroom.alerts.inputs.throttle_status import ThrottleStatus
from headroom.schemas.keys import BrokerRole, Role

# Rates are unsteady at the start of a move and after a throttle change: the latest finish within this time counts.
_SETTLE_MS = 30_000
# By broker and role: the throttle and the number of moving partitions that an expectation was made for.
_Terms = Mapping[BrokerRole, "tuple[float | None, int]"]


@dataclass(frozen=True)
class FirstEta:
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
    """Remembers the first expectation of a cluster's move.

    Nothing is stored: after a restart the next expectation is the first one.
    """

    def __init__(self) -> None:
        self._expected: FirstEta | None = None

    def end_move(self) -> None:
        """Forget the expectation, because nothing moves any more."""
        self._expected = None

    def first_eta(self, tick_ms: int, finish_ms: float, busy: Sequence[ThrottleStatus]) -> FirstEta:
        """Return the first expectation of the move, which may be that of this tick.

        Args:
            tick_ms: time of the tick, epoch milliseconds.
            finish_ms: finish that this tick expects, epoch milliseconds.
            busy: every broker and role with replicas that catch up.
        """
        terms = {s.load.broker_role: (s.load.throttle_bytes_per_s, s.moving_partitions) for s in busy}
        expected = self._expected
        if expected is None or _needs_new_expectation(expected.terms, terms):
            expected = FirstEta(tick_ms, finish_ms, terms)
        elif tick_ms - expected.made_ms <= _SETTLE_MS:
            expected = replace(expected, finish_ms=max(expected.finish_ms, finish_ms))
        self._expected = replace(expected, terms=terms)
        return expected

    def shift_clock(self, by_ms: int, but_made_ms: int | None = None) -> None:
        """Shift the expectation after the collector's clock was set.

        Args:
            by_ms: milliseconds that the clock was set by; negative: back.
            but_made_ms: tick of the new clock; an expectation made at it is not shifted.
        """
        expected = self._expected
        if expected is not None and expected.made_ms != but_made_ms:
            self._expected = replace(expected, made_ms=expected.made_ms + by_ms, finish_ms=expected.finish_ms + by_ms)


def _needs_new_expectation(before: _Terms, now: _Terms) -> bool:
    """Return whether a throttle has changed, or a destination has more moving partitions than before."""
    changed = any(now[status][0] != before[status][0] for status in before.keys() & now.keys())
    # Leaders also gain partitions by a leader switch, which is a reason for a late finish and not a new move.
    destinations = [status for status in now if status[1] is Role.FOLLOWER]
    return changed or any(now[status][1] > before.get(status, (None, 0))[1] for status in destinations)
