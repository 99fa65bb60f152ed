"""SQL over Delta tables by the Delta library, in some 10 ms and without a JVM."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from deltalake import DeltaTable, QueryBuilder
from numpy.typing import NDArray

from headroom.schemas.tables import Column
from headroom.schemas.tables import Table as Definition

# Types that the SQL of the Delta library knows by other names than Spark's.
_SQL_TYPES = {"STRING": "VARCHAR", "BINARY": "BYTEA"}


def rows(
    tables: Mapping[str, str | DeltaTable], sql: str, definitions: Mapping[str, Definition] | None = None
) -> list[dict[str, Any]]:
    """Return the rows of a query; errors of the storage are raised unchanged.

    Args:
        tables: name in the query to the table, or to its folder or URL.
        sql: one SELECT.
        definitions: name in the query to the definition of the table. Its columns that the table does not have, because
            an older version has made it, are null.
    """
    return answer(session_of(tables, definitions or {}), sql)


def columns(
    tables: Mapping[str, str | DeltaTable], sql: str, definitions: Mapping[str, Definition] | None = None
) -> dict[str, NDArray[Any]]:
    """Return the columns of a query as arrays; errors of the storage are raised unchanged.

    Args:
        tables: name in the query to the table, or to its folder or URL.
        sql: one SELECT, of columns that are numbers and never null.
        definitions: as for ``rows``.
    """
    result = session_of(tables, definitions or {}).execute(sql).read_all()
    # A column without a row has no chunk, which to_numpy refuses.
    return {name: result.column(name).to_numpy() if result.num_rows else np.empty(0) for name in result.column_names}


def session_of(tables: Mapping[str, str | DeltaTable], definitions: Mapping[str, Definition]) -> QueryBuilder:
    """Return a session that answers queries over tables as they are now, also when one that is open is updated later.

    Args:
        tables: as for ``rows``.
        definitions: as for ``rows``.
    """
    builder = QueryBuilder()
    for name, table in tables.items():
        opened = table if isinstance(table, DeltaTable) else DeltaTable(table)
        existing = {field.name for field in opened.schema().fields}
        missing = [c for c in definitions[name].columns if c.name not in existing] if name in definitions else []
        if not missing:
            builder = builder.register(name, opened)
            continue
        builder = builder.register(f"{name}_found", opened)
        nulls = ", ".join(f'{_null(column)} AS "{column.name}"' for column in missing)
        builder.execute(f"CREATE VIEW {name} AS SELECT *, {nulls} FROM {name}_found").read_all()
    return builder


def answer(session: QueryBuilder, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query; errors of the storage are raised unchanged.

    Args:
        session: of ``session_of``.
        sql: one SELECT.
    """
    return list(session.execute(sql).read_all().to_struct_array().to_pylist())


def long_answer(session: QueryBuilder, sql: str) -> list[dict[str, Any]]:
    """Return the rows of a query that takes long, while other threads go on.

    The library computes the rows of a SELECT while Python fetches them, and holds the interpreter's lock meanwhile. It
    computes those of a new table before, without that lock.

    Args:
        session: of ``session_of``; it answers one such query.
        sql: one SELECT, with a name for each column.
    """
    session.execute(f"CREATE TABLE answer AS {sql}").read_all()
    return answer(session, "SELECT * FROM answer")


def _null(column: Column) -> str:
    # A nested one needs no type: a query selects it as a whole.
    return "NULL" if "<" in column.type else f"CAST(NULL AS {_SQL_TYPES.get(column.type, column.type)})"


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
