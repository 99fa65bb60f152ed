"""Validation of throttle rates given on the command line."""

from __future__ import annotations

from cli.common.output import mb_per_s

# Below this rate Kafka's quota windows are too coarse to enforce it accurately.
ACCURATE_BYTES_PER_S = 1_000_000
# A smaller number without a unit is an error, because its unit was probably forgotten.
MIN_BYTES_PER_S = 10_000
MAX_BYTES_PER_S = 1_000_000_000_000


def check_rate(bytes_per_s: float, unit_given: bool = False) -> int:
    """Return a rate rounded to whole bytes per second, as Kafka requires.

    Args:
        bytes_per_s: rate in bytes per second.
        unit_given: whether the rate was written with a unit. Without one, a very small rate is an error.

    Raises:
        ValueError: the rate is not positive, or so small or large that its unit must be missing or wrong.
    """
    if not bytes_per_s > 0 or (unit_given and bytes_per_s < 0.5):
        raise ValueError("must be greater than 0; to remove throttles: headroom throttle clear")
    if bytes_per_s < MIN_BYTES_PER_S and not unit_given:
        meant = f"was {bytes_per_s:g}MB meant? Otherwise give the unit: {bytes_per_s:g}B"
        raise ValueError(f"is {bytes_per_s:g} bytes per second; {meant}")
    if bytes_per_s > MAX_BYTES_PER_S:
        raise ValueError(f"is more than any broker carries ({mb_per_s(MAX_BYTES_PER_S)})")
    return round(bytes_per_s)
