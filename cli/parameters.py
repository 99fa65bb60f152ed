"""What people write on the command line for brokers and rates, read into numbers; wrong use exits with 2."""

from __future__ import annotations

from typing import Any

import click

from cli.throttle_plan import check_rate
from cli.units import parse_bytes_per_s


class Rate(click.ParamType[int]):
    """A rate as a person writes it: ``12500000``, ``12.5MB`` or ``12MiB/s``."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return whole bytes per second."""
        try:
            return check_rate(parse_bytes_per_s(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class BrokerIds(click.ParamType[list[int]]):
    """Broker ids separated by commas."""

    name = "brokers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Return the ids."""
        try:
            return [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail("must be broker ids separated by commas, such as 1,2", param, ctx)
