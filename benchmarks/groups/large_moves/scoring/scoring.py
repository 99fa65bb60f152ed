"""Score of a scene: true, false and doubled alerts, and causes without an alert."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from benchmarks.groups.large_moves.scoring.truth import Cause, PrintedAlert


@dataclass(frozen=True)
class ScoredAlert:
    """One alert that paged.

    Attributes:
        announcements: its announcements that page, in order.
        cause: name of its cause; None if there is none.
        wrong: reason why it is false; None if it is true.
    """

    announcements: tuple[PrintedAlert, ...]
    cause: str | None
    wrong: str | None

    @property
    def first(self) -> PrintedAlert:
        """Return the announcement that paged first."""
        return self.announcements[0]


@dataclass(frozen=True)
class Score:
    """Score of the alerts of a scene.

    Attributes:
        alerts: all alerts that paged, in order.
        missing: names of causes that were not announced in time with right numbers.
        doubled: alerts beyond the first of each cause.
    """

    alerts: tuple[ScoredAlert, ...]
    missing: tuple[str, ...]
    doubled: tuple[ScoredAlert, ...]


def score(causes: Sequence[Cause], announcements: Sequence[PrintedAlert]) -> Score:
    """Return the score of a scene.

    An alert is true if each of its announcements that page is about a cause of that time and has the right numbers. A
    cause is missing if no announcement of a new or active alert reports it in time. Each alert counts for one cause:
    among those that its first announcement may be about, the one with the fewest alerts. So an alert with its own cause
    is not doubled.

    Args:
        causes: all causes of the scene, the most important first.
        announcements: all firing events, in order.
    """
    pages = [one for one in announcements if one.is_page]
    by_alert: dict[str, list[PrintedAlert]] = defaultdict(list)
    for one in pages:
        by_alert[one.alert_id].append(one)
    alerts_by_cause: dict[int, list[ScoredAlert]] = defaultdict(list)
    alerts = []
    for own in by_alert.values():
        cause = _cause_of(own[0], causes, alerts_by_cause)
        first_problem = next((wrong for one in own if (wrong := _problem(one, causes)) is not None), None)
        scored = ScoredAlert(tuple(own), cause.name if cause else None, first_problem)
        alerts.append(scored)
        if cause is not None:
            alerts_by_cause[id(cause)].append(scored)
    missing = [one.name for one in causes if one.required and not any(one.announced_by(page) for page in pages)]
    doubled = [scored for several in alerts_by_cause.values() for scored in several[1:]]
    return Score(tuple(alerts), tuple(missing), tuple(doubled))


def _cause_of(
    first: PrintedAlert, causes: Sequence[Cause], alerts_by_cause: dict[int, list[ScoredAlert]]
) -> Cause | None:
    possible = [cause for cause in causes if cause.claim_of(first) is not None]
    return min(possible, key=lambda cause: len(alerts_by_cause.get(id(cause), ())), default=None)


def _problem(announcement: PrintedAlert, causes: Sequence[Cause]) -> str | None:
    """Return what is wrong with an announcement; None if it is right."""
    claims = [claim for cause in causes if (claim := cause.claim_of(announcement)) is not None]
    if not claims:
        return "nothing of the kind was wrong then"
    wrong = [claim.check(announcement) for claim in claims]
    return None if None in wrong else wrong[0]
