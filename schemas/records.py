"""The mapper from rows and JSON objects to records: frozen dataclasses whose fields have the names of columns or keys.

Columns and keys without a field are ignored, so that records of an older version can be read from what a newer one
wrote. JSON is written by hand: its keys are a contract, which must not change when a field is renamed.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from functools import cache
from typing import Any, TypeVar

from pydantic import TypeAdapter, ValidationError

T = TypeVar("T")


def record(kind: type[T], values: Mapping[str, Any]) -> T:
    """Return the record of a row or JSON object; a missing value is the default of its field.

    Args:
        kind: a frozen dataclass. Nested ones are made of mappings, and tuples of lists.
        values: values by field. Values that are records already are taken as they are.

    Raises:
        ValueError: a value is missing that has no default, or is of another type.
    """
    read: T = _validate(kind, values)
    return read


def records(kind: type[T], rows: Iterable[Mapping[str, Any]]) -> tuple[T, ...]:
    """Return the records of rows or JSON objects, in their order; see ``record``.

    Raises:
        ValueError: as ``record``; it names the place of the row too.
    """
    read: tuple[T, ...] = _validate(tuple[kind, ...], rows)  # type: ignore[valid-type]
    return read


def _validate(kind: Any, values: Any) -> Any:
    try:
        return _adapter(kind).validate_python(values)
    except ValidationError as error:
        # Only the message is used: pydantic's full text contains the value, which may be long.
        first = error.errors(include_url=False, include_input=False, include_context=False)[0]
        where = ".".join(str(part) for part in first["loc"])
        raise ValueError(f"{where}: {first['msg'][0].lower()}{first['msg'][1:]}") from None


@cache
def _adapter(kind: Any) -> TypeAdapter[Any]:
    return TypeAdapter(kind)
