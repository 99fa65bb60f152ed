"""Requirements of the machine that set-up checks first; standard library only, see setup.py."""

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
    """Set-up cannot continue; the message has subject, rule and remedy in one line."""

    def __init__(self, subject: str, rule: str, remedy: str) -> None:
        super().__init__(f"{subject}: {rule}. {remedy}")


def use_utf8() -> None:
    """Let programs that are started from now on read paths with any letters; with ``LC_ALL=C`` Java cannot.

    With ``LANG=C`` Python itself does so for its children (PEP 538).
    """
    if os.environ.get("LC_ALL") in ("C", "POSIX"):
        os.environ["LC_ALL"] = "C.UTF-8"


def check_python() -> None:
    """Check that this Python is new enough."""
    if sys.version_info[:2] < MIN_PYTHON:
        rule = "this is Python {}.{}, and 3.10 or newer is needed".format(*sys.version_info[:2])
        raise SetupError("python", rule, "Install one, or name it: make PYTHON=python3.12 setup")


def venv_python(venv: Path) -> "str | None":
    """Return the version of a virtual environment's Python, such as ``3.12.3``; None if it is unknown."""
    match = re.search(r"^version(?:_info)? *= *(\d+\.\d+\.\d+)", text_of(venv / "pyvenv.cfg"), re.MULTILINE)
    return match.group(1) if match else None


def check_venv_module() -> None:
    """Check that this Python can create virtual environments with pip."""
    if not all(importlib.util.find_spec(name) for name in ("venv", "ensurepip")):
        package = "python{}.{}-venv".format(*sys.version_info[:2])
        raise SetupError(
            "python", "has no venv module", "Install it (on Debian and Ubuntu: apt install " + package + ")"
        )


def java_command() -> str:
    """Return the path of ``java``: that of JAVA_HOME if it is set, otherwise the first on the PATH."""
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
    """Check that Java is installed and new enough, and return the output of ``java -version``."""
    java = java_command()
    try:
        result = subprocess.run([java, "-version"], stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
    except OSError as error:
        rule = f"{java} cannot be run ({error.strerror})"
        raise SetupError("java", rule, "Install Java 17, or set JAVA_HOME to it") from None
    lines = result.stdout.decode(errors="replace").splitlines(keepends=True)
    # One about JAVA_TOOL_OPTIONS says nothing about this Java.
    version_output = "".join(line for line in lines if not line.startswith("Picked up "))
    version = java_version(version_output)
    if version is None:
        raise SetupError("java", f"{java} does not print its version", "Install Java 17, or set JAVA_HOME to it")
    if version < MIN_JAVA:
        rule = f"{java} is Java {version}, and 17 or newer is needed"
        raise SetupError("java", rule, "Install Java 17 or newer, or set JAVA_HOME to one")
    return version_output


def java_version(version_output: str) -> "int | None":
    """Return the major version in the output of ``java -version``; None if there is none. Java 8 prints 1.8."""
    match = re.search(r'version "(?:1\.)?(\d+)', version_output)
    return int(match.group(1)) if match else None


def check_memory() -> None:
    """Check that brokers and Spark have enough memory; passes if the available memory is unknown."""
    available = available_memory_bytes(Path("/proc/meminfo"), Path("/sys/fs/cgroup"))
    if available is not None and available < MIN_MEMORY_BYTES:
        rule = f"{available / 1e9:.1f} GB available, and 3 GB are needed for three brokers and Spark"
        raise SetupError("memory", rule, "Close other programs, or give the machine or container more")


def available_memory_bytes(meminfo: Path, cgroup: Path) -> "int | None":
    """Return the available memory in bytes, limited by the container's limit; None if unknown."""
    match = re.search(r"^MemAvailable:\s+(\d+) kB", text_of(meminfo), re.MULTILINE)
    known = [int(match.group(1)) * 1024] if match else []
    limit = text_of(cgroup / "memory.max").strip()
    # Memory of processes. The rest of a container's usage is file cache, which the kernel reclaims.
    anonymous = re.search(r"^anon (\d+)", text_of(cgroup / "memory.stat"), re.MULTILINE)
    if limit.isdigit() and anonymous:
        known.append(int(limit) - int(anonymous.group(1)))
    return min(known) if known else None


def check_disk(folder: Path) -> None:
    """Check that the folder's disk has space for packages and jars."""
    free = shutil.disk_usage(str(folder)).free
    if free < MIN_DISK_BYTES:
        rule = f"{free / 1e9:.1f} GB free in {folder}, and 2 GB are needed"
        raise SetupError("disk", rule, "Make room, or clone to a larger disk")


def is_stamped(stamp: Path, inputs_hash: str) -> bool:
    """Return whether a step was completed with the same inputs; its stamp, a hash of them, is written last."""
    return text_of(stamp) == inputs_hash


def text_of(file: Path) -> str:
    """Return the text of a file; empty if it cannot be read."""
    try:
        return file.read_text(errors="replace")
    except OSError:
        return ""
