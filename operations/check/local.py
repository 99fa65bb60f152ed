"""Checks of the machine that Headroom runs on: Python, Java, jars, memory and the store."""

from __future__ import annotations

import os
import platform
import re
import shutil
import subprocess
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from urllib.parse import urlparse

from headroom.cluster.java import jar_folder, java_command
from headroom.cluster.machine import available_bytes, cores
from headroom.operations.check.result import Check, failure, ok, unknown
from headroom.schemas.config import Settings, StoreSettings
from headroom.schemas.errors import HeadroomError
from headroom.schemas.quantities import parse_heap_bytes
from headroom.schemas.tables import ALL_TABLES, DURABLE_TABLES
from headroom.streaming.delta.damage import UNKNOWN, UNREADABLE_REMEDY, Damage, damages
from headroom.streaming.delta.locations import local_path, require_writable
from headroom.streaming.delta.query import table_url
from headroom.streaming.durability.query_checkpoints import checkpoints_of

MIN_PYTHON = (3, 10)
MIN_JAVA = 17
MIN_CORES = 2
# One for the alert path, one for the record and gold jobs.
SPARK_JVMS = 2
# Resident memory of all processes without these heaps: 1.4 GB in the group scale of docs/performance.md, 5.1 GB after
# an hour in the group memory, which counts shared pages once per process.
OUTSIDE_HEAPS_BYTES = 3_000_000_000
MIN_DISK_BYTES = 2_000_000_000


def checks(settings: Settings) -> list[tuple[str, Callable[[], list[Check]]]]:
    """Return the checks that need no cluster, by name."""
    return [
        ("Python", lambda: [python(sys.version_info[:2])]),
        ("Java", lambda: [java()]),
        ("Jars", lambda: [jars(settings)]),
        ("Memory", lambda: [memory(available_bytes(), settings)]),
        ("Cores", lambda: [cpu(cores())]),
        ("Store", lambda: [store(settings)]),
        ("Tables", lambda: [*tables(settings.store.path), *checkpoints(settings.store)]),
        *([("Goals", lambda: [goals(settings)])] if settings.balance.goals else []),
    ]


def goals(settings: Settings) -> Check:
    """Return whether every goal of ``balance.goals`` can be loaded."""
    # Only here, because the goals need numpy.
    from headroom.planning.balance.goals.catalogue import configured_goals, find_goals

    try:
        find_goals(configured_goals(settings.balance))
    except HeadroomError as error:
        return failure("Goals", f"{error.subject}: {error.rule}", error.remedy)
    return ok("Goals", settings.balance.goals)


def python(version: tuple[int, ...]) -> Check:
    """Return whether a version of Python, as (major, minor), is new enough."""
    finding = f"{platform.python_version()} at {sys.executable}"
    if version >= MIN_PYTHON:
        return ok("Python", finding)
    return failure("Python", finding, "Install Python 3.10 or newer and create the virtual environment again.")


def java() -> Check:
    """Return whether a Java for Spark is installed and new enough, by running ``java -version``."""
    command = java_command()
    output = subprocess.run([command, "-version"], capture_output=True, text=True, timeout=20, check=False).stderr
    version = java_major(output)
    if version is None:
        return unknown("Java", f"{command} did not print its version", "Run `java -version` and check its output.")
    if version < MIN_JAVA:
        return failure("Java", f"{version} at {command}", f"Install Java {MIN_JAVA} or newer, or set JAVA_HOME to one.")
    return ok("Java", f"{version} at {command}")


def java_major(output: str) -> int | None:
    """Return the major version in the output of ``java -version``; None if there is none. 1.8 is Java 8."""
    match = re.search(r'version "(?:1\.)?(\d+)', output)
    return int(match[1]) if match else None


def jars(settings: Settings) -> Check:
    """Return whether the jars of Spark's Kafka source and of Delta are installed."""
    folder = Path(settings.spark.jars) if settings.spark.jars else jar_folder("spark")
    names = [jar.name for jar in folder.glob("*.jar")]
    missing = [part for part in ("delta-spark", "spark-sql-kafka") if not any(n.startswith(part) for n in names)]
    if missing:
        return failure("Jars", f"{' and '.join(missing)} missing in {folder}", "Run `make setup`, or set spark.jars.")
    return ok("Jars", f"{len(names)} in {folder}")


def memory(free_bytes: int, settings: Settings) -> Check:
    """Return whether the free memory is enough for a watch.

    Args:
        free_bytes: memory available to new processes.
        settings: all settings; ``[spark]`` sets the heap size of each of the two JVMs with Spark.
    """
    heap = settings.spark.heap()
    needed_bytes = OUTSIDE_HEAPS_BYTES + SPARK_JVMS * parse_heap_bytes(heap)
    need = f"a watch takes about {needed_bytes / 1e9:.1f} GB with spark.driver_memory {heap}"
    finding = f"{free_bytes / 1e9:.1f} GB available; {need}"
    if free_bytes >= needed_bytes:
        return ok("Memory", finding)
    return failure("Memory", finding, f"Free {(needed_bytes - free_bytes) / 1e9:.1f} GB, or lower spark.driver_memory.")


def cpu(count: float) -> Check:
    """Return whether a number of cores is enough for a watch."""
    finding = f"{count:g} for this process; a watch needs {MIN_CORES}"
    if count >= MIN_CORES:
        return ok("Cores", finding)
    remedy = "Give it more, or raise collect.interval_s: with fewer, a tick may not be evaluated before the next."
    return unknown("Cores", finding, remedy)


def store(settings: Settings) -> Check:
    """Return whether the tables' folder is writable and has space; unknown for a URL that only Spark can open."""
    path = settings.store.path
    url = urlparse(path)
    if url.scheme not in ("", "file"):
        return unknown("Store", f"{path} was not tried", "Spark opens it at the start of `headroom watch`.")
    return local_store(Path(url.path if url.scheme else path))


def tables(store_path: str) -> list[Check]:
    """Return whether the existing tables are intact: one check per damaged table, or a single check if none is."""
    if local_path(store_path) is None:
        return []
    # Tables with rows that a promise rests on are small enough to be decoded.
    damage_by_table = {
        table.path: damages(table_url(store_path, table.path), thorough=table in DURABLE_TABLES) for table in ALL_TABLES
    }
    existing = sum(os.path.exists(table_url(store_path, table.path)) for table in ALL_TABLES)
    return [_damage_check(path, damage) for path, damage in damage_by_table.items() if damage] or [
        ok("Tables", f"{existing} are there, none is damaged" if existing else "there are none yet")
    ]


def checkpoints(store: StoreSettings) -> list[Check]:
    """Return one check per damaged checkpoint; none if all are undamaged."""
    damage_by_query = {name: checkpoint.damage() for name, _, checkpoint in checkpoints_of(store)}
    return [
        _unreadable_check("Checkpoints", name, one)
        if one.lost == UNKNOWN
        else failure("Checkpoints", f"{name}: {one.file} {one.fault}", f"Its job begins again; lost: {one.lost}.")
        for name, one in damage_by_query.items()
        if one is not None
    ]


def _damage_check(table: str, damaged: Sequence[Damage]) -> Check:
    first, more = damaged[0], len(damaged) - 1
    if first.lost == UNKNOWN:
        return _unreadable_check("Tables", table, first)
    others = f", and {more} more file(s)" if more else ""
    remedy = f"Run `headroom maintain --repair`; lost with this file: {first.lost}."
    return failure("Tables", f"{table}: {first.file} {first.fault}{others}", remedy)


def _unreadable_check(row: str, name: str, damage: Damage) -> Check:
    """Return the check of a table or checkpoint that cannot be read."""
    return unknown(row, f"{name}: {damage.file} {damage.fault}", UNREADABLE_REMEDY)


def local_store(folder: Path) -> Check:
    """Return whether a folder, or its nearest existing parent, is writable and has enough free space."""
    try:
        require_writable(str(folder))
    except HeadroomError as error:
        return failure("Store", f"{error.subject} {error.rule}", error.remedy)
    parent = next(path for path in (folder.absolute(), *folder.absolute().parents) if path.exists())
    free = shutil.disk_usage(parent).free
    finding = f"{folder}: {free / 1e9:.1f} GB free"
    if free < MIN_DISK_BYTES:
        return failure("Store", finding, f"Free {MIN_DISK_BYTES / 1e9:.0f} GB, or set store.path to a larger disk.")
    return ok("Store", finding)
