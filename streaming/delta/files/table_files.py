"""Data files of a table read one by one, apart from the table's own log: to find damaged ones, and to save rows."""

from __future__ import annotations

import json
import tempfile
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from deltalake import DeltaTable, QueryBuilder, Schema
from deltalake.transaction import AddAction

from headroom.schemas.errors import ENDINGS
from headroom.schemas.tables import Table
from headroom.streaming.delta.properties import properties
from headroom.streaming.delta.schema import delta_schema
from headroom.streaming.supervision.failure import cause_of

_LOG = "_delta_log"


def data_files(folder: Path) -> list[Path]:
    """Return the data files in the folder of a table, also those that no commit has added or one has removed."""
    files = [file for file in folder.rglob("*.parquet") if file.is_file()]
    return sorted(file for file in files if not _is_hidden(file.relative_to(folder)))


def fault_of_rows(opened: DeltaTable) -> str | None:
    """Return why the rows of a table cannot be read; None if all of them can."""
    try:
        for _ in QueryBuilder().register("data", opened).execute("SELECT * FROM data"):
            pass
    except ENDINGS:
        raise
    # The library panics at some damaged files, and raises bare Exceptions at others.
    except BaseException as error:
        return f"cannot be decoded ({cause_of(error)})"
    return None


def fault_of_file(file: Path, folder: Path, schema: Schema) -> str | None:
    """Return why the rows of one data file cannot be read; None if all of them can.

    Args:
        file: the file.
        folder: folder of its table.
        schema: columns of its table.
    """
    with _table_over([file], folder, schema) as opened:
        return fault_of_rows(opened)


def distinct_rows(files: Iterable[Path], folder: Path, table: Table) -> list[dict[str, Any]]:
    """Return the rows of all readable files, each once, because a compaction leaves the files that it has replaced.

    Args:
        files: data files.
        folder: folder of their table.
        table: definition of the table.
    """
    schema = delta_schema(table)
    readable = [file for file in files if fault_of_file(file, folder, schema) is None]
    if not readable:
        return []
    with _table_over(readable, folder, schema) as opened:
        result = QueryBuilder().register("data", opened).execute("SELECT DISTINCT * FROM data").read_all()
        return list(result.to_struct_array().to_pylist())


def may_be_of(file: Path, folder: Path, table: Table) -> bool:
    """Return whether a file lies where a table has its data files, and has a row with all its keys or cannot be read.

    Args:
        file: data file.
        folder: folder of the table.
        table: definition of the table.
    """
    parts = file.relative_to(folder).parts[:-1]
    if len(parts) != len(table.partition_by):
        return False
    if not all(part.startswith(f"{name}=") for part, name in zip(parts, table.partition_by, strict=True)):
        return False
    schema = delta_schema(table)
    if fault_of_file(file, folder, schema) is not None:
        return True
    keys = " AND ".join(f"{key} IS NOT NULL" for key in table.keys)
    with _table_over([file], folder, schema) as opened:
        query = QueryBuilder().register("data", opened).execute(f"SELECT 1 FROM data WHERE {keys} LIMIT 1")
        return query.read_all().num_rows > 0


def first_commit(table: Table) -> list[Mapping[str, Any]]:
    """Return the actions of the commit that creates a table: its protocol and its columns."""
    with tempfile.TemporaryDirectory() as folder:
        DeltaTable.create(
            folder,
            schema=delta_schema(table),
            partition_by=list(table.partition_by),
            description=table.grain,
            configuration=properties(table),
        )
        text = (Path(folder) / _LOG / f"{0:020d}.json").read_text(encoding="utf-8")
    return [json.loads(line) for line in text.splitlines()]


@contextmanager
def _table_over(files: Iterable[Path], folder: Path, schema: Schema) -> Iterator[DeltaTable]:
    """Yield a table with only these files, in a folder of its own with links to them."""
    with tempfile.TemporaryDirectory() as place:
        actions, partition_by = [], list[str]()
        for number, file in enumerate(files):
            values = dict(part.split("=", 1) for part in file.relative_to(folder).parts[:-1] if "=" in part)
            partition_by = list(values)
            link = Path(place) / f"{number}.parquet"
            link.symlink_to(file.absolute())
            decoded: dict[str, str | None] = {name: unquote(value) for name, value in values.items()}
            actions.append(AddAction(link.name, file.stat().st_size, decoded, 0, True, "{}"))
        DeltaTable.create(place, schema=schema, partition_by=partition_by)
        DeltaTable(place).create_write_transaction([*actions], "append", schema, partition_by)
        yield DeltaTable(place)


def _is_hidden(path: Path) -> bool:
    return any(part.startswith(("_", ".")) for part in path.parts)
