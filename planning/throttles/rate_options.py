"""Options of Headroom's commands that set throttle rates, in the words that the commands accept."""

from __future__ import annotations

from collections.abc import Mapping

from planning.throttles.recommendation import ACCURATE_BYTES_PER_S

# Without a unit a smaller rate is refused, because its unit was probably forgotten.
LEAST_WITHOUT_UNIT_BYTES_PER_S = 10_000
LOW_RATE = "--low-rate"


def rate_options(rates: Mapping[str, int | None]) -> list[str]:
    """Return the words of a command that sets rates, with the flag that a low one needs.

    Args:
        rates: bytes per second by option; options with None are left out.
    """
    given = {option: rate for option, rate in rates.items() if rate is not None}
    words = [word for option, rate in given.items() for word in (option, _rate_word(rate))]
    return words + [LOW_RATE] * any(map(is_low, given.values()))


def is_low(bytes_per_s: float) -> bool:
    """Return whether a rate is so low that Kafka does not keep it accurately."""
    return bytes_per_s < ACCURATE_BYTES_PER_S


def _rate_word(bytes_per_s: int) -> str:
    return f"{bytes_per_s}B" if bytes_per_s < LEAST_WITHOUT_UNIT_BYTES_PER_S else str(bytes_per_s)
