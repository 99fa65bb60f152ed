"""Delta tables read without Spark, for commands that must answer at once."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from deltalake.exceptions import TableNotFoundError

from schemas.errors import HeadroomError
from streaming.delta import query as plain_sql
from streaming.delta.locations import require_absent
from streaming.supervision.failure import cause_of

logger = logging.getLogger(__name__)


def query(store_path: str, table: str, sql: str) -> list[dict[str, Any]] | None:
    """Return the rows of a query over one table, which the SQL calls ``data``; None while there is no such table.

    Args:
        store_path: ``store.path``: a folder or URL.
        table: path of the table below it.
        sql: one SELECT.

    Raises:
        HeadroomError: the table is there but cannot be read, or cannot be looked for.
    """
    return query_all(store_path, {"data": table}, sql)


def query_all(store_path: str, tables: Mapping[str, str], sql: str) -> list[dict[str, Any]] | None:
    """Return the rows of a query over several tables; None while one of them is not there.

    Args:
        store_path: ``store.path``: a folder or URL.
        tables: what the SQL calls each table, and its path below it.
        sql: one SELECT.

    Raises:
        HeadroomError: a table is there but cannot be read, or cannot be looked for.
    """
    urls = {name: plain_sql.table_url(store_path, table) for name, table in tables.items()}
    try:
        return plain_sql.rows(urls, sql)
    except TableNotFoundError as error:
        for url in urls.values():
            require_absent(url, error)
        return None
    # The reader raises its own errors, OSError and bare Exceptions, for all that storage can do wrong.
    except Exception as error:
        where = ", ".join(urls.values())
        logger.debug("reading %s", where, exc_info=True)
        remedy = "Look at store.path and the rights on it."
        raise HeadroomError(where, f"cannot be read ({cause_of(error)})", remedy) from error
