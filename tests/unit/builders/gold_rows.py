"""Rows of tables with a value in every column but times, which the Delta library takes none of; nested ones too."""

from __future__ import annotations

from typing import Any

from deltalake.schema import ArrayType, PrimitiveType, StructType

from headroom.schemas.tables import Table
from headroom.streaming.delta.schema import DeltaType, delta_type

_VALUES: dict[str, Any] = {
    "string": "s",
    "long": 7,
    "integer": 3,
    "double": 0.5,
    "boolean": True,
    "binary": b"b",
    "timestamp": None,
}


def gold_row(table: Table, tick: tuple[str, int], **more: Any) -> dict[str, Any]:
    """A row of a tick, without ``date``."""
    row = {c.name: _value(delta_type(c.type)) for c in table.columns if c.name != "date"}
    return row | {"cluster": tick[0], "tick_ms": tick[1]} | more


def _value(of: DeltaType) -> Any:
    if isinstance(of, PrimitiveType):
        return _VALUES[of.type]
    if isinstance(of, ArrayType):
        return [_value(of.element_type)] * 2  # type: ignore[arg-type]
    assert isinstance(of, StructType)
    return {field.name: _value(field.type) for field in of.fields}  # type: ignore[arg-type]
