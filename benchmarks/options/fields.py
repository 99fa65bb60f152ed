"""Options of a group: fields of a frozen dataclass, each with its default, the kind of its values, and a help text."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, TypeVar

import click

from headroom.cli.common.options import MAX_DURATION_S
from headroom.cli.common.parameters import Duration, Quantity, WholeNumber
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import QuantityError, parse_heap_bytes, parse_number, quote

T = TypeVar("T")
KIND, HELP = "kind", "help"


def option(default: Any, kind: click.ParamType[Any], help_text: str) -> Any:
    """Return a field of a dataclass of options.

    Args:
        default: value if the option is not given; None: the help text says what then applies.
        kind: kind of the values.
        help_text: what the option sets, with the unit.
    """
    return field(default=default, metadata={KIND: kind, HELP: help_text})


def flag(help_text: str) -> Any:
    """Return a field that is True if its option is given."""
    return field(default=False, metadata={HELP: help_text})


@dataclass(frozen=True)
class NoOptions:
    """Options of a group that has none."""


class PositiveNumber(Quantity[float]):
    """A number above 0, with or without a fraction."""

    name = "number"

    def read(self, text: str) -> float:
        """Return the number."""
        number = parse_number(text)
        if number <= 0:
            raise QuantityError(f"{quote(text)} is not above 0")
        return number


class HeapSize(Quantity[str]):
    """Size of a JVM's heap: ``512m`` or ``2g``."""

    name = "size"

    def read(self, text: str) -> str:
        """Return the text."""
        parse_heap_bytes(text)
        return text


class OneOf(Quantity[str]):
    """One of some names.

    Args:
        names: the names.
    """

    name = "name"

    def __init__(self, names: Sequence[str]) -> None:
        self._names = names

    def read(self, text: str) -> str:
        """Return the name."""
        if text not in self._names:
            raise QuantityError(f"there is no {quote(text)}", f"Choose from {', '.join(self._names)}.")
        return text


class CommaSeparated(Quantity[tuple[T, ...]]):
    """Quantities of one kind, separated by commas; one that is given twice counts once.

    Args:
        of: kind of each.
    """

    name = "list"

    def __init__(self, of: Quantity[T]) -> None:
        self._of = of

    def read(self, text: str) -> tuple[T, ...]:
        """Return the quantities in the order in which they are given."""
        return tuple(dict.fromkeys(self._of.read(one.strip()) for one in text.split(",")))


class CheckedText(Quantity[str]):
    """A text that a group reads itself.

    Args:
        check: raises HeadroomError if the group cannot use the text.
    """

    name = "names"

    def __init__(self, check: Callable[[str], object]) -> None:
        self._check = check

    def read(self, text: str) -> str:
        """Return the text."""
        try:
            self._check(text)
        except HeadroomError as error:
            raise QuantityError(error.rule) from error
        return text


def parts_option(*names: str) -> Any:
    """Return the field for some of the parts of a group; by default all of them."""
    return option(names, CommaSeparated(OneOf(names)), f"Parts to measure, of {', '.join(names)}.")


def heap_option(default: str) -> Any:
    """Return the field for the largest heap of Spark's JVMs."""
    return option(default, HEAP, "Largest heap of each of Spark's JVMs.")


COUNT, AT_LEAST_ONE = WholeNumber(), WholeNumber(1)
# Names of figures end with the thousands of partitions.
PARTITIONS = WholeNumber(1000)
SECONDS = Duration(MAX_DURATION_S)
RATIO = PositiveNumber()
HEAP = HeapSize()
TEXT, FOLDER = click.STRING, click.Path(file_okay=False)
