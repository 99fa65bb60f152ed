"""Alert events as text for a terminal or a log."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from headroom.alerts.recommendations.recommendation import Action
from headroom.alerts.stored_event import (
    StoredEvidence,
    StoredPartition,
    StoredRecommendation,
    recommendation_of,
)
from headroom.alerts.text.finish import finish_text
from headroom.schemas.alerts import AlertEvent, AlertState, stored_object
from headroom.schemas.text import printable
from headroom.schemas.text.amounts import moment_text, rate_text, size_text

_DAMAGED = ["  Evidence and recommendation are unknown: the stored row is damaged."]


def render_event(event: AlertEvent, fired: bool = True) -> str:
    """Return an event as several printable lines: summary, evidence and recommendation.

    Args:
        event: event.
        fired: whether its alert had fired before.
    """
    head = (
        f"[{event.state.upper()}] {event.severity} {event.kind}  cluster {event.cluster}, {event.subject}  "
        f"{moment_text(event.tick_ms)}  id {event.alert_id}"
    )
    if event.state == AlertState.RESOLVED.value:
        # Resolved may also mean gone: a cancelled move, or a cluster removed from the settings.
        end = "Resolved" if fired else "Cleared before it fired"
        return _text([head, f"  {end}. It was: {event.summary}."])
    commands = (f"    $ {command}" for command in event_commands(event))
    return _text([head, f"  {event.summary}.", *event_details(event), *commands])


def event_commands(event: AlertEvent) -> Sequence[str]:
    """Return the recommended commands of an event, the best first; none of a damaged row."""
    return () if event_details(event) == _DAMAGED else recommendation_of(event).commands


def event_details(event: AlertEvent) -> list[str]:
    """Return the lines of evidence and recommendation, without commands; of a damaged row, that they are unknown."""
    evidence, recommendation = stored_object(event.evidence), stored_object(event.recommendation)
    if evidence is not None and recommendation is not None:
        # A row that a disk or another program has changed may have anything in place of a number.
        with suppress(TypeError, ValueError, AttributeError, KeyError):
            return [
                *_evidence(StoredEvidence.of(evidence)),
                *_recommendation(StoredRecommendation.of(recommendation)),
            ]
    return _DAMAGED


def _text(lines: list[str]) -> str:
    # Names come from a shared cluster: they must not start new lines or send control sequences to the terminal.
    return "\n".join(map(printable, lines))


def _evidence(evidence: StoredEvidence) -> list[str]:
    # Without a role the alert is not about a throttle, and the summary has all values.
    if evidence.role is None:
        return []
    throttle = "none" if evidence.is_unthrottled else rate_text(evidence.throttle_bytes_per_s)
    numbers = (
        f"  throttle {throttle}; in-sync followers use {rate_text(evidence.in_sync_bytes_per_s)}; "
        f"all followers require {rate_text(evidence.required_bytes_per_s)}; "
        f"still to copy {size_text(evidence.remaining_bytes)}"
    )
    more = (evidence.counting_partitions or 0) - len(evidence.partitions)
    return [
        numbers,
        *map(_partition, evidence.partitions),
        *([f"    and {more} more partition(s)"] if more > 0 else []),
    ]


def _partition(p: StoredPartition) -> str:
    switch = f", led by {p.previous_leader} before" if p.previous_leader is not None else ""
    leader = "no leader" if p.leader is None else f"leader {p.leader}"
    return (
        f"    {p.name}: writes {rate_text(p.write_bytes_per_s)} x {p.followers} follower(s), "
        f"{p.in_sync_followers} in sync; {leader}{switch}"
    )


def _recommendation(recommendation: StoredRecommendation) -> list[str]:
    throttle = recommendation.throttle_bytes_per_s
    lines = []
    if throttle is not None:
        finish = finish_text(vars(recommendation.finish))
        then = f"the move then finishes in {finish}" if finish is not None else "finish unknown"
        # A first rate on a broker slows it down, so no finish is shown.
        how, then = ("set", "") if recommendation.action == Action.SET_RATE.value else ("raise", f"; {then}")
        lines.append(f"  Do: {how} the throttle to {rate_text(throttle)} ({throttle}){then}")
    if recommendation.reason:
        lines.append(f"  {'Note' if throttle else 'Do'}: {recommendation.reason}")
    return lines
