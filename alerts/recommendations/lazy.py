"""Lazily computed mappings, for values that are expensive and seldom read."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import cached_property, partial, wraps
from typing import Any, ParamSpec

_P = ParamSpec("_P")


class LazyMapping(Mapping[str, Any]):
    """A mapping computed on the first read; each expensive value is computed on its own first read, once.

    Args:
        make: returns the content, with a function without arguments for each expensive value.
    """

    def __init__(self, make: Callable[[], Mapping[str, Any]]) -> None:
        self._make = make

    def __getitem__(self, name: str) -> Any:
        """Return a value, computed now if it was not read before."""
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
    """Return the function as one that returns immediately and computes its result when it is read."""

    @wraps(function)
    def lazy(*args: _P.args, **kwargs: _P.kwargs) -> Mapping[str, Any]:
        return LazyMapping(partial(function, *args, **kwargs))

    return lazy
