"""Validation of throttle rates given on the command line."""

from __future__ import annotations

from collections.abc import Mapping

import click

from planning.throttles.rate_options import LEAST_WITHOUT_UNIT_BYTES_PER_S, LOW_RATE, is_low
from schemas.quantities import QuantityError
from schemas.text.amounts import rate_text

MAX_BYTES_PER_S = 1_000_000_000_000

low_rate_option = click.option(
    LOW_RATE, is_flag=True, help="Accept a rate below 1 MB/s, which Kafka does not keep accurately."
)


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


def require_low_rate(low_rate: bool, rates: Mapping[str, int | None]) -> None:
    """Raise a usage error for a rate below 1 MB/s without the flag that accepts it.

    Args:
        low_rate: whether the flag was given.
        rates: bytes per second by option, or by whatever names the rate; None: not given.
    """
    for option, rate in rates.items():
        if rate is not None and is_low(rate) and not low_rate:
            rule = f"{option} is {rate_text(rate)}, and Kafka does not keep a rate below 1 MB/s accurately."
            raise click.UsageError(f"{rule} If it is meant, add {LOW_RATE}.")
