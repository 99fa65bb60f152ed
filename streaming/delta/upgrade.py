"""Upgrade of a table that another version has made: how it differs from its definition, and how that is mended."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import partial

from arro3.core import Table as ArrowTable
from deltalake import DeltaTable, Field, Schema, write_deltalake
from deltalake.schema import ArrayType, StructType

from headroom.schemas.errors import HeadroomError
from headroom.schemas.tables import DURABLE_TABLES, Table
from headroom.streaming.delta.append import again_on_conflict, without_panic
from headroom.streaming.delta.files.sync import sync_commits
from headroom.streaming.delta.properties import properties
from headroom.streaming.delta.schema import AnyDeltaType, delta_schema, spark_type
from headroom.streaming.supervision.failure import cause_of

log = logging.getLogger(__name__)

_ATTEMPTS = 5


@dataclass(frozen=True)
class SchemaDifference:
    """Difference between an existing table and its definition, apart from comments.

    Attributes:
        new: missing columns and struct fields that can be added: path to Spark type.
        wrong: descriptions of differences that cannot be fixed.
    """

    new: dict[str, str] = field(default_factory=dict)
    wrong: list[str] = field(default_factory=list)


def schema_difference(table: Table, current: Schema, partitioned_by: Sequence[str]) -> SchemaDifference:
    """Return the difference of an existing table; additional columns are allowed, because they are null in new rows.

    Args:
        table: definition of the table.
        current: columns of the existing table.
        partitioned_by: its partition columns.
    """
    result = SchemaDifference()
    _compare_fields(delta_schema(table).fields, current.fields, "", result)
    for name in [name for name in (*table.keys, *table.partition_by) if name in result.new]:
        # A key or partition column cannot be added: old rows would have no key, or be in no folder.
        del result.new[name]
        result.wrong.append(f"{name} is missing")
    if list(partitioned_by) != list(table.partition_by):
        is_by, by = (", ".join(names) or "nothing" for names in (partitioned_by, table.partition_by))
        result.wrong.append(f"its folders are by {is_by}, not by {by}")
    return result


def require_ours(location: str, table: Table, difference: SchemaDifference) -> None:
    """Check that a table can be upgraded to its definition.

    Raises:
        HeadroomError: a difference cannot be fixed.
    """
    if difference.wrong:
        raise HeadroomError(
            location,
            f"must have the columns and folders of {table.path}, but {'; '.join(difference.wrong)}",
            "It was written by something else or by another version: point store.path elsewhere, or move it away.",
        )


def upgrade_without_spark(location: str, table: Table) -> None:
    """Upgrade a table to which Spark makes no commits; several processes may do this at the same time.

    Missing columns are added, and are null in existing rows. Missing properties are set. Comments are updated.

    Args:
        location: folder or URL of an existing table.
        table: definition of the table.

    Raises:
        HeadroomError: a difference cannot be fixed, and nothing was changed; or the Delta library panicked.
    """
    with without_panic(location):
        again_on_conflict(partial(_upgrade_at, location, table), _ATTEMPTS)


def _upgrade_at(location: str, table: Table) -> None:
    opened = DeltaTable(location)
    before = opened.version()
    upgrade_opened(location, opened, table)
    if table in DURABLE_TABLES:
        sync_commits(location, before)


def upgrade_opened(location: str, opened: DeltaTable, table: Table) -> None:
    """Upgrade an open table as ``upgrade_without_spark`` does, without another attempt after a conflict.

    Raises:
        HeadroomError: a difference cannot be fixed, and nothing was changed.
    """
    current, metadata = opened.schema(), opened.metadata()
    difference = schema_difference(table, current, metadata.partition_columns)
    require_ours(location, table, difference)
    if difference.new:
        # Only in this way the library adds fields of nested structs. It accepts no comments but those that are there.
        fields = _with_missing(current.fields, delta_schema(table).fields)
        write_deltalake(opened, _no_rows(fields), mode="append", schema_mode="merge")
    if not properties(table).items() <= metadata.configuration.items():
        opened.alter.set_table_properties(properties(table))
    _update_comments(location, opened, table)


def _no_rows(fields: Sequence[Field]) -> ArrowTable:
    return ArrowTable.from_batches([], schema=Schema(list(fields)).to_arrow())


def _update_comments(location: str, opened: DeltaTable, table: Table) -> None:
    """Replace the comments of columns whose meaning was reworded, in one commit."""
    meanings = {column.name: column.meaning for column in table.columns}
    current = opened.schema().fields
    if all(f.metadata.get("comment") == meanings.get(f.name, f.metadata.get("comment")) for f in current):
        return
    fields = [_with_comment(f, meanings[f.name]) if f.name in meanings else f for f in current]
    try:
        # Replaces the rows that fulfil the condition, which is none, and the schema.
        write_deltalake(opened, _no_rows(fields), mode="overwrite", schema_mode="overwrite", predicate="false")
    # Whatever it is: nobody waits for a comment, and the next start tries again.
    except Exception as error:
        log.debug("comments of %s stay as they are: %s", location, cause_of(error))


def _with_comment(old: Field, comment: str) -> Field:
    return Field(old.name, old.type, nullable=old.nullable, metadata={**old.metadata, "comment": comment})


def _with_missing(current: Sequence[Field], wanted: Sequence[Field]) -> list[Field]:
    """Return existing fields as they are, with the missing ones at the end of each struct."""
    by_name = {f.name: f for f in wanted}
    existing = [
        Field(f.name, _type_with_missing(f.type, by_name[f.name].type), nullable=f.nullable, metadata=f.metadata)
        if f.name in by_name
        else f
        for f in current
    ]
    names = {f.name for f in current}
    return [*existing, *(f for f in wanted if f.name not in names)]


def _type_with_missing(current: AnyDeltaType, wanted: AnyDeltaType) -> AnyDeltaType:
    if isinstance(current, StructType) and isinstance(wanted, StructType):
        return StructType(_with_missing(current.fields, wanted.fields))
    if isinstance(current, ArrayType) and isinstance(wanted, ArrayType):
        element = _type_with_missing(current.element_type, wanted.element_type)
        return ArrayType(element, contains_null=current.contains_null)
    return current


def _compare(wanted: AnyDeltaType, current: AnyDeltaType, name: str, result: SchemaDifference) -> None:
    if isinstance(wanted, StructType) and isinstance(current, StructType):
        _compare_fields(wanted.fields, current.fields, f"{name}.", result)
    elif isinstance(wanted, ArrayType) and isinstance(current, ArrayType):
        _compare(wanted.element_type, current.element_type, f"{name}.element", result)
    elif wanted != current:
        result.wrong.append(f"{name} is {spark_type(current)}, not {spark_type(wanted)}")


def _compare_fields(wanted: Sequence[Field], current: Sequence[Field], at: str, result: SchemaDifference) -> None:
    """Add the differences of a struct's fields to the result; ``at`` is the path of the struct, with a dot."""
    result.wrong.extend(f"{at}{f.name} must not be null" for f in current if not f.nullable)
    existing = {f.name: f.type for f in current}
    for f in wanted:
        if f.name in existing:
            _compare(f.type, existing[f.name], f"{at}{f.name}", result)
        else:
            result.new[f"{at}{f.name}"] = spark_type(f.type)
