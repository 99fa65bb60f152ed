"""Alert events as text for a terminal or a log."""

from __future__ import annotations

import json
from typing import Any

from alerts.text.formatting import finish_text, format_rate, moment, size
from schemas.alerts import AlertEvent, AlertState, Verdict
from schemas.text import printable

_LABEL = {AlertState.PENDING.value: "PENDING", AlertState.FIRING.value: "FIRING", AlertState.RESOLVED.value: "RESOLVED"}


def render_event(event: AlertEvent, fired: bool = True) -> str:
    """Return an event as several printable lines: summary, evidence and recommendation.

    Args:
        event: event.
        fired: whether its alert had fired before.
    """
    head = (
        f"[{_LABEL[event.state]}] {event.severity} {event.kind}  cluster {event.cluster}, {event.subject}  "
        f"{moment(event.tick_ms)}  id {event.alert_id}"
    )
    if event.state == AlertState.RESOLVED.value:
        # Resolved may also mean gone: a cancelled move, or a cluster removed from the settings.
        end = "Resolved" if fired else "Cleared before it fired"
        return _text([head, f"  {end}. It was: {event.summary}."])
    evidence, recommendation = json.loads(event.evidence), json.loads(event.recommendation)
    lines = [head, f"  {event.summary}.", *_evidence(evidence), *_recommendation(recommendation)]
    return _text(lines)


def _text(lines: list[str]) -> str:
    # Names come from a shared cluster: they must not start new lines or send control sequences to the terminal.
    return "\n".join(map(printable, lines))


def _evidence(evidence: dict[str, Any]) -> list[str]:
    # Without a role the alert is not about a throttle, and the summary has all values.
    if evidence.get("role") is None:
        return []
    throttle = evidence.get("throttle_bytes_per_s")
    unlimited = throttle is None and evidence.get("verdict") == Verdict.UNTHROTTLED.value
    numbers = (
        f"  throttle {'none' if unlimited else format_rate(throttle)}; in-sync followers use "
        f"{format_rate(evidence['in_sync_bytes_per_s'])}; "
        f"all followers require {format_rate(evidence['required_bytes_per_s'])}; "
        f"still to copy {size(evidence['remaining_bytes'])}"
    )
    partitions = evidence["partitions"]
    more = (evidence.get("counting_partitions") or 0) - len(partitions)
    return [numbers, *map(_partition, partitions), *([f"    and {more} more partition(s)"] if more > 0 else [])]


def _partition(p: dict[str, Any]) -> str:
    switch = f", led by {p['previous_leader']} before" if p["previous_leader"] is not None else ""
    leader = "no leader" if p["leader"] is None else f"leader {p['leader']}"
    return (
        f"    {p['topic']}-{p['partition']}: writes {format_rate(p['write_bytes_per_s'])} "
        f"x {p['followers']} follower(s), "
        f"{p['in_sync_followers']} in sync; {leader}{switch}"
    )


def _recommendation(recommendation: dict[str, Any]) -> list[str]:
    throttle = recommendation["throttle_bytes_per_s"]
    lines = []
    if throttle is not None:
        finish = finish_text(recommendation)
        then = f"the move then finishes in {finish}" if finish is not None else "finish unknown"
        # A first rate on a broker slows it down, so no finish is shown.
        how, then = ("set", "") if recommendation.get("action") == "set_rate" else ("raise", f"; {then}")
        lines.append(f"  Do: {how} the throttle to {format_rate(throttle)} ({throttle}){then}")
    if recommendation["reason"]:
        lines.append(f"  {'Note' if throttle else 'Do'}: {recommendation['reason']}")
    return lines + [f"    $ {command}" for command in recommendation["commands"]]
