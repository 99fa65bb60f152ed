"""Queries over Delta tables without Spark, for commands that must answer at once."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any, TypeVar

from deltalake.exceptions import TableNotFoundError
from numpy.typing import NDArray

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import ALL_TABLES, Table
from headroom.streaming.delta import query as delta_query
from headroom.streaming.delta.damage import error_of_damage, log_damages
from headroom.streaming.delta.locations import STORE_REMEDY, require_absent
from headroom.streaming.supervision.failure import cause_of

logger = logging.getLogger(__name__)

T = TypeVar("T")


def query(store_path: str, table: str, sql: str) -> list[dict[str, Any]] | None:
    """Return the rows of a query over one table, named ``data`` in the SQL; None if the table does not exist.

    Args:
        store_path: ``store.path``: a folder or URL.
        table: path of the table below it.
        sql: one SELECT.

    Raises:
        HeadroomError: the table exists but cannot be read, or its location is not accessible.
    """
    return query_all(store_path, {"data": table}, sql)


def query_all(store_path: str, tables: Mapping[str, str], sql: str) -> list[dict[str, Any]] | None:
    """Return the rows of a query over several tables; None if one of them does not exist.

    Args:
        store_path: ``store.path``: a folder or URL.
        tables: name in the SQL to the path below the store.
        sql: one SELECT.

    Raises:
        HeadroomError: a table exists but cannot be read, or its location is not accessible.
    """
    return _answer(store_path, tables, lambda urls: delta_query.rows(urls, sql, _definitions(tables)))


def query_columns(store_path: str, table: str, sql: str) -> dict[str, NDArray[Any]] | None:
    """Return the columns of a query over one table as arrays; None if the table does not exist.

    Args:
        store_path: ``store.path``: a folder or URL.
        table: path of the table below it, named ``data`` in the SQL.
        sql: one SELECT, of columns that are numbers and never null.

    Raises:
        HeadroomError: the table exists but cannot be read, or its location is not accessible.
    """
    tables = {"data": table}
    return _answer(store_path, tables, lambda urls: delta_query.columns(urls, sql, _definitions(tables)))


def _definitions(tables: Mapping[str, str]) -> dict[str, Table]:
    """Return the definitions of Headroom's tables among some paths: older tables lack columns that queries name."""
    known = {table.path: table for table in ALL_TABLES}
    return {name: known[path] for name, path in tables.items() if path in known}


def _answer(store_path: str, tables: Mapping[str, str], ask: Callable[[Mapping[str, str]], T]) -> T | None:
    """Return what a function reads from the locations of tables; None if one of the tables does not exist."""
    urls = {name: delta_query.table_url(store_path, table) for name, table in tables.items()}
    for url in urls.values():
        # Readers skip an empty commit silently, and take a table without a log for a missing one.
        if log_damages(url) and (damage := error_of_damage(url)):
            raise damage
    try:
        return ask(urls)
    except TableNotFoundError as error:
        for url in urls.values():
            require_absent(url, error)
        return None
    # The library raises its own errors, OSError and bare Exceptions for problems of the storage.
    except Exception as error:
        locations = ", ".join(urls.values())
        logger.debug("reading %s", locations, exc_info=True)
        for url in urls.values():
            if damage := error_of_damage(url):
                raise damage from error
        raise HeadroomError(locations, f"cannot be read ({cause_of(error)})", STORE_REMEDY) from error
