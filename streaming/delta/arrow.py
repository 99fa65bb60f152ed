"""Arrow columns from Python values, nested ones included, in the columns of a Delta table."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date
from typing import Any

from arro3.core import Array, DataType, Schema, list_array, struct_array
from arro3.core import Table as ArrowTable

_EPOCH = date(1970, 1, 1).toordinal()


def arrow_table(columns: Mapping[str, Sequence[Any]], schema: Schema) -> ArrowTable:
    """Return rows in some columns of a table.

    Args:
        columns: values by column. Structs are mappings, arrays are sequences, dates are ``datetime.date``.
        schema: these columns. Fields of structs without values, which a newer version may have added, are null.
    """
    fields = [schema.field(n) for n in range(len(schema))]
    arrays = [_array(columns[field.name], field.type) for field in fields]
    return ArrowTable.from_arrays(arrays, schema=schema)


def _array(values: Sequence[Any], of: DataType) -> Array:
    if DataType.is_struct(of):
        children = [_array([None if v is None else v.get(f.name) for v in values], f.type) for f in of.fields]
        return struct_array(children, fields=list(of.fields), mask=_nulls(values))
    if DataType.is_list(of):
        return _lists(values, of)
    if DataType.is_date32(of):
        # The library does not accept dates, only days since 1970.
        days = [None if day is None else day.toordinal() - _EPOCH for day in values]
        return Array(days, DataType.int32()).cast(of)
    return Array(values, of)


def _lists(values: Sequence[Sequence[Any] | None], of: DataType) -> Array:
    offsets = [0]
    elements: list[Any] = []
    for value in values:
        elements.extend(value or ())
        offsets.append(len(elements))
    assert of.value_type is not None
    return list_array(Array(offsets, DataType.int32()), _array(elements, of.value_type), type=of, mask=_nulls(values))


def _nulls(values: Sequence[Any]) -> Array:
    return Array([value is None for value in values], DataType.bool())
