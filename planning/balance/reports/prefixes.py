"""Prefixes of a proposal to choose from: what each gains, copies and takes."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from headroom.planning.balance.pricing.price import BatchRun
from headroom.planning.balance.search.proposal import Proposal

# Shares of the whole gain that rows of the table reach.
_GAINS = (0.25, 0.5, 0.75, 0.9, 0.95, 0.99)
_ROUNDING = 1e-12


@dataclass(frozen=True)
class PrefixPrice:
    """What the first actions of a proposal gain and cost.

    Attributes:
        actions: number of actions.
        gain_ratio: share of the load outside of bands that they remove, 0 to 1.
        copied_bytes: bytes that they copy.
        copied_replicas: replicas that they copy.
        batches: number of their batches.
        duration_s: time of their batches one after another, with readings and pauses of a run, seconds; None if they
            never end. It is rough: bytes / (throttle - required rate), with the room for a throttle that batches of all
            actions have, except for the prefix that is chosen.
    """

    actions: int
    gain_ratio: float
    copied_bytes: float
    copied_replicas: int
    batches: int
    duration_s: float | None


def prefixes(proposal: Proposal) -> list[int]:
    """Return the numbers of actions worth a row: those without copies, those that reach shares of the gain, and all."""
    count = len(proposal.actions)
    if not count:
        return []
    before_copies = int(np.count_nonzero(proposal.copied_replicas == 0)) - 1
    numbers = {count, before_copies} - {0}
    start, end = float(proposal.outside[0]), float(proposal.outside.min())
    for share in _GAINS:
        enough = proposal.outside <= start - share * (start - end) + _ROUNDING
        numbers.add(max(1, int(np.argmax(enough))))
    return sorted(numbers)


def prefix_price(proposal: Proposal, actions: int, run: BatchRun, throttle_bytes_per_s: float) -> PrefixPrice:
    """Return the price of a prefix.

    Args:
        proposal: the proposal.
        actions: number of actions.
        run: the batches of all actions, or of more than these.
        throttle_bytes_per_s: throttle on all brokers, both roles.
    """
    batches, seconds = run.rough_s(throttle_bytes_per_s, actions)
    return PrefixPrice(
        actions,
        gain_ratio(proposal, actions),
        float(proposal.copied_bytes[actions]),
        int(proposal.copied_replicas[actions]),
        batches,
        seconds,
    )


def gain_ratio(proposal: Proposal, actions: int) -> float:
    """Return the share of the load outside of bands that the first actions remove, 0 to 1."""
    start = float(proposal.outside[0])
    return 0.0 if start <= 0 else float(np.clip(1 - float(proposal.outside[actions]) / start, 0.0, 1.0))
