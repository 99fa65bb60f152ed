"""Which throttle rates a command takes."""

from __future__ import annotations

from cli.common.output import mb_per_s

# Below this Kafka's quota windows are too coarse to keep a rate.
ACCURATE_BYTES_PER_S = 1_000_000
# Below this a number without a unit is taken for one of which the unit was forgotten.
MIN_BYTES_PER_S = 10_000
MAX_BYTES_PER_S = 1_000_000_000_000


def check_rate(bytes_per_s: float, unit_given: bool = False) -> int:
    """Return a rate as Kafka takes it, whole bytes per second.

    Args:
        bytes_per_s: the rate.
        unit_given: whether it was written with a unit; of a very small one without, the unit was probably forgotten.

    Raises:
        ValueError: it is not positive, or so small or great that a unit must be missing or wrong.
    """
    if not bytes_per_s > 0 or (unit_given and bytes_per_s < 0.5):
        raise ValueError("must be greater than 0; to remove throttles: headroom throttle clear")
    if bytes_per_s < MIN_BYTES_PER_S and not unit_given:
        meant = f"was {bytes_per_s:g}MB meant? Otherwise give the unit: {bytes_per_s:g}B"
        raise ValueError(f"is {bytes_per_s:g} bytes per second; {meant}")
    if bytes_per_s > MAX_BYTES_PER_S:
        raise ValueError(f"is more than any broker carries ({mb_per_s(MAX_BYTES_PER_S)})")
    return round(bytes_per_s)
