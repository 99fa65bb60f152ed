"""A class name stands for one thing in the product, the benchmarks and the scripts together."""

from __future__ import annotations

import ast

from tests.support.paths import REPOSITORY

FOLDERS = (
    *("schemas", "planning", "cluster", "routing", "alerts", "streaming", "operations", "dashboard", "cli"),
    *("benchmarks", "scripts"),
)


def test_a_public_class_name_is_defined_in_one_module() -> None:
    """Private classes are left out, because their names are read only in their own modules."""
    homes: dict[str, set[str]] = {}
    for path in (path for folder in FOLDERS for path in sorted((REPOSITORY / folder).rglob("*.py"))):
        for node in ast.parse(path.read_text(encoding="utf-8")).body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes.setdefault(node.name, set()).add(str(path.relative_to(REPOSITORY)))
    assert {name: files for name, files in homes.items() if len(files) > 1} == {}
