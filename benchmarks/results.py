"""Figures of benchmarks, their statistics, and the file that stores them."""

from __future__ import annotations

import ast
import hashlib
import json
import os
import platform
import subprocess
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from importlib.metadata import version
from pathlib import Path
from typing import Any

import psutil

from headroom.cluster.java import jar_folder, java_command

RESULTS = Path(__file__).resolve().parent / "results.json"
CHECKOUT = RESULTS.parent.parent
# Parts of long runs, by group and code. They are committed, because a machine may be gone before a run is complete.
PARTS = RESULTS.parent / "parts"
_PACKAGES = ("pyspark", "delta-spark", "kafka-python")
# Folders whose code figures depend on; tests, pages and containers change no figure.
_PRODUCT = ("alerts", "cli", "cluster", "dashboard", "operations", "planning", "routing", "schemas", "streaming")
_VERSIONS = ("ivy.xml", "requirements.lock")


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: name in the results file.
        value: measured value.
        unit: unit of the value.
        n: number of measurements.
    """

    name: str
    value: float
    unit: str
    n: int


@dataclass(frozen=True)
class Origin:
    """Origin of figures.

    Attributes:
        command: command that measured them.
        machine: machine and versions.
        date: ISO 8601 UTC.
        commit: commit of the code, with ``+`` if tracked files were changed.
    """

    command: str
    machine: str
    date: str
    commit: str


def percentile(values: Sequence[float], ratio: float) -> float:
    """Return the percentile at ``ratio`` (0 to 1), with linear interpolation between neighbours.

    Raises:
        ValueError: there are no values.
    """
    if not values:
        raise ValueError("no values, no percentile")
    ordered = sorted(values)
    position = ratio * (len(ordered) - 1)
    below = int(position)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (ordered[above] - ordered[below]) * (position - below)


def slope_per_s(samples: Sequence[tuple[float, float]]) -> float:
    """Return the least-squares slope of (seconds, value) pairs, per second.

    Raises:
        ValueError: all samples have the same time.
    """
    mean_s = sum(s for s, _ in samples) / max(1, len(samples))
    mean = sum(value for _, value in samples) / max(1, len(samples))
    spread = sum((s - mean_s) ** 2 for s, _ in samples)
    if spread == 0:
        raise ValueError("a slope needs samples of two times")
    return sum((s - mean_s) * (value - mean) for s, value in samples) / spread


def merge(known: Iterable[dict[str, Any]], figures: Iterable[Figure], origin: Origin) -> list[dict[str, Any]]:
    """Return the results sorted by name: figures replace known results of the same name."""
    by_name = {result["name"]: result for result in known}
    for figure in figures:
        by_name[figure.name] = {**vars(figure), **vars(origin)}
    return [by_name[name] for name in sorted(by_name)]


def read(path: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the stored results; none if there is no file."""
    known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return known


def write(figures: Sequence[Figure], origin: Origin, path: Path = RESULTS) -> None:
    """Store figures in the results file. Results under other names stay."""
    text = json.dumps(merge(read(path), figures, origin), indent=2) + "\n"
    # Written to a draft and renamed, so that an interrupted run leaves the old file intact.
    draft = path.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def machine() -> str:
    """Return cores, processor, memory and software versions, in one line."""
    memory_gb = psutil.virtual_memory().total / 1e9
    packages = ", ".join(f"{name} {version(name)}" for name in _PACKAGES)
    return (
        f"{os.cpu_count()} cores{_processor()}, {memory_gb:.0f} GB, {platform.system()} {platform.release()}, "
        f"Python {platform.python_version()}, {_java()}, Kafka {_kafka()}, {packages}"
    )


def _processor() -> str:
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text(encoding="utf-8").splitlines() if cpuinfo.exists() else []
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return f" ({names[0]})" if names else ""


def _java() -> str:
    output = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True).stderr
    # The version is the first quoted text: openjdk version "17.0.15" 2025-04-15.
    return f"Java {output.partition(chr(34))[2].partition(chr(34))[0]}"


def _kafka() -> str:
    jar = next(jar_folder("kafka").glob("kafka-clients-*.jar"), None)
    return jar.stem.removeprefix("kafka-clients-") if jar else "of unknown version"


def commit() -> str:
    """Return the commit of the checkout, with ``+`` if tracked files differ; ``unknown`` outside of git."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        # Files that a run itself writes do not count as changes.
        ours = [
            f":!{path}"
            for path in ("benchmarks/results.json", "benchmarks/parts", "docs/performance.md", "docs/images")
        ]
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *ours)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changed else head


def code(*modules: str, without: str = "") -> str:
    """Return a hash of all code that figures depend on. Parts of a run with the same hash count together.

    A commit hash would not do, because a commit may change only a test, a page, or another benchmark. Comments and
    docstrings are not part of the hash.

    Args:
        modules: modules of the benchmark, such as ``benchmarks.groups.finish_time``, with the benchmarks they import.
        without: module whose code and imports are left out, because it does not change what is measured.
    """
    product = {path for folder in _PRODUCT for path in (CHECKOUT / folder).rglob("*.py")}
    digest = hashlib.sha256()
    for path in (*sorted(product | _imported_files(modules, without)), *(CHECKOUT / name for name in _VERSIONS)):
        digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + _executable_code(path) + b"\0")
    return digest.hexdigest()[:12]


def _executable_code(path: Path) -> bytes:
    """Return the content of a file; for a Python module, its syntax tree without comments and docstrings."""
    if path.suffix != ".py":
        return path.read_bytes()
    tree = ast.parse(path.read_text(encoding="utf-8"))
    for node in ast.walk(tree):
        if isinstance(node, (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)) and ast.get_docstring(
            node, clean=False
        ):
            del node.body[0]
    return ast.dump(tree).encode()


def parts(group: str, *modules: str, without: str = "") -> Path:
    """Return the folder for the parts of a group that were measured with the current code of these modules."""
    return PARTS / group / code(*modules, without=without)


def _imported_files(modules: Iterable[str], without: str) -> set[Path]:
    """Return the files of benchmark modules and of all benchmark modules that they import."""
    files: set[Path] = set()
    left = list(modules)
    while left:
        name = left.pop()
        path = CHECKOUT.joinpath(*name.split(".")).with_suffix(".py")
        if name == without or path in files or not path.is_file():
            continue
        files.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(RESULTS.parent.name):
                left += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return files


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
