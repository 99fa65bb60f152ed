"""click parameter types of quantities; a text that is none of its kind exits with code 2."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, TypeVar

import click

from headroom.planning.elections.quiet_hours import DailyWindow
from headroom.planning.throttles.rate_options import check_rate
from headroom.schemas.quantities import (
    TOPIC,
    QuantityError,
    has_unit,
    parse_address,
    parse_addresses,
    parse_bytes_per_s,
    parse_duration_s,
    parse_ids,
    parse_moment_ms,
    parse_names,
    parse_whole,
    quote,
    strip,
)

_T = TypeVar("_T")


class Quantity(click.ParamType[_T]):
    """A quantity whose text ``read`` returns as a value, or refuses as a whole."""

    @abstractmethod
    def read(self, text: str) -> _T:
        """Return the value of a text. Raises QuantityError."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> _T:
        """Return the value of an option."""
        try:
            # Spaces around a text do not count, as in the settings file and in variables.
            return self.read(strip(str(value)))
        except QuantityError as error:
            self.fail(str(error), param, ctx)


class WholeNumber(Quantity[int]):
    """A whole number within limits.

    Args:
        least: smallest number.
        most: greatest number; None: no limit of its own.
    """

    name = "number"

    def __init__(self, least: int = 0, most: int | None = None) -> None:
        self._least = least
        self._most = most

    def read(self, text: str) -> int:
        """Return the number."""
        number = parse_whole(text)
        if number < self._least or (self._most is not None and number > self._most):
            limits = f"at least {self._least}" if self._most is None else f"from {self._least} to {self._most}"
            raise QuantityError(f"{number} is not allowed: the number must be {limits}")
        return number


class Rate(Quantity[int]):
    """A rate in whole bytes per second: ``12500000``, ``12.5MB`` or ``12MiB/s``."""

    name = "rate"

    def read(self, text: str) -> int:
        """Return the rate in whole bytes per second."""
        return check_rate(parse_bytes_per_s(text), unit_given=has_unit(text))


class BrokerIds(Quantity[list[int]]):
    """Broker ids separated by commas."""

    name = "brokers"

    def read(self, text: str) -> list[int]:
        """Return the broker ids."""
        return parse_ids(text)


class TopicNames(Quantity[list[str]]):
    """Names of topics separated by commas."""

    name = "topics"

    def read(self, text: str) -> list[str]:
        """Return the names."""
        return parse_names(text, TOPIC, "a list of topics, such as orders,payments")


class TopicName(Quantity[str]):
    """Name of one topic."""

    name = "topic"

    def read(self, text: str) -> str:
        """Return the name."""
        if not TOPIC.fullmatch(text):
            raise QuantityError(
                f"{quote(text)} is not the name of a topic", "Topics have letters, digits, dots, _ and -."
            )
        return text


class Duration(Quantity[float]):
    """A duration in seconds: ``7200``, ``2h`` or ``1h30m``.

    Args:
        max_s: longest duration allowed, in seconds.
    """

    name = "duration"

    def __init__(self, max_s: float) -> None:
        self._max_s = max_s

    def read(self, text: str) -> float:
        """Return the duration in seconds."""
        seconds = parse_duration_s(text)
        if not 0 < seconds <= self._max_s:
            raise QuantityError(f"{quote(text)} is not more than nothing and at most {self._max_s / 86_400:g} days")
        return seconds


class Moment(Quantity[int]):
    """A date and time in epoch milliseconds: ``2026-11-22T22:00Z``."""

    name = "time"

    def read(self, text: str) -> int:
        """Return the time in epoch milliseconds."""
        return parse_moment_ms(text)


class WindowOfDay(Quantity[DailyWindow]):
    """A daily window: ``22:00-06:00 Europe/Berlin``."""

    name = "window"

    def read(self, text: str) -> DailyWindow:
        """Return the window."""
        return DailyWindow.of(text)


class ListenAddress(Quantity[tuple[str, int]]):
    """An address to listen on: ``127.0.0.1:8600``; port 0 is a free one."""

    name = "address"

    def read(self, text: str) -> tuple[str, int]:
        """Return host and port."""
        return parse_address(text, least_port=0)


class Servers(Quantity[str]):
    """Addresses separated by commas: ``broker1:9092,broker2:9092``."""

    name = "servers"

    def read(self, text: str) -> str:
        """Return the addresses as one text."""
        return ",".join(parse_addresses(text))
