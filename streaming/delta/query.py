"""SQL over Delta tables by the Delta library, in some 10 ms and without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from arro3.core import Table
from deltalake import DeltaTable, QueryBuilder
from numpy.typing import NDArray


def rows(tables: Mapping[str, str | DeltaTable], sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; errors of the storage are raised unchanged.

    Args:
        tables: name in the query to the table, or to its folder or URL.
        sql: one SELECT.
    """
    return list(_result(tables, sql).to_struct_array().to_pylist())


def columns(tables: Mapping[str, str | DeltaTable], sql: str) -> dict[str, NDArray[Any]]:
    """Return the columns of a query as arrays; errors of the storage are raised unchanged.

    Args:
        tables: name in the query to the table, or to its folder or URL.
        sql: one SELECT, of columns that are numbers and never null.
    """
    found = _result(tables, sql)
    # A column without a row has no chunk, which to_numpy refuses.
    return {name: found.column(name).to_numpy() if found.num_rows else np.empty(0) for name in found.column_names}


def names(table: str) -> frozenset[str]:
    """Return the names of a table's columns; errors of the storage are raised unchanged.

    Args:
        table: folder or URL of the table.
    """
    return frozenset(field.name for field in DeltaTable(table).schema().fields)


def _result(tables: Mapping[str, str | DeltaTable], sql: str) -> Table:
    builder = QueryBuilder()
    for name, table in tables.items():
        builder = builder.register(name, table if isinstance(table, DeltaTable) else DeltaTable(table))
    return builder.execute(sql).read_all()


def sql_text(text: str) -> str:
    """Return a text as a literal of SQL, such as a cluster's name, which may have quotes."""
    doubled = text.replace("'", "''")
    return f"'{doubled}'"


def table_url(store_path: str, table: str) -> str:
    """Return the location of a table in the scheme of the Delta library: Hadoop's s3a becomes s3.

    Args:
        store_path: ``store.path``: a folder or URL.
        table: path of the table below it.
    """
    root = store_path.rstrip("/")
    return f"{'s3://' + root[6:] if root.startswith('s3a://') else root}/{table}"
