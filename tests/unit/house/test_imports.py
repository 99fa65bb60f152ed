"""Which room may import which, held by the sources themselves."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterable, Iterator
from functools import cache
from pathlib import Path

import pytest

REPOSITORY = Path(__file__).resolve().parents[3]

MAY_IMPORT: dict[str, set[str]] = {
    "schemas": set(),
    "planning": {"schemas"},
    # Of routing only the agreement topic, which the collector reads.
    "cluster": {"schemas", "planning", "routing"},
    "routing": {"schemas", "planning"},
    "alerts": {"schemas", "planning"},
    "streaming": {"schemas", "planning", "alerts"},
    "operations": {"schemas", "planning", "cluster", "routing", "alerts", "streaming"},
    "dashboard": {"schemas", "planning", "cluster", "alerts", "streaming", "operations"},
    # Of routing what the demo's applications use.
    "cli": {"schemas", "planning", "cluster", "routing", "alerts", "streaming", "operations", "dashboard"},
}
STANDARD_LIBRARY_ONLY = ("schemas", "planning")
# Rooms whose sums run over hundreds of thousands of partitions, or again over thousands, with the library that they may
# use for it.
WITH_NUMPY = ("planning.reassignments.", "planning.balance", "planning.finish.flow")
# The mapper between rows and records.
WITH_PYDANTIC = ("schemas.records",)

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


@cache
def parsed(module: str) -> ast.Module:
    return ast.parse(SOURCES[module].read_text(encoding="utf-8"))


@cache
def imported(module: str, inside_functions: bool = True) -> set[str]:
    """Dotted names that a module imports; of ``from a import b`` both ``a`` and ``a.b``."""
    return named_by(statements(parsed(module), inside_functions))


def named_by(nodes: Iterable[ast.AST]) -> set[str]:
    """Dotted names in the import statements among some nodes; those of Headroom without its own name."""
    names: set[str] = set()
    for node in nodes:
        if isinstance(node, ast.Import):
            assert not {alias.name.split(".")[0] for alias in node.names} & set(MAY_IMPORT), ast.unparse(node)
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"import {node.module}: imports are written in full"
            assert (node.module or "").split(".")[0] not in MAY_IMPORT, f"{node.module}: that is headroom.{node.module}"
            names.update({node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)})
    return {name.removeprefix("headroom.") for name in names}


def rooms(names: set[str]) -> set[str]:
    return {name.split(".")[0] for name in names}


def test_there_are_sources_in_every_room() -> None:
    assert rooms(set(SOURCES)) == set(MAY_IMPORT)


def test_every_room_is_a_part_of_headroom() -> None:
    links = {path.name: path.readlink() for path in (REPOSITORY / "headroom").iterdir() if path.is_symlink()}
    assert links == {room: Path("..", room) for room in MAY_IMPORT}


@pytest.mark.parametrize("folder", ["benchmarks", "scripts", "tests"])
def test_others_import_the_rooms_by_that_name_too(folder: str) -> None:
    for path in sorted((REPOSITORY / folder).rglob("*.py")):
        named_by(ast.walk(ast.parse(path.read_text(encoding="utf-8"))))


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
    wrong = {
        m: sorted(
            rooms(imported(m))
            - allowed
            - ({"numpy"} if m.startswith(WITH_NUMPY) else set())
            - ({"pydantic"} if m in WITH_PYDANTIC else set())
        )
        for m in SOURCES
        if m.startswith(f"{room}.")
    }
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


def folder_of(module: str) -> str:
    """The folder with the file of a module; that of a package is the package itself."""
    return module if (REPOSITORY / module.replace(".", "/")).is_dir() else module.rpartition(".")[0]


def test_no_two_folders_import_each_other() -> None:
    """Unless one is in the other: a folder is understood by those that it imports, so these cannot need it."""
    edges = {
        (own, other)
        for module in SOURCES
        for name in imported(module) & set(SOURCES)
        if (own := folder_of(module)) != (other := folder_of(name))
        and not f"{own}.".startswith(f"{other}.")
        and not f"{other}.".startswith(f"{own}.")
    }
    assert {(own, other) for own, other in edges if own < other and (other, own) in edges} == set()


# Who may know Spark. Everything else, commands included, reads and writes tables through streaming.delta and
# streaming.tables, which need no JVM, so that it answers at once.
SPARK = {"pyspark", "delta"}
WITH_SPARK = (
    "streaming.jobs",
    "streaming.handover",
    "streaming.pipeline",
    "streaming.queries",
    "streaming.session",
    "streaming.sources",
    "streaming.store",
    "streaming.supervision",
    "streaming.transforms",
)
# Rooms with Spark that a command may import inside a function, because it runs Spark jobs: module to the reason.
STARTS_SPARK = {
    "cli.watch.pipeline": "builds the pipeline of `watch` and `run`",
    "cli.watch.restarting_pipeline": "discards a JVM that has ended, before the pipeline is built again",
    "cli.watch.run": "names the type of the pipeline",
    "cli.maintain.command": "maintains tables that Spark writes",
}
WITHOUT_SPARK = [m for m in SOURCES if m not in WITH_SPARK and not m.startswith(tuple(f"{r}." for r in WITH_SPARK))]


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


@cache
def loaded(module: str) -> set[str]:
    """Names that are imported when a module is: those of its functions and of TYPE_CHECKING are not."""
    body = [node for node in parsed(module).body if not is_type_checking(node)]
    return named_by(statements(ast.Module(body, []), inside_functions=False))


@cache
def loads_spark(module: str) -> bool:
    """Whether importing a module imports Spark, by itself or by way of others."""
    seen: set[str] = set()
    waiting = [module]
    while waiting:
        names = loaded(waiting.pop())
        if rooms(names) & SPARK:
            return True
        waiting += [name for name in names & set(SOURCES) if name not in seen]
        seen |= names
    return False


def test_only_the_rooms_of_spark_import_it() -> None:
    """Also inside functions, and for types only."""
    assert {m: found for m in WITHOUT_SPARK if (found := sorted(rooms(imported(m)) & SPARK))} == {}


def test_nothing_else_loads_spark_by_way_of_them() -> None:
    assert [m for m in WITHOUT_SPARK if loads_spark(m)] == []
    # The search finds something: it would pass if it did not look.
    assert loads_spark("streaming.pipeline")


def test_only_commands_that_run_jobs_import_rooms_of_spark_later() -> None:
    """What streaming.jobs and the like have without Spark, as the listener of the alert path, is for all."""
    later = {m for m in WITHOUT_SPARK if any(loads_spark(name) for name in imported(m) & set(SOURCES))}
    assert later == set(STARTS_SPARK)


def test_the_command_line_and_each_of_its_modules_start_without_spark() -> None:
    modules = [m for m in SOURCES if m.startswith("cli.") and not m.endswith("__main__")]
    assert {"cli.main", "cli.watch.watch", "cli.maintain.command"} <= set(modules)
    code = (
        "import importlib, sys\n"
        f"for module in {['cli.main', *modules]}:\n"
        "    importlib.import_module(f'headroom.{module}')\n"
        f"    found = sorted({SPARK} & sys.modules.keys())\n"
        "    assert not found, (module, found)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=REPOSITORY, capture_output=True, text=True, timeout=300)
    assert (done.returncode, done.stderr) == (0, "")


MOST_FILES = 12

# Rooms within a layer that may not know each other: what computes, what decides and what delivers stay apart.
APART = [
    (
        "streaming.transforms",
        ("streaming.jobs", "streaming.queries", "streaming.store", "streaming.tables", "streaming.sources"),
    ),
    (
        "streaming.delta",
        ("streaming.jobs", "streaming.queries", "streaming.store", "streaming.tables", "streaming.transforms"),
    ),
    ("streaming.tables", ("streaming.jobs", "streaming.queries", "streaming.store", "streaming.transforms")),
    ("alerts.rules", ("alerts.delivery", "alerts.metrics")),
    ("alerts.delivery", ("alerts.rules", "alerts.metrics", "alerts.inputs")),
    ("cluster.metrics", ("cluster.collector", "cluster.elections", "cluster.throttles")),
    ("cluster.connection", ("cluster.collector", "cluster.metadata", "cluster.metrics", "cluster.elections")),
    ("planning.finish", ("planning.elections",)),
]


@pytest.mark.parametrize(("room", "others"), APART, ids=[room for room, _ in APART])
def test_rooms_of_a_layer_that_are_apart_stay_so(room: str, others: tuple[str, ...]) -> None:
    wrong = {
        module: sorted(found)
        for module in SOURCES
        if module.startswith(f"{room}.")
        and (found := {name for name in imported(module) if name.startswith(tuple(f"{other}." for other in others))})
    }
    assert wrong == {}


def test_no_folder_has_more_modules_than_the_limit() -> None:
    files: dict[str, int] = {}
    for layer in (*MAY_IMPORT, "benchmarks", "scripts"):
        for path in (REPOSITORY / layer).rglob("*.py"):
            folder = str(path.parent.relative_to(REPOSITORY))
            if path.name != "__init__.py":
                files[folder] = files.get(folder, 0) + 1
    assert {folder: count for folder, count in files.items() if count > MOST_FILES} == {}
