"""The option that accepts low throttle rates, and the check that it was given."""

from __future__ import annotations

from collections.abc import Mapping

import click

from headroom.planning.throttles.rate_options import LOW_RATE, is_low
from headroom.schemas.text.amounts import rate_text

low_rate_option = click.option(
    LOW_RATE, is_flag=True, help="Accept a rate below 1 MB/s, which Kafka does not keep accurately."
)


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
