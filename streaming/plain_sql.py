"""SQL over Delta tables by the Delta library alone, in some ten milliseconds and without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltalake import DeltaTable, QueryBuilder


def rows(locations: Mapping[str, str], sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; what storage does wrong is raised as the library raises it.

    Args:
        locations: folder or URL of each table, by what the query calls it.
        sql: one SELECT.
    """
    builder = QueryBuilder()
    for name, location in locations.items():
        builder = builder.register(name, DeltaTable(location))
    return list(builder.execute(sql).read_all().to_struct_array().to_pylist())
