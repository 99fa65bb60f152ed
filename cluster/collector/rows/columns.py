"""Rows stored as columns: kinds with a row per partition never need a dict per row."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

Row = dict[str, Any]


class Columns(Sequence[Row]):
    """Rows of one kind, stored as one sequence of values per column.

    Args:
        columns: values by column name, all of the same length; at least one column.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns

    @classmethod
    def concatenate(cls, names: Iterable[str], parts: Iterable[Mapping[str, Sequence[Any]]]) -> Columns:
        """Return the concatenated rows of all parts; each part has the columns of ``names``."""
        columns: dict[str, list[Any]] = {name: [] for name in names}
        for part in parts:
            for name, values in columns.items():
                values.extend(part[name])
        return cls(columns)

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    @overload
    def __getitem__(self, at: int) -> Row: ...
    @overload
    def __getitem__(self, at: slice) -> Columns: ...
    def __getitem__(self, at: int | slice) -> Row | Columns:
        selected = {name: values[at] for name, values in self.columns.items()}
        return Columns(selected) if isinstance(at, slice) else selected
