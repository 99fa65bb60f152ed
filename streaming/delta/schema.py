"""Schemas of tables for the Delta library, and their types in Spark's words, without Spark."""

from __future__ import annotations

from collections.abc import Iterator

from deltalake import Field, Schema
from deltalake.schema import ArrayType, MapType, PrimitiveType, StructType, VariantType

from headroom.schemas.tables import Table

_PRIMITIVES = {
    "STRING": "string",
    "BIGINT": "long",
    "INT": "integer",
    "DOUBLE": "double",
    "BOOLEAN": "boolean",
    "DATE": "date",
    "TIMESTAMP": "timestamp",
    "BINARY": "binary",
}
_SPARK = {delta: spark.lower() for spark, delta in _PRIMITIVES.items()}
DeltaType = PrimitiveType | ArrayType | StructType
# With those that only tables of others have.
AnyDeltaType = DeltaType | MapType | VariantType


def delta_schema(table: Table) -> Schema:
    """Return the columns of a table with their meanings as comments."""
    return Schema([Field(c.name, delta_type(c.type), metadata={"comment": c.meaning}) for c in table.columns])


def delta_type(spark_type: str) -> DeltaType:
    """Return the type of the Delta library for a type in Spark's DDL, such as ``ARRAY<STRUCT<broker INT>>``."""
    name, _, inner = spark_type.partition("<")
    inner = inner.removesuffix(">")
    if name == "ARRAY":
        return ArrayType(delta_type(inner), contains_null=True)
    if name == "STRUCT":
        named = (field.strip().split(" ", 1) for field in _fields(inner))
        return StructType([Field(field, delta_type(of), nullable=True) for field, of in named])
    return PrimitiveType(_PRIMITIVES[name])


def spark_type(of: AnyDeltaType) -> str:
    """Return the type in Spark's DDL, such as ``array<struct<broker:int>>``, of a type of the Delta library."""
    if isinstance(of, ArrayType):
        return f"array<{spark_type(of.element_type)}>"
    if isinstance(of, StructType):
        return f"struct<{','.join(f'{f.name}:{spark_type(f.type)}' for f in of.fields)}>"
    if isinstance(of, MapType):
        return f"map<{spark_type(of.key_type)},{spark_type(of.value_type)}>"
    return _SPARK.get(of.type, of.type) if isinstance(of, PrimitiveType) else "variant"


def _fields(text: str) -> Iterator[str]:
    """Yield the fields of a struct: the parts between the commas that are in no inner type."""
    depth = begin = 0
    for n, sign in enumerate(text):
        depth += (sign == "<") - (sign == ">")
        if sign == "," and depth == 0:
            yield text[begin:n]
            begin = n + 1
    yield text[begin:]
