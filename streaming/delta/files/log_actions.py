"""Actions in the log of a Delta table: which lines of a commit can be one.

The library skips most lines that it does not understand, and their rows with them. One wrong bit in the name of an
action or of a column changes what a table says, without an error. So each line is compared with what Delta's protocol
requires, and the columns of Headroom's own tables with their definition.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from urllib.parse import unquote

from deltalake import Schema
from deltalake.schema import PrimitiveType

from headroom.schemas.tables import Table
from headroom.streaming.delta.schema import AnyDeltaType, delta_schema

# Highest versions of Delta's protocol whose rules are known here.
_READER_VERSION, _WRITER_VERSION = 3, 7
# Digits; Python refuses to read a number of thousands of them.
_LONGEST_COUNT = 20
_NOT_ENCODED = re.compile(r"%(?![0-9A-Fa-f]{2})")


def parsed_action(line: bytes) -> Mapping[str, Any] | None:
    """Return a line of a commit as an object; None if it is none."""
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def fault_of_action(action: Mapping[str, Any] | None, table: Table | None) -> str | None:
    """Return why a line of a commit is no action; None if it is one.

    Args:
        action: the line, as ``parsed_action`` returns it.
        table: definition of the table; None if it is not Headroom's.
    """
    if action is None:
        return "is cut off, or no JSON"
    if len(action) != 1:
        return "has a line that is not one action"
    ((kind, content),) = action.items()
    if kind not in _FAULTS or not isinstance(content, dict):
        return f"has a line that is not an action of Delta ({kind[:30]!r})"
    try:
        return _FAULTS[kind](content, table)
    except (KeyError, TypeError, ValueError, RecursionError):
        return f"has an action '{kind}' without what it needs"


def fault_of_commit(actions: Sequence[Mapping[str, Any]], is_first: bool) -> str | None:
    """Return why actions are not the whole of a commit; None if they may be.

    A file that ends between two lines has only whole actions. Its first line says how many files and rows belong to it.

    Args:
        actions: its lines, each of them an action.
        is_first: whether the table begins with it.
    """
    names = {name for action in actions for name in action}
    for name, what in (("protocol", "the protocol"), ("metaData", "the columns")) if is_first else ():
        if name not in names:
            return f"is cut off: {what} of the table must be in it"
    info = next((action["commitInfo"] for action in actions if "commitInfo" in action), None)
    metrics = info.get("operationMetrics") if info else None
    if not isinstance(metrics, dict):
        return None
    added = [action["add"] for action in actions if "add" in action]
    removed = sum("remove" in action for action in actions)
    announced_added = _announced_count(metrics, "num_added_files", "numFilesAdded", "numAddedFiles")
    announced_removed = _announced_count(metrics, "num_removed_files", "numFilesRemoved", "numRemovedFiles")
    counts = [(len(added), announced_added, "files added"), (removed, announced_removed, "files removed")]
    if not announced_added:
        # An append of Spark counts a file without rows too, and leaves it out.
        rows = [json.loads(entry.get("stats") or "{}").get("numRecords") for entry in added]
        if not any(map(_is_not_count, rows)):
            counts.append((sum(rows), _announced_count(metrics, "numOutputRows"), "rows added"))
    return next((f"is cut off: it has {n} of {most} {what}" for n, most, what in counts if n < most), None)


def _announced_count(metrics: Mapping[str, Any], *names: str) -> int:
    """Return the count that a commit's metrics have by one of some names; 0 if they have none."""
    return max(_metric(metrics.get(name)) for name in names)


def _metric(value: Any) -> int:
    """Return a count of a commit's metrics, which Spark writes as text; 0 if it is none."""
    text = str(value)
    return int(text) if text.isascii() and text.isdigit() and len(text) < _LONGEST_COUNT else 0


def _fault_of_file(content: Mapping[str, Any], table: Table | None) -> str | None:
    """Return the fault of an entry of a data file that a commit adds or removes."""
    path, change = content["path"], content["dataChange"]
    if not isinstance(path, str) or not path or _NOT_ENCODED.search(path) or not isinstance(change, bool):
        raise ValueError
    # Headroom's tables have all of their files in their own folder. A colon would begin the rest of a URL.
    first = unquote(path).partition("/")[0]
    if "\0" in unquote(path) or (table is not None and (not first or (":" in first and "=" not in first))):
        raise ValueError
    return None


def _fault_of_added_file(content: Mapping[str, Any], table: Table | None) -> str | None:
    values, stats = content["partitionValues"], content.get("stats")
    if not isinstance(values, dict) or _is_not_count(content["size"]):
        raise ValueError
    # Statistics decide which files a query reads.
    if stats and not isinstance(json.loads(stats), dict):
        raise ValueError
    return _fault_of_file(content, table)


def _fault_of_columns(content: Mapping[str, Any], table: Table | None) -> str | None:
    """Return the fault of the columns that a commit gives the table."""
    by, text = content["partitionColumns"], content["schemaString"]
    if not isinstance(content["id"], str) or not isinstance(by, list) or not isinstance(text, str):
        raise ValueError
    if content["format"]["provider"] != "parquet" or not _is_text_map(content["format"]["options"]):
        raise ValueError
    if not _is_text_map(content["configuration"]):
        raise ValueError
    try:
        schema = Schema.from_json(text)
    # The library raises bare Exceptions.
    except Exception as error:
        raise ValueError from error
    if table is None:
        return None
    known = {column.name: column.type for column in delta_schema(table).fields}
    columns = {column.name: column.type for column in schema.fields}
    if len(known.keys() & columns.keys()) * 2 < len(columns):
        # Something else has written this table; whoever uses it is told so.
        return None
    wrong = [f"{name} is missing" for name in table.keys if name not in columns]
    wrong += [f"{name} has another type" for name in known if name in columns and _differ(known[name], columns[name])]
    # A newer version adds columns, and an older one lacks some. None has other ones instead.
    if missing := known.keys() - columns.keys():
        wrong += [f"{name} is none of them, but {min(missing)} is" for name in sorted(columns.keys() - known.keys())]
    return f"has other columns than {table.path}: {'; '.join(wrong)}" if wrong else None


def _differ(known: AnyDeltaType, actual: AnyDeltaType) -> bool:
    """Return whether two types differ in what no version has changed: the type of plain columns."""
    if isinstance(known, PrimitiveType) and isinstance(actual, PrimitiveType):
        return known.type != actual.type
    return type(known) is not type(actual)


def _fault_of_protocol(content: Mapping[str, Any], _: Table | None) -> str | None:
    reader, writer = content["minReaderVersion"], content["minWriterVersion"]
    if _is_not_count(reader) or _is_not_count(writer):
        raise ValueError
    if (reader == _READER_VERSION) != ("readerFeatures" in content) and reader <= _READER_VERSION:
        raise ValueError
    return None


def needs_newer_version(action: Mapping[str, Any] | None) -> str | None:
    """Return which version of Delta a protocol needs, if it is not known here; None otherwise."""
    protocol = (action or {}).get("protocol")
    if not isinstance(protocol, dict):
        return None
    reader, writer = protocol.get("minReaderVersion"), protocol.get("minWriterVersion")
    if isinstance(reader, int) and reader > _READER_VERSION:
        return f"needs reader version {reader} of Delta"
    return f"needs writer version {writer} of Delta" if isinstance(writer, int) and writer > _WRITER_VERSION else None


def _fault_of_transaction(content: Mapping[str, Any], _: Table | None) -> str | None:
    if not isinstance(content["appId"], str) or not isinstance(content["version"], int):
        raise ValueError
    return None


def _no_fault(_: Mapping[str, Any], __: Table | None) -> str | None:
    """Return None: readers need nothing of it."""


def _is_text_map(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(text, str) for text in value.values())


def _is_not_count(value: Any) -> bool:
    return not isinstance(value, int) or isinstance(value, bool) or value < 0


_FAULTS: Mapping[str, Callable[[Mapping[str, Any], Table | None], str | None]] = {
    "add": _fault_of_added_file,
    "remove": _fault_of_file,
    "metaData": _fault_of_columns,
    "protocol": _fault_of_protocol,
    "txn": _fault_of_transaction,
    "commitInfo": _no_fault,
    "cdc": _no_fault,
    "domainMetadata": _no_fault,
    "checkpointMetadata": _no_fault,
    "sidecar": _no_fault,
}
