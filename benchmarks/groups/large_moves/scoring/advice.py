"""Followed advice: exit codes of its lines, time until the alert resolved, and lowered rates."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.groups.large_moves.scoring.truth import PrintedAlert
from benchmarks.groups.large_moves.stage.shell import RanLine
from headroom.planning.quotas.samples import WINDOW_S
from headroom.schemas.keys import Role

# Broker and role to bytes per second; None if no rate is set, so that nothing is limited.
RatesInForce = Mapping[tuple[int, Role], "float | None"]
# Actions of an operator without a command.
BY_HAND = frozenset({"restore_broker", "inspect_broker"})
# Actions that are meant to set a rate where there was none.
_SETS_A_FIRST_RATE = frozenset({"set_rate"})


@dataclass
class FollowedAdvice:
    """Advice that was followed.

    Attributes:
        announcement: last announcement before it was followed.
        way: headroom, kafka or person.
        lines: lines that were run; none if a person acted.
        before: rates in force before it.
        after: rates in force after it.
        done_s: end of the last line, or time at which Kafka showed that a manual repair had worked, monotonic seconds.
        limit_s: time from ``done_s`` within which the alert has to resolve.
        resolved_s: time at which it resolved, monotonic seconds; None if it did not within the limit.
        promised_finish_s: predicted time to the end of the move, seconds; None without prediction.
        finished_s: end of the move, monotonic seconds; None if it was not awaited or did not come.
    """

    announcement: PrintedAlert
    way: str
    lines: list[RanLine] = field(default_factory=list)
    before: RatesInForce = field(default_factory=dict)
    after: RatesInForce = field(default_factory=dict)
    done_s: float = 0.0
    limit_s: float = 0.0
    resolved_s: float | None = None
    promised_finish_s: float | None = None
    finished_s: float | None = None

    @property
    def resolves(self) -> bool:
        """Return whether the alert resolved in time; before the end of the last line also counts."""
        return self.resolved_s is not None and self.resolved_s <= self.done_s + self.limit_s

    def is_repaged(self, announcements: Sequence[PrintedAlert]) -> bool:
        """Return whether an alert of the same kind and subject fired after the advice was followed."""
        first = self.announcement
        return any(
            one.is_page
            and (one.kind, one.subject) == (first.kind, first.subject)
            and one.alert_id != first.alert_id
            and one.at_s > self.done_s
            for one in announcements
        )

    @property
    def lowered(self) -> list[tuple[int, Role]]:
        """Return the brokers and roles with a lower rate than before. A first rate counts as lower."""
        action = self.announcement.recommendation.get("action")
        return lowered(self.before, self.after, first_rate=action in _SETS_A_FIRST_RATE)


def lowered(before: RatesInForce, after: RatesInForce, first_rate: bool = False) -> list[tuple[int, Role]]:
    """Return the brokers and roles whose rate was lowered.

    Args:
        before: rates in force before.
        after: rates in force after; a missing one could not be read.
        first_rate: whether a rate may be set where there was none.
    """
    known = [key for key in before if key in after]
    if first_rate:
        known = [key for key in known if before[key] is not None]
    return sorted(key for key in known if _limit(after[key]) < _limit(before[key]))


def _limit(rate: float | None) -> float:
    return math.inf if rate is None else rate


def resolve_limit_s(resolve_s: float, interval_s: float) -> float:
    """Return the maximum time for an alert to resolve once its remedy is in force.

    The condition ends with the next tick, or when earlier traffic has left the quota window. Then it has to be absent
    for ``alerts.resolve_s``.

    Args:
        resolve_s: ``alerts.resolve_s``.
        interval_s: interval of ticks.
    """
    return resolve_s + interval_s + WINDOW_S


class CommandRotation:
    """Selects the lines to run: Headroom's command and Kafka's commands take turns per kind of alert."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def lines(self, announcement: PrintedAlert) -> tuple[str, Sequence[str]]:
        """Return the way (headroom or kafka) and the lines to run.

        Odd occurrences of a kind use the first command, even ones all others. A single command is always used.
        """
        commands: Sequence[str] = announcement.recommendation.get("commands") or []
        count = self._counts[announcement.kind] = self._counts.get(announcement.kind, 0) + 1
        chosen = commands[:1] if count % 2 or len(commands) < 2 else commands[1:]
        way = "headroom" if chosen and chosen[0].startswith("headroom ") else "kafka"
        return way, chosen
