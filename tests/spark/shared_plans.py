"""Plans of the jobs' queries, shared by all tests of a process.

A job plans its queries once and then runs for months (``streaming.transforms.prepared``). Tests make jobs by the dozen,
one for each restart that they play, and planning would be most of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from types import CodeType, FunctionType
from typing import Any

import pytest
from pyspark.sql import DataFrame

from headroom.streaming.transforms import prepared

_VALUES = (str, int, float, bytes, Enum, type(None))


class _Unknown(Exception):
    """What a query is made from cannot be compared."""


@contextmanager
def shared_plans() -> Iterator[None]:
    """Let queries of Headroom be planned once for each set of columns, whichever job they belong to.

    A query has a plan to itself if it is made from an object that cannot be compared with that of another query.
    """
    plans: dict[Hashable, Any] = {}
    plan_of = prepared._plan_of

    def shared(make: Callable[..., DataFrame], frames: Sequence[DataFrame], rdds: Sequence[Any], single: Any) -> Any:
        own = identity(make)
        if own is None:
            return plan_of(make, frames, rdds, single)
        key = (own, tuple(frame._jdf.schema().json() for frame in frames), tuple(single))
        if key not in plans:
            plans[key] = plan_of(make, frames, rdds, single)
        return plans[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "_plan_of", shared)
        yield


def identity(make: Callable[..., DataFrame]) -> Hashable | None:
    """Return what a query of Headroom is made from: code, and all values that it reads; None if that is unknown.

    Values of a module count if the function itself or one of the same module that it calls reads them.
    """
    function, owner = getattr(make, "__func__", make), getattr(make, "__self__", None)
    if not isinstance(function, FunctionType) or not function.__module__.startswith("headroom.streaming."):
        return None
    try:
        return _of_function(function, owner, set())
    except _Unknown:
        return None


def _of_function(function: FunctionType, owner: Any, seen: set[tuple[int, int]]) -> Hashable:
    code = function.__code__
    if (id(function), id(owner)) in seen:
        return code
    seen.add((id(function), id(owner)))
    names = _names(code)
    given = [cell.cell_contents for cell in function.__closure__ or ()]
    given += [*(function.__defaults__ or ()), *(function.__kwdefaults__ or {}).values()]
    read = [_of_object(value, names, seen) for value in given]
    if owner is not None:
        read.append(_of_object(owner, names, seen))
    for name in sorted(names & function.__globals__.keys()):
        read.append(_of_global(function.__globals__[name], function.__module__, seen))
    return code, tuple(read)


def _names(code: CodeType) -> set[str]:
    """Return the names that code reads, also in functions inside it."""
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, CodeType)]
    return set(code.co_names).union(*inner)


def _of_global(value: Any, module: str, seen: set[tuple[int, int]]) -> Hashable:
    """Return what a value of a module is: a test may have replaced it. Imported code is the same in all tests."""
    if isinstance(value, FunctionType):
        return _of_function(value, None, seen) if value.__module__ == module else value
    return (type(value), value) if isinstance(value, _VALUES) else None


def _of_object(value: Any, names: set[str], seen: set[tuple[int, int]]) -> Hashable:
    """Return what code with these names can read of an object: its values, and methods of it that the code calls."""
    if not hasattr(value, "__dict__") or isinstance(value, FunctionType | Enum):
        return _of_value(value, seen)
    found: list[Hashable] = [type(value)]
    for name, attribute in sorted(vars(value).items()):
        try:
            found.append((name, _of_value(attribute, seen)))
        except _Unknown:
            # A session or a topic, which the code does not use.
            if name in names:
                raise
    for name in sorted(names - vars(value).keys()):
        member = getattr(type(value), name, None)
        method = member.fget if isinstance(member, property) else member
        if isinstance(method, FunctionType):
            found.append(_of_function(method, value, seen))
    return tuple(found)


def _of_value(value: Any, seen: set[tuple[int, int]]) -> Hashable:
    # The type belongs to it: 1 equals True and 1.0.
    kind = type(value)
    if isinstance(value, _VALUES):
        return kind, value
    if isinstance(value, tuple | list):
        return kind, tuple(_of_value(item, seen) for item in value)
    if isinstance(value, set | frozenset):
        return kind, frozenset(_of_value(item, seen) for item in value)
    if isinstance(value, Mapping):
        return kind, tuple((_of_value(key, seen), _of_value(item, seen)) for key, item in value.items())
    if isinstance(value, FunctionType):
        return _of_function(value, None, seen)
    if is_dataclass(kind):
        return kind, tuple((field.name, _of_value(getattr(value, field.name), seen)) for field in fields(value))
    raise _Unknown
