"""click parameter types for brokers, names, rates and times; an invalid value exits with code 2."""

from __future__ import annotations

from typing import Any

import click

from cli.common.quantities import has_unit, parse_bytes_per_s, parse_duration_s, parse_moment_ms
from cli.throttle.rates import check_rate


class Rate(click.ParamType[int]):
    """A rate: ``12500000``, ``12.5MB`` or ``12MiB/s``."""

    name = "rate"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the rate in whole bytes per second."""
        try:
            return check_rate(parse_bytes_per_s(str(value)), unit_given=has_unit(str(value)))
        except ValueError as error:
            self.fail(str(error), param, ctx)


class BrokerIds(click.ParamType[list[int]]):
    """Broker ids separated by commas."""

    name = "brokers"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[int]:
        """Return the broker ids."""
        try:
            return [int(part) for part in str(value).split(",")]
        except ValueError:
            self.fail("must be broker ids separated by commas, such as 1,2", param, ctx)


class Names(click.ParamType[list[str]]):
    """Names separated by commas."""

    name = "names"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> list[str]:
        """Return the names."""
        names = [name.strip() for name in str(value).split(",")]
        if not all(names):
            self.fail("must be names separated by commas, such as orders,payments", param, ctx)
        return names


class Duration(click.ParamType[float]):
    """A duration: ``7200``, ``2h`` or ``1h30m``.

    Args:
        max_s: longest duration allowed, in seconds.
    """

    name = "duration"

    def __init__(self, max_s: float) -> None:
        self._max_s = max_s

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> float:
        """Return the duration in seconds."""
        try:
            seconds = parse_duration_s(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
        if not 0 < seconds <= self._max_s:
            self.fail(f"must be more than nothing and at most {self._max_s / 86_400:g} days", param, ctx)
        return seconds


class Moment(click.ParamType[int]):
    """A date and time: ``2026-11-22T22:00Z``."""

    name = "time"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Return the time in epoch milliseconds."""
        try:
            return parse_moment_ms(str(value))
        except ValueError as error:
            self.fail(str(error), param, ctx)
