"""Proposals of load balance as text of recommendations."""

from __future__ import annotations

from collections.abc import Sequence

from headroom.alerts.inputs.broker_load import BalanceAdvice
from headroom.schemas.text.amounts import clock_text, duration_text, size_text
from headroom.schemas.text.names import broker_names


def describe_advice(brokers: Sequence[int], advice: BalanceAdvice | None) -> str:
    """Return in one sentence which first actions of the last proposal bring brokers into their bands.

    Args:
        brokers: ids of the brokers.
        advice: last proposal; None if there is none.
    """
    names = broker_names(brokers)
    if advice is None or not advice.brokers.issuperset(brokers):
        return f"propose the fewest changes that bring {names} into band; the command changes nothing itself"
    made = f"proposal {advice.proposal_id} of {clock_text(advice.read_ms)}"
    if advice.reached and not advice.actions:
        return f"wait: by {made}, the loads of the past hours are in band, so a change now could be wrong later"
    cost = _cost(advice)
    if not advice.reached:
        return f"no proposal brings all loads of {names} into band; the best has {cost} ({made})"
    return f"carry out the first {cost}: they bring {names} into band ({made})"


def _cost(advice: BalanceAdvice) -> str:
    """Return number, bytes and time of the actions."""
    copies = "they copy nothing"
    if advice.copied_bytes:
        took = "without an end at this throttle"
        if advice.duration_s is not None:
            took = f"in about {duration_text(advice.duration_s)}"
        copies = f"{advice.elections} of them elections, they copy {size_text(advice.copied_bytes)} {took}"
    return f"{advice.actions} action(s) ({copies})"
