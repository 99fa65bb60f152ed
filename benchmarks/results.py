"""The figures that a benchmark gives, what they are computed with, and the file that keeps them."""

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

from cluster.java import jar_folder, java_command

RESULTS = Path(__file__).resolve().parent / "results.json"
CHECKOUT = RESULTS.parent.parent
# What the parts of long runs leave, by group and code. Kept with the code: a machine may not last as long as a run.
PARTS = RESULTS.parent / "parts"
_PACKAGES = ("pyspark", "delta-spark", "kafka-python")
# What a figure is a figure of: tests, documents and containers change none.
_PRODUCT = ("alerts", "cli", "cluster", "planning", "schemas", "streaming")
_VERSIONS = ("ivy.xml", "requirements.lock")


@dataclass(frozen=True)
class Figure:
    """One measured figure.

    Attributes:
        name: as the results file knows it.
        value: the figure.
        unit: of the value.
        n: how many measurements it comes from.
    """

    name: str
    value: float
    unit: str
    n: int


@dataclass(frozen=True)
class Origin:
    """How figures came about.

    Attributes:
        command: what was run.
        machine: what it ran on.
        date: when, ISO 8601 UTC.
        commit: of the code, with ``+`` if files were changed since.
    """

    command: str
    machine: str
    date: str
    commit: str


def percentile(values: Sequence[float], ratio: float) -> float:
    """Return the value that ``ratio`` of all values do not exceed, with straight lines between neighbours.

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
    """Return the slope of the straight line with the least squares through (seconds, value) pairs.

    Raises:
        ValueError: all samples are of one time.
    """
    mean_s = sum(s for s, _ in samples) / max(1, len(samples))
    mean = sum(value for _, value in samples) / max(1, len(samples))
    spread = sum((s - mean_s) ** 2 for s, _ in samples)
    if spread == 0:
        raise ValueError("a slope needs samples of two times")
    return sum((s - mean_s) * (value - mean) for s, value in samples) / spread


def merge(known: Iterable[dict[str, Any]], figures: Iterable[Figure], origin: Origin) -> list[dict[str, Any]]:
    """Return the results by name: those known, and new or replaced ones from the figures."""
    by_name = {result["name"]: result for result in known}
    for figure in figures:
        by_name[figure.name] = {**vars(figure), **vars(origin)}
    return [by_name[name] for name in sorted(by_name)]


def read(path: Path = RESULTS) -> list[dict[str, Any]]:
    """Return the results that are kept; there may be none."""
    known: list[dict[str, Any]] = json.loads(path.read_text(encoding="utf-8")) if path.exists() else []
    return known


def write(figures: Sequence[Figure], origin: Origin, path: Path = RESULTS) -> None:
    """Put figures into the results file; what other runs left there under other names stays."""
    text = json.dumps(merge(read(path), figures, origin), indent=2) + "\n"
    # Written beside and renamed: an interrupted run leaves the old file whole.
    draft = path.with_suffix(".tmp")
    draft.write_text(text, encoding="utf-8")
    draft.replace(path)


def machine() -> str:
    """Return cores, memory, processor and the versions of what runs on it, in one line."""
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
    said = subprocess.run([java_command(), "-version"], capture_output=True, text=True, check=True).stderr
    return f"Java {said.partition(chr(34))[2].partition(chr(34))[0]}"


def _kafka() -> str:
    jar = next(jar_folder("kafka").glob("kafka-clients-*.jar"), None)
    return jar.stem.removeprefix("kafka-clients-") if jar else "of unknown version"


def commit() -> str:
    """Return the commit of the checkout, with ``+`` behind it if tracked files differ; ``unknown`` outside of git."""
    try:
        head = _git("rev-parse", "--short=12", "HEAD")
        # What a run writes itself does not count.
        ours = [
            f":!{path}"
            for path in ("benchmarks/results.json", "benchmarks/parts", "docs/performance.md", "docs/images")
        ]
        changed = _git("status", "--porcelain", "--untracked-files=no", "--", ".", *ours)
    except (OSError, subprocess.CalledProcessError):
        return "unknown"
    return f"{head}+" if changed else head


def code(*modules: str, without: str = "") -> str:
    """Return a name for all code that figures depend on, as it stands now: parts of a run with the same count together.

    A commit would not do: what it changes may be a test, a page with figures, or another benchmark. Comments and
    docstrings do not count.

    Args:
        modules: of the benchmark, as ``benchmarks.groups.finish_time``; what they import counts too.
        without: a module among these that is not followed, as it changes nothing of what is measured.
    """
    product = {path for folder in _PRODUCT for path in (CHECKOUT / folder).rglob("*.py")}
    digest = hashlib.sha256()
    for path in (*sorted(product | _imported(modules, without)), *(CHECKOUT / name for name in _VERSIONS)):
        digest.update(str(path.relative_to(CHECKOUT)).encode() + b"\0" + _executable_code(path) + b"\0")
    return digest.hexdigest()[:12]


def _executable_code(path: Path) -> bytes:
    """Return a file, or of a module what is left of it without comments and docstrings."""
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
    """Return the folder of what a group measured with the code of these modules as it stands now."""
    return PARTS / group / code(*modules, without=without)


def _imported(modules: Iterable[str], without: str) -> set[Path]:
    """Return the files of modules of benchmarks, and of all benchmarks that they import."""
    found: set[Path] = set()
    left = list(modules)
    while left:
        name = left.pop()
        path = CHECKOUT.joinpath(*name.split(".")).with_suffix(".py")
        if name == without or path in found or not path.is_file():
            continue
        found.add(path)
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith(RESULTS.parent.name):
                left += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return found


def _git(*arguments: str) -> str:
    return subprocess.run(["git", *arguments], cwd=CHECKOUT, capture_output=True, text=True, check=True).stdout.strip()
