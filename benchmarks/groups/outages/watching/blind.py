"""How long nobody had a fresh verdict: gaps between the moments at which one came, less what is not Headroom's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise

# A tick that is older than the last by more than this is of a collector whose clock was set back.
_SET_BACK_S = 60.0


@dataclass(frozen=True)
class Span:
    """A time from one moment to another, in seconds of the monotonic clock."""

    from_s: float
    until_s: float

    @property
    def length_s(self) -> float:
        """Return how long it is, seconds."""
        return self.until_s - self.from_s

    def overlap_s(self, other: Span) -> float:
        """Return for how many seconds both last."""
        return max(0.0, min(self.until_s, other.until_s) - max(self.from_s, other.from_s))


@dataclass(frozen=True)
class Blind:
    """The longest time without a fresh verdict.

    Attributes:
        blind_s: its length beyond one interval of ticks and what Kafka needed in it, seconds.
        gap: all of it.
        kafka_s: what Kafka needed in it, seconds.
    """

    blind_s: float
    gap: Span
    kafka_s: float


def is_fresh(last_tick_s: float | None, tick_s: float) -> bool:
    """Return whether an evaluated tick is a new one: later than the last, or of a clock that was set back.

    Args:
        last_tick_s: time of the last one, epoch seconds; None: there was none.
        tick_s: time of this one.
    """
    return last_tick_s is None or tick_s > last_tick_s or tick_s < last_tick_s - _SET_BACK_S


def gaps(moments: Sequence[float], over: Span) -> list[Span]:
    """Return the times from one fresh verdict to the next, as far as they lie within a span or reach into it.

    Args:
        moments: when a fresh verdict came, ascending.
        over: the span; where no verdict came before it, it begins a gap, and its end ends the last one.
    """
    before = [at_s for at_s in moments if at_s <= over.from_s]
    within = [at_s for at_s in moments if over.from_s < at_s < over.until_s]
    edges = [before[-1] if before else over.from_s, *within, over.until_s]
    return [Span(from_s, until_s) for from_s, until_s in pairwise(edges)]


def blind(moments: Sequence[float], over: Span, interval_s: float, kafka: Iterable[Span]) -> Blind:
    """Return the longest time without a fresh verdict that is Headroom's own.

    Args:
        moments: when a fresh verdict came, ascending.
        over: from the fault to the recovery.
        interval_s: of ticks.
        kafka: times in which Kafka could take no tick. They do not overlap each other.
    """
    spans = list(kafka)

    def own(gap: Span) -> Blind:
        kafka_s = sum(gap.overlap_s(span) for span in spans)
        return Blind(max(0.0, gap.length_s - interval_s - kafka_s), gap, kafka_s)

    return max(map(own, gaps(moments, over)), key=lambda found: found.blind_s)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return spans that do not overlap each other and cover the same time."""
    found: list[Span] = []
    for span in sorted(spans, key=lambda one: one.from_s):
        if found and span.from_s <= found[-1].until_s:
            found[-1] = Span(found[-1].from_s, max(found[-1].until_s, span.until_s))
        else:
            found.append(span)
    return found
