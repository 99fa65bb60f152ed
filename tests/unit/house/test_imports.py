"""Which room may import which, held by the sources themselves."""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]

MAY_IMPORT: dict[str, set[str]] = {
    "schemas": set(),
    "planning": {"schemas"},
    "cluster": {"schemas", "planning"},
    "alerts": {"schemas", "planning"},
    "streaming": {"schemas", "planning", "alerts"},
    "cli": {"schemas", "planning", "cluster", "alerts", "streaming"},
}
STANDARD_LIBRARY_ONLY = ("schemas", "planning")

SOURCES = {
    ".".join(path.relative_to(REPOSITORY).with_suffix("").parts): path
    for room in MAY_IMPORT
    for path in sorted((REPOSITORY / room).rglob("*.py"))
}


def statements(node: ast.AST, inside_functions: bool) -> Iterator[ast.AST]:
    """Every statement of a module, those inside functions (which run later) only if asked."""
    for child in ast.iter_child_nodes(node):
        yield child
        if inside_functions or not isinstance(child, (ast.FunctionDef, ast.AsyncFunctionDef)):
            yield from statements(child, inside_functions)


def imported(module: str, inside_functions: bool = True) -> set[str]:
    """Dotted names that a module imports; of ``from a import b`` both ``a`` and ``a.b``."""
    names: set[str] = set()
    for node in statements(ast.parse(SOURCES[module].read_text(encoding="utf-8")), inside_functions):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{module}: imports are written in full"
            names.update({node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)})
    return names


def rooms(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_there_are_sources_in_every_room() -> None:
    assert rooms(set(SOURCES)) == set(MAY_IMPORT)


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_a_room_imports_only_the_rooms_it_may(room: str) -> None:
    wrong = {
        module: sorted(others)
        for module in SOURCES
        if module.startswith(f"{room}.")
        and (others := (rooms(imported(module)) & set(MAY_IMPORT)) - MAY_IMPORT[room] - {room})
    }
    assert wrong == {}


@pytest.mark.parametrize("room", STANDARD_LIBRARY_ONLY)
def test_contracts_and_arithmetic_need_nothing_but_the_standard_library(room: str) -> None:
    allowed = sys.stdlib_module_names | {room} | MAY_IMPORT[room]
    wrong = {m: sorted(rooms(imported(m)) - allowed) for m in SOURCES if m.startswith(f"{room}.")}
    assert {m: names for m, names in wrong.items() if names} == {}


@pytest.mark.parametrize("room", MAY_IMPORT)
def test_no_room_imports_tests_or_scripts(room: str) -> None:
    wrong = [m for m in SOURCES if m.startswith(f"{room}.") and rooms(imported(m)) & {"tests", "scripts", "benchmarks"}]
    assert wrong == []


def test_no_module_imports_itself_by_way_of_others() -> None:
    graph = {module: imported(module, inside_functions=False) & set(SOURCES) for module in SOURCES}
    # Take away what imports nothing that is left, until nothing more goes: what stays is in a circle or behind one.
    left = dict(graph)
    while done := {module for module, needs in left.items() if not needs & set(left)}:
        left = {module: needs for module, needs in left.items() if module not in done}
    assert {module: sorted(needs & set(left)) for module, needs in left.items()} == {}
