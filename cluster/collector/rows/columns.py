"""Rows as columns: what there is a row of for every partition is never made a dict each."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any, overload

Row = dict[str, Any]


class Columns(Sequence[Row]):
    """Rows of one kind, kept as one sequence of values per column.

    Args:
        columns: by name, all of the same length; there is at least one.
    """

    def __init__(self, columns: Mapping[str, Sequence[Any]]) -> None:
        self.columns = columns

    @classmethod
    def joined(cls, names: Iterable[str], parts: Iterable[Mapping[str, Sequence[Any]]]) -> Columns:
        """Return the rows of all parts, each of which has these columns, one part after the other."""
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
        of = {name: values[at] for name, values in self.columns.items()}
        return Columns(of) if isinstance(at, slice) else of
