"""Schema check: compares an existing table with its definition."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field

from deltalake import Schema
from pyspark.sql.types import ArrayType, DataType, StructType

from schemas.tables import Table
from streaming.delta.schema import delta_schema


@dataclass(frozen=True)
class SchemaDifference:
    """Difference between an existing table and its definition.

    Attributes:
        new: missing columns and struct fields that can be added: path to type.
        wrong: descriptions of differences that cannot be fixed.
    """

    new: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def schema_difference(table: Table, found: StructType, partitioned_by: Sequence[str]) -> SchemaDifference:
    """Return the difference of an existing table; additional columns are allowed, because they are null in new rows.

    Args:
        table: definition of the table.
        found: columns of the existing table.
        partitioned_by: its partition columns.
    """
    result = SchemaDifference()
    _compare(schema(table), found, "", result)
    for name in [name for name in (*table.keys, *table.partition_by) if name in result.new]:
        # A key or partition column cannot be added: old rows would have no key, or be in no folder.
        del result.new[name]
        result.wrong.append(f"{name} is missing")
    if list(partitioned_by) != list(table.partition_by):
        is_by, by = (", ".join(names) or "nothing" for names in (partitioned_by, table.partition_by))
        result.wrong.append(f"its folders are by {is_by}, not by {by}")
    return result


def schema(table: Table) -> StructType:
    """Return the columns of a table, with their meanings as comments."""
    return spark_columns(delta_schema(table))


def spark_columns(schema: Schema) -> StructType:
    """Return the columns of a schema of the Delta library as Spark's type, with their comments."""
    return StructType.fromJson(json.loads(schema.to_json()))


def _compare(wanted: DataType, found: DataType, name: str, result: SchemaDifference) -> None:
    if isinstance(wanted, StructType) and isinstance(found, StructType):
        _compare_fields(wanted, found, f"{name}." if name else "", result)
    elif isinstance(wanted, ArrayType) and isinstance(found, ArrayType):
        _compare(wanted.elementType, found.elementType, f"{name}.element", result)
    elif wanted != found:
        result.wrong.append(f"{name} is {found.simpleString()}, not {wanted.simpleString()}")


def _compare_fields(wanted: StructType, found: StructType, at: str, result: SchemaDifference) -> None:
    """Add the differences of a struct's fields to the result; ``at`` is the path of the struct, with a dot."""
    result.wrong.extend(f"{at}{f.name} must not be null" for f in found.fields if not f.nullable)
    existing = {f.name: f.dataType for f in found.fields}
    for column in wanted.fields:
        if column.name in existing:
            _compare(column.dataType, existing[column.name], f"{at}{column.name}", result)
        else:
            result.new[f"{at}{column.name}"] = column.dataType.simpleString()
