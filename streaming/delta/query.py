"""SQL over Delta tables by the Delta library alone, in some ten milliseconds and without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltalake import DeltaTable, QueryBuilder


def rows(tables: Mapping[str, str | DeltaTable], sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; what storage does wrong is raised as the library raises it.

    Args:
        tables: each table, or its folder or URL, by what the query calls it.
        sql: one SELECT.
    """
    builder = QueryBuilder()
    for name, table in tables.items():
        builder = builder.register(name, table if isinstance(table, DeltaTable) else DeltaTable(table))
    return list(builder.execute(sql).read_all().to_struct_array().to_pylist())


def table_url(store_path: str, table: str) -> str:
    """Return where a table is, in the scheme that the library knows: s3a is Hadoop's word for s3.

    Args:
        store_path: ``store.path``: a folder or URL.
        table: path of the table below it.
    """
    root = store_path.rstrip("/")
    return f"{'s3://' + root[6:] if root.startswith('s3a://') else root}/{table}"
