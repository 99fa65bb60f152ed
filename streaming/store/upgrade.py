"""Upgrade of a table to this version by the Delta library, for tables to which Spark makes no commits."""

from __future__ import annotations

from functools import partial

from deltalake import DeltaTable, write_deltalake

from schemas.tables import DURABLE_TABLES, Table
from streaming.delta.append import again_on_conflict, without_panic
from streaming.delta.arrow import arrow_table
from streaming.delta.properties import properties
from streaming.delta.schema import delta_schema
from streaming.durability.sync import sync_commits
from streaming.store.schema_check import SchemaDifference, schema_difference, spark_columns

_ATTEMPTS = 5


def upgrade_without_spark(path: str, table: Table) -> SchemaDifference:
    """Add missing columns, which are null in existing rows, and set missing properties; return the difference before.

    Nothing is changed if there is a difference that cannot be fixed. Several processes may do this at the same time.

    Args:
        path: folder of an existing Delta table.
        table: definition of the table.

    Raises:
        HeadroomError: the Delta library panicked.
    """
    with without_panic(path):
        return again_on_conflict(partial(_upgrade, path, table), _ATTEMPTS)


def _upgrade(path: str, table: Table) -> SchemaDifference:
    opened = DeltaTable(path)
    before = opened.version()
    found, metadata = spark_columns(opened.schema()), opened.metadata()
    difference = schema_difference(table, found, metadata.partition_columns)
    if difference.wrong:
        return difference
    if difference.new:
        # No rows, in all columns: the library adds fields of nested structs in this way only.
        no_rows = arrow_table({}, delta_schema(table).to_arrow(), 0)
        write_deltalake(opened, no_rows, mode="append", schema_mode="merge")
    if not properties(table).items() <= metadata.configuration.items():
        opened.alter.set_table_properties(properties(table))
    if table in DURABLE_TABLES:
        sync_commits(path, before)
    return difference
