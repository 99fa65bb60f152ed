"""What a plan said of a move, what came, and whether both agree."""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum

from headroom.operations.plans.result import PlanResult
from headroom.schemas.errors import HeadroomError


class SaidEnd(str, Enum):
    """What a plan says of the end of a move.

    Attributes:
        FITS: it ends, within the printed time.
        NEVER: it never ends under the throttle.
        AWAITS_BROKER: it ends only when a broker that is down is back.
        AWAITS_LEADER: it ends only after the leader's next record or upload.
        REFUSED: it cannot be carried out.
        UNKNOWN: what it depends on cannot be read.
    """

    FITS = "fits"
    NEVER = "never ends"
    AWAITS_BROKER = "ends only when a broker is back"
    AWAITS_LEADER = "ends only after the leader's next record"
    REFUSED = "cannot be carried out"
    UNKNOWN = "unknown"


@dataclass(frozen=True)
class Came:
    """What became of a move.

    Attributes:
        refused: why Kafka refused it; None if it did not.
        ended_s: time from its request to its end, seconds; None if it did not end while it was watched.
        watched_s: how long it was watched, seconds.
        ended_later: whether it ended after what it waited for was there; None if that was not tried.
    """

    refused: str | None = None
    ended_s: float | None = None
    watched_s: float = 0.0
    ended_later: bool | None = None

    def __str__(self) -> str:
        """Return it as text."""
        if self.refused is not None:
            return f"refused by Kafka: {self.refused}"
        if self.ended_s is not None:
            return f"ended after {self.ended_s:.1f} s"
        later = {None: "", True: ", ended later", False: ", nor later"}[self.ended_later]
        return f"not ended within {self.watched_s:.0f} s{later}"


def said_of(result: PlanResult | HeadroomError) -> SaidEnd:
    """Return what a plan says, as the output of ``headroom plan`` does."""
    if isinstance(result, HeadroomError):
        return SaidEnd.REFUSED
    if result.waits_for_dead:
        return SaidEnd.AWAITS_BROKER
    if result.awaiting_leader:
        return SaidEnd.AWAITS_LEADER
    time = result.estimate.time
    if result.estimate.is_enough is False or (time is not None and time.known and time.finish is None):
        return SaidEnd.NEVER
    return SaidEnd.FITS if result.fits else SaidEnd.UNKNOWN


def what_is_wrong(said: SaidEnd, within_s: float | None, came: Came) -> str | None:
    """Return in which way a plan was wrong; None if it was not.

    Args:
        said: what it said of the end.
        within_s: longest time in which a move that fits may end, seconds; None if the plan printed none.
        came: what came.
    """
    ended = came.ended_s is not None
    if said is SaidEnd.REFUSED:
        return "it was carried out" if ended else None
    if came.refused is not None:
        return f"Kafka refused it: {came.refused}"
    if said is SaidEnd.FITS:
        if not ended:
            return f"it did not end within {came.watched_s:.0f} s"
        late = within_s is not None and (came.ended_s or 0.0) > within_s
        return f"it ended after {came.ended_s:.0f} s, not within {within_s:.0f} s" if late else None
    if said in (SaidEnd.NEVER, SaidEnd.AWAITS_BROKER, SaidEnd.AWAITS_LEADER) and ended:
        return f"it ended after {came.ended_s:.0f} s"
    if came.ended_later is False:
        return "it did not end either once what it waited for was there"
    return None
