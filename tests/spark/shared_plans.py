"""Plans of the jobs' queries, shared by all tests of a process.

A job plans its queries once and then runs for months (``streaming.transforms.prepared``). Tests make jobs by the dozen,
one for each restart that they play, and planning would be most of their time.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import pytest
from pyspark.sql import DataFrame

from streaming.transforms import prepared

_SIMPLE = (str, int, float, tuple)


@contextmanager
def shared_plans() -> Iterator[None]:
    """Let queries of Headroom be planned once for each set of columns, whichever job they belong to."""
    plans: dict[Hashable, Any] = {}
    plan_of = prepared._plan_of

    def shared(make: Callable[..., DataFrame], frames: Sequence[DataFrame], rdds: Sequence[Any], single: Any) -> Any:
        if not make.__module__.startswith("streaming."):
            return plan_of(make, frames, rdds, single)
        key = (_identity(make), tuple(frame._jdf.schema().json() for frame in frames), tuple(single))
        if key not in plans:
            plans[key] = plan_of(make, frames, rdds, single)
        return plans[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(prepared, "_plan_of", shared)
        yield


def _identity(make: Callable[..., DataFrame]) -> Hashable:
    """What a query is made from: its code, and the settings that it reads from its closure or its object."""
    function = getattr(make, "__func__", make)
    settings = [_settings(cell.cell_contents) for cell in function.__closure__ or ()]
    return function.__code__, repr(settings), repr(_settings(getattr(make, "__self__", None)))


def _settings(value: Any) -> Any:
    """The value itself if it is simple, otherwise its simple attributes."""
    if isinstance(value, _SIMPLE) or not hasattr(value, "__dict__"):
        return value
    return {name: inner for name, inner in vars(value).items() if isinstance(inner, _SIMPLE)}
