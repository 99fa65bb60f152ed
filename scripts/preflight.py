"""What the machine must have before anything is set up; standard library only, see setup.py."""

import importlib.util
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

MIN_PYTHON = (3, 10)
MIN_JAVA = 17
MIN_MEMORY_BYTES = 3 * 10**9
MIN_DISK_BYTES = 2 * 10**9


class SetupError(Exception):
    """The set-up cannot go on: what it is about, what is wrong, and what to do; told in one line."""

    def __init__(self, subject: str, rule: str, remedy: str) -> None:
        super().__init__(f"{subject}: {rule}. {remedy}")


def check_python() -> None:
    """Return if this Python is new enough."""
    if sys.version_info[:2] < MIN_PYTHON:
        found = "this is Python {}.{}, and 3.10 or newer is needed".format(*sys.version_info[:2])
        raise SetupError("python", found, "Install one, or name it: make PYTHON=python3.12 setup")


def check_venv_module() -> None:
    """Return if this Python can create virtual environments with pip in them."""
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info[:2])
        raise SetupError(
            "python", "has no venv module", "Install it (on Debian and Ubuntu: apt install " + package + ")"
        )


def java_command() -> str:
    """Return the ``java`` to run: that of JAVA_HOME if it is set, else the first on the PATH."""
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=os.path.join(home, "bin")) if home else shutil.which("java")
    if java is None:
        where = f"in JAVA_HOME={home}" if home else "on the PATH"
        remedy = (
            "Install Java 17 or newer (on Debian and Ubuntu: apt install openjdk-17-jre-headless), or set JAVA_HOME"
        )
        raise SetupError("java", "not found " + where, remedy)
    return java


def check_java() -> str:
    """Return what Java says it is, if it is there and new enough."""
    java = java_command()
    result = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    said = result.stdout.decode(errors="replace")
    version = java_version(said)
    if version is None:
        raise SetupError("java", f"{java} does not tell its version", "Install Java 17, or set JAVA_HOME to it")
    if version < MIN_JAVA:
        rule = f"{java} is Java {version}, and 17 or newer is needed"
        raise SetupError("java", rule, "Install Java 17 or newer, or set JAVA_HOME to one")
    return said


def java_version(said: str) -> "int | None":
    """Return the major version in what ``java -version`` says; None if there is none. Java 8 calls itself 1.8."""
    found = re.search(r'version "(?:1\.)?(\d+)', said)
    return int(found.group(1)) if found else None


def check_memory() -> None:
    """Return if there is memory for brokers and Spark, or if the system does not tell."""
    available = available_memory_bytes(Path("/proc/meminfo"), Path("/sys/fs/cgroup"))
    if available is not None and available < MIN_MEMORY_BYTES:
        rule = f"{available / 1e9:.1f} GB available, and 3 GB are needed for three brokers and Spark"
        raise SetupError("memory", rule, "Close other programs, or give the machine or container more")


def available_memory_bytes(meminfo: Path, cgroup: Path) -> "int | None":
    """Return the memory that may still be taken, in bytes, the container's limit included; None if unknown."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _text(meminfo), re.MULTILINE)
    known = [int(found.group(1)) * 1024] if found else []
    limit = _text(cgroup / "memory.max").strip()
    # What programs hold; the rest of a container's use is file cache, which gives way.
    held = re.search(r"^anon (\d+)", _text(cgroup / "memory.stat"), re.MULTILINE)
    if limit.isdigit() and held:
        known.append(int(limit) - int(held.group(1)))
    return min(known) if known else None


def check_disk(folder: Path) -> None:
    """Return if the folder's disk has room for packages and jars."""
    free = shutil.disk_usage(str(folder)).free
    if free < MIN_DISK_BYTES:
        rule = f"{free / 1e9:.1f} GB free in {folder}, and 2 GB are needed"
        raise SetupError("disk", rule, "Make room, or clone to a larger disk")


def is_stamped(stamp: Path, mark: str) -> bool:
    """Return whether a step was completed with these very inputs: its stamp is written last."""
    return _text(stamp) == mark


def _text(file: Path) -> str:
    try:
        return file.read_text()
    except OSError:
        return ""
