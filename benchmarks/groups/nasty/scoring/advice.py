"""Advice, followed as printed: does each line run, does the alert resolve as promised, is any rate lowered?"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from benchmarks.groups.nasty.scoring.truth import Announcement
from benchmarks.groups.nasty.stage.shell import RanLine
from planning.finish.quota import WINDOW_S
from schemas.alerts import Role

# Broker and role to bytes per second; None if no rate is set, so that nothing is limited.
RatesInForce = Mapping[tuple[int, Role], "float | None"]
# What a person does, not a command.
BY_HAND = frozenset({"restore_broker", "inspect_broker"})
# Sets a rate where none was, as it says.
_SETS_A_FIRST_RATE = frozenset({"set_rate"})


@dataclass
class FollowedAdvice:
    """Advice that was followed.

    Attributes:
        announcement: the last one before it was followed.
        way: headroom, kafka or person.
        lines: those that were run; none if a person acted.
        before: rates in force before it.
        after: rates in force after it.
        done_s: when the last line had ended, or Kafka itself showed that what a person did has worked.
        limit_s: the alert has to resolve within this time from ``done_s``.
        resolved_s: when it resolved; None if it did not within the limit.
        promised_finish_s: time to the end of the move that the alert promised; None: it promised none.
        finished_s: when the move had ended; None: it was not waited for, or did not.
    """

    announcement: Announcement
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
        """Return whether the alert resolved in time; one that did so before the last line had ended is in time too."""
        return self.resolved_s is not None and self.resolved_s <= self.done_s + self.limit_s

    @property
    def lowered(self) -> list[tuple[int, Role]]:
        """Return the brokers and roles whose rate is lower than before; of no rate, any rate is lower."""
        action = self.announcement.recommendation.get("action")
        return lowered(self.before, self.after, first_rate=action in _SETS_A_FIRST_RATE)


def lowered(before: RatesInForce, after: RatesInForce, first_rate: bool = False) -> list[tuple[int, Role]]:
    """Return the brokers and roles whose rate was lowered.

    Args:
        before: rates in force before.
        after: rates in force after; one that is missing could not be read.
        first_rate: whether a rate may be set where there was none.
    """
    known = [key for key in before if key in after]
    if first_rate:
        known = [key for key in known if before[key] is not None]
    return sorted(key for key in known if _limit(after[key]) < _limit(before[key]))


def _limit(rate: float | None) -> float:
    return math.inf if rate is None else rate


def resolve_limit_s(resolve_s: float, interval_s: float) -> float:
    """Return how long an alert may take to resolve once its remedy is in force.

    The condition ends with the next tick, or when what the quota counted before has left its window; it has to stay
    away for ``alerts.resolve_s``.

    Args:
        resolve_s: ``alerts.resolve_s``.
        interval_s: time from one tick to the next.
    """
    return resolve_s + interval_s + WINDOW_S


class CommandRotation:
    """Chooses the lines to run: Headroom's command and Kafka's own in turn, kind by kind."""

    def __init__(self) -> None:
        self._counts: dict[str, int] = {}

    def lines(self, announcement: Announcement) -> tuple[str, Sequence[str]]:
        """Return which way is taken, headroom or kafka, and the lines to run.

        The first command on the first, third, ... occurrence of a kind, the others on the second, fourth, ...; where
        there is one command, that one always.
        """
        commands: Sequence[str] = announcement.recommendation.get("commands") or []
        count = self._counts[announcement.kind] = self._counts.get(announcement.kind, 0) + 1
        chosen = commands[:1] if count % 2 or len(commands) < 2 else commands[1:]
        way = "headroom" if chosen and chosen[0].startswith("headroom ") else "kafka"
        return way, chosen
