"""``python -m benchmarks.readme``: writes the table of groups in benchmarks/README.md from the catalogue."""

from __future__ import annotations

import re
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from benchmarks.catalogue import GROUPS, BenchGroup

README = Path(__file__).resolve().parent / "README.md"
_TABLE = re.compile(r"(?<=<!-- groups -->\n\n).*(?=\n<!-- end of groups -->)", re.DOTALL)


def with_table(page: str, groups: Iterable[BenchGroup[Any]]) -> str:
    """Return the page with the table of these groups in place of the one that it has.

    Raises:
        ValueError: the page has no comments around a table.
    """
    header = ["| group | question | time | command |", "| --- | --- | --- | --- |"]
    text, count = _TABLE.subn("\n".join([*header, *map(_row, groups), ""]).replace("\\", r"\\"), page)
    if not count:
        raise ValueError("the page has no place for the table of groups")
    return text


def _row(group: BenchGroup[Any]) -> str:
    path = Path(group.module.__file__ or "").relative_to(README.parent).as_posix()
    return f"| [{group.name}]({path}) | {group.question} | {group.time_text} | `make bench ONLY={group.name}` |"


if __name__ == "__main__":
    README.write_text(with_table(README.read_text(encoding="utf-8"), GROUPS.values()), encoding="utf-8")
