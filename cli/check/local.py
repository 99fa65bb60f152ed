"""Checks of the machine that Headroom runs on: Python, Java, jars, memory and the store."""

from __future__ import annotations

import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlparse

from cli.check.machine import available_bytes, cores, heap_bytes
from cli.check.result import Check, no, ok, unknown
from cluster.java import jar_folder, java_command
from schemas.config import Settings
from schemas.errors import HeadroomError
from schemas.tables import TABLES
from streaming.delta.damage import Damage, damages
from streaming.delta.locations import local_path, require_writable
from streaming.delta.query import table_url

LEAST_PYTHON = (3, 10)
LEAST_JAVA = 17
LEAST_CORES = 2
# Of the alert path and of the history.
SPARK_JVMS = 2
# Resident of all processes beside these heaps: 1.4 GB in the group scale of docs/performance.md, 5.1 GB after an hour
# in the group memory, where what processes share counts for each of them.
BESIDES_HEAPS_BYTES = 3_000_000_000
LEAST_DISK_BYTES = 2_000_000_000


def checks(settings: Settings) -> list[tuple[str, Callable[[], list[Check]]]]:
    """Return the checks that need no cluster, by name."""
    return [
        ("Python", lambda: [python(sys.version_info[:2])]),
        ("Java", lambda: [java()]),
        ("Jars", lambda: [jars(settings)]),
        ("Memory", lambda: [memory(available_bytes(), settings)]),
        ("Cores", lambda: [cpu(cores())]),
        ("Store", lambda: [store(settings)]),
        ("Tables", lambda: tables(settings.store.path)),
    ]


def python(version: tuple[int, ...]) -> Check:
    """Return whether a version of Python, as (major, minor), will do."""
    found = f"{platform.python_version()} at {sys.executable}"
    if version >= LEAST_PYTHON:
        return ok("Python", found)
    return no("Python", found, "Install Python 3.10 or newer and make the virtual environment anew.")


def java() -> Check:
    """Return whether there is a Java for Spark, from asking it for its version."""
    command = java_command()
    said = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    version = java_major(said)
    if version is None:
        return unknown("Java", f"{command} did not tell its version", "Run `java -version` and see what it says.")
    if version < LEAST_JAVA:
        return no("Java", f"{version} at {command}", f"Install Java {LEAST_JAVA} or newer, or set JAVA_HOME to one.")
    return ok("Java", f"{version} at {command}")


def java_major(said: str) -> int | None:
    """Return the major version in the output of ``java -version``; None if it names none. 1.8 is Java 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(match[1]) if match else None


def jars(settings: Settings) -> Check:
    """Return whether the jars of Spark's Kafka source and of Delta are there."""
    folder = Path(settings.spark.jars) if settings.spark.jars else jar_folder("spark")
    names = [jar.name for jar in folder.glob("*.jar")]
    missing = [part for part in ("delta-spark", "spark-sql-kafka") if not any(n.startswith(part) for n in names)]
    if missing:
        return no("Jars", f"{folder} lacks {' and '.join(missing)}", "Run `make setup`, or set spark.jars.")
    return ok("Jars", f"{len(names)} in {folder}")


def memory(free_bytes: int, settings: Settings) -> Check:
    """Return whether the free memory is enough for a watch.

    Args:
        free_bytes: memory that new processes may take.
        settings: ``[spark]`` sizes the heap of each of the two JVMs with Spark.
    """
    heap = settings.spark.conf.get("spark.driver.memory", settings.spark.driver_memory)
    try:
        needed_bytes = BESIDES_HEAPS_BYTES + SPARK_JVMS * heap_bytes(heap)
    except ValueError:
        return no("Memory", f"spark.driver_memory {heap} is no size", 'Write it as "1g" or "512m".')
    need = f"a watch takes about {needed_bytes / 1e9:.1f} GB with spark.driver_memory {heap}"
    found = f"{free_bytes / 1e9:.1f} GB available; {need}"
    if free_bytes >= needed_bytes:
        return ok("Memory", found)
    return no("Memory", found, f"Free {(needed_bytes - free_bytes) / 1e9:.1f} GB, or lower spark.driver_memory.")


def cpu(count: float) -> Check:
    """Return whether so many cores are enough for a watch."""
    found = f"{count:g} for this process; a watch needs {LEAST_CORES}"
    if count >= LEAST_CORES:
        return ok("Cores", found)
    remedy = "Give it more, or raise collect.interval_s: with fewer, a tick may not be evaluated before the next."
    return unknown("Cores", found, remedy)


def store(settings: Settings) -> Check:
    """Return whether the tables' folder can be written and has room; unknown for a URL that only Spark can reach."""
    path = settings.store.path
    url = urlparse(path)
    if url.scheme not in ("", "file"):
        return unknown("Store", f"{path} was not tried", "Spark opens it at the start of `headroom watch`.")
    return local_store(Path(url.path if url.scheme else path))


def tables(store_path: str) -> list[Check]:
    """Return whether the tables that are there are whole: one check for each that is not, else one for all."""
    if local_path(store_path) is None:
        return []
    found = {table.path: damages(table_url(store_path, table.path)) for table in TABLES}
    there = sum(Path(table_url(store_path, table.path)).exists() for table in TABLES)
    return [_damaged(path, of_table) for path, of_table in found.items() if of_table] or [
        ok("Tables", f"{there} are there, none is damaged" if there else "there are none yet")
    ]


def _damaged(table: str, found: Sequence[Damage]) -> Check:
    first, more = found[0], len(found) - 1
    others = f", and {more} more file(s)" if more else ""
    remedy = f"Run `headroom maintain --repair`; lost with this file: {first.lost}."
    return no("Tables", f"{table}: {first.file} {first.fault}{others}", remedy)


def local_store(folder: Path) -> Check:
    """Return whether a folder, or the nearest one above it that exists, can be written and has room."""
    try:
        require_writable(str(folder))
    except HeadroomError as error:
        return no("Store", f"{error.subject} {error.rule}", error.remedy)
    existing = next(place for place in (folder.absolute(), *folder.absolute().parents) if place.exists())
    free = shutil.disk_usage(existing).free
    found = f"{folder}: {free / 1e9:.1f} GB free"
    if free < LEAST_DISK_BYTES:
        return no("Store", found, f"Free {LEAST_DISK_BYTES / 1e9:.0f} GB, or set store.path to a larger disk.")
    return ok("Store", found)
