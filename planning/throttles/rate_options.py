"""Options of Headroom's commands that set throttle rates, in the words that the commands accept."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from headroom.planning.throttles.recommendation import ACCURATE_BYTES_PER_S
from headroom.schemas.quantities import QuantityError
from headroom.schemas.text.amounts import rate_text

# Without a unit a smaller rate is refused, because its unit was probably forgotten.
LEAST_WITHOUT_UNIT_BYTES_PER_S = 10_000
MAX_BYTES_PER_S = 1_000_000_000_000
LOW_RATE = "--low-rate"
_EXECUTE = " --execute"
_RATE_OPTION = re.compile(r"(--(?:throttle|log-dirs-throttle|auto-throttle-up-to)) ([0-9]+)(?= )")


def rate_options(rates: Mapping[str, int | None]) -> list[str]:
    """Return the words of a command that sets rates, with the flag that a low one needs.

    Args:
        rates: bytes per second by option; options with None are left out.
    """
    given = {option: rate for option, rate in rates.items() if rate is not None}
    words = [word for option, rate in given.items() for word in (option, _rate_word(rate))]
    return words + [LOW_RATE] * any(map(is_low, given.values()))


def accept_low_rates(command: str, others: Iterable[int] = ()) -> str:
    """Return a command that continues a run, with the units and the flag that low rates need.

    Earlier versions took low rates without these, and wrote such commands into the journal.

    Args:
        command: command from the journal.
        others: rates of the run that may not be among its words, bytes per second.
    """
    rates = [*others, *(int(rate) for _, rate in _RATE_OPTION.findall(command))]
    if LOW_RATE in command.split() or not command.endswith(_EXECUTE) or not any(map(is_low, rates)):
        return command
    with_units = _RATE_OPTION.sub(lambda rate: f"{rate[1]} {_rate_word(int(rate[2]))}", command)
    return f"{with_units.removesuffix(_EXECUTE)} {LOW_RATE}{_EXECUTE}"


def _rate_word(bytes_per_s: int) -> str:
    return f"{bytes_per_s}B" if bytes_per_s < LEAST_WITHOUT_UNIT_BYTES_PER_S else str(bytes_per_s)


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
