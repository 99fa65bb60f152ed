"""Options of Headroom's commands that set throttle rates, in the words that the commands accept."""

from __future__ import annotations

from collections.abc import Mapping

from headroom.planning.throttles.recommendation import ACCURATE_BYTES_PER_S
from headroom.schemas.quantities import QuantityError
from headroom.schemas.text.amounts import rate_text

# Without a unit a smaller rate is refused, because its unit was probably forgotten.
LEAST_WITHOUT_UNIT_BYTES_PER_S = 10_000
MAX_BYTES_PER_S = 1_000_000_000_000
LOW_RATE = "--low-rate"


def rate_options(rates: Mapping[str, int | None]) -> list[str]:
    """Return the words of a command that sets rates, with the flag that a low one needs.

    Args:
        rates: bytes per second by option; options with None are left out.
    """
    given = {option: rate for option, rate in rates.items() if rate is not None}
    words = []
    for option, rate in given.items():
        words += [option, f"{rate}B" if rate < LEAST_WITHOUT_UNIT_BYTES_PER_S else str(rate)]
    return words + [LOW_RATE] * any(map(is_low, given.values()))


def is_low(bytes_per_s: float) -> bool:
    """Return whether a rate is so low that Kafka does not keep it accurately."""
    return bytes_per_s < ACCURATE_BYTES_PER_S


def check_rate(bytes_per_s: float, unit_given: bool = False) -> int:
    """Return a rate rounded to whole bytes per second, as Kafka requires.

    Args:
        bytes_per_s: rate in bytes per second.
        unit_given: whether the rate was written with a unit. Without one, a very small rate is an error.

    Raises:
        QuantityError: the rate is not positive, or so small or large that its unit must be missing or wrong.
    """
    if not bytes_per_s > 0 or (unit_given and bytes_per_s < 0.5):
        raise QuantityError("A rate must be greater than 0", "To remove throttles: headroom throttle clear.")
    if bytes_per_s < LEAST_WITHOUT_UNIT_BYTES_PER_S and not unit_given:
        number = f"{bytes_per_s:g}"
        meant = f"Was {number}MB meant? Otherwise give the unit: {number}B."
        raise QuantityError(f"{number} without a unit is {number} bytes per second", meant)
    if bytes_per_s > MAX_BYTES_PER_S:
        raise QuantityError(
            f"{rate_text(bytes_per_s)} is more than any broker carries ({rate_text(MAX_BYTES_PER_S)})",
            "Check its unit.",
        )
    return round(bytes_per_s)
