"""Mappings that are worked out when somebody reads them, for what is costly and seldom read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial, wraps
from typing import Any, ParamSpec

_P = ParamSpec("_P")


class LazyMapping(Mapping[str, Any]):
    """A mapping that is made when it is first read, and of it each costly value when that is read itself; once.

    Args:
        make: makes it; in the place of a costly value stands a function of no arguments that gives it.
    """

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> Any:
        """Return a value."""
        value = self._made[name]
        if callable(value):
            value = self._made[name] = value()
        return value

    def __iter__(self) -> Iterator[str]:
        """Iterate over the names, in their order."""
        return iter(self._made)

    def __len__(self) -> int:
        """Return how many names there are."""
        return len(self._made)

    @cached_property
    def _made(self) -> dict[str, Any]:
        return dict(self._make())


def lazily(function: Callable[_P, Mapping[str, Any]]) -> Callable[_P, Mapping[str, Any]]:
    """Return the function as one that returns at once, and does its work when somebody reads what it returned."""

    @wraps(function)
    def later(*args: _P.args, **kwargs: _P.kwargs) -> Mapping[str, Any]:
        return LazyMapping(partial(function, *args, **kwargs))

    return later
