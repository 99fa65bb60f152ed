"""SQL over Delta tables by the Delta library, in some 10 ms and without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from deltalake import DeltaTable, QueryBuilder


def rows(tables: Mapping[str, str | DeltaTable], sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; errors of the storage are raised unchanged.

    Args:
        tables: name in the query to the table, or to its folder or URL.
        sql: one SELECT.
    """
    builder = QueryBuilder()
    for name, table in tables.items():
        builder = builder.register(name, table if isinstance(table, DeltaTable) else DeltaTable(table))
    return list(builder.execute(sql).read_all().to_struct_array().to_pylist())


def table_url(store_path: str, table: str) -> str:
    """Return the location of a table in the scheme of the Delta library: Hadoop's s3a becomes s3.

    Args:
        store_path: ``store.path``: a folder or URL.
        table: path of the table below it.
    """
    root = store_path.rstrip("/")
    return f"{'s3://' + root[6:] if root.startswith('s3a://') else root}/{table}"
