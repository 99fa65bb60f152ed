"""Blind time: gaps between fresh verdicts, minus times that are not Headroom's."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import pairwise


@dataclass(frozen=True)
class Span:
    """A time span in monotonic seconds."""

    from_s: float
    until_s: float

    @property
    def length_s(self) -> float:
        """Return its length, seconds."""
        return self.until_s - self.from_s

    def overlap_s(self, other: Span) -> float:
        """Return the overlap with another span, seconds."""
        return max(0.0, min(self.until_s, other.until_s) - max(self.from_s, other.from_s))


@dataclass(frozen=True)
class Blind:
    """The longest time without a fresh verdict.

    Attributes:
        blind_s: its length minus one tick interval and Kafka's outage, seconds.
        gap: the whole time.
        kafka_s: Kafka's outage within it, seconds.
    """

    blind_s: float
    gap: Span
    kafka_s: float


def gaps(moments: Sequence[float], over: Span) -> list[Span]:
    """Return the gaps between fresh verdicts that overlap a span.

    Args:
        moments: times of fresh verdicts, ascending.
        over: the span. Its end closes the last gap; its beginning opens the first one if there is no earlier verdict.
    """
    before = [at_s for at_s in moments if at_s <= over.from_s]
    within = [at_s for at_s in moments if over.from_s < at_s < over.until_s]
    edges = [before[-1] if before else over.from_s, *within, over.until_s]
    return [Span(from_s, until_s) for from_s, until_s in pairwise(edges)]


def blind(moments: Sequence[float], over: Span, interval_s: float, kafka: Iterable[Span]) -> Blind:
    """Return the longest time without a fresh verdict, minus Kafka's outages.

    Args:
        moments: times of fresh verdicts, ascending.
        over: span from the fault to the recovery.
        interval_s: interval of ticks.
        kafka: times in which Kafka could not accept ticks, without overlaps.
    """
    spans = list(kafka)

    def own(gap: Span) -> Blind:
        kafka_s = sum(gap.overlap_s(span) for span in spans)
        return Blind(max(0.0, gap.length_s - interval_s - kafka_s), gap, kafka_s)

    return max(map(own, gaps(moments, over)), key=lambda one: one.blind_s)


def merged(spans: Iterable[Span]) -> list[Span]:
    """Return the union of spans as spans without overlaps."""
    union: list[Span] = []
    for span in sorted(spans, key=lambda one: one.from_s):
        if union and span.from_s <= union[-1].until_s:
            union[-1] = Span(union[-1].from_s, max(union[-1].until_s, span.until_s))
        else:
            union.append(span)
    return union
