"""Sets up the checkout once: virtual environment, packages, jars. Run by make; later runs do nothing.

It runs before the virtual environment exists, so it uses only the standard library. Its syntax is valid for Python 3.6,
so that an old Python prints a clear error instead of a syntax error.
"""

import contextlib
import fcntl
import hashlib
import os
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import jars
import preflight
from preflight import SetupError
from side_by_side import Step, megabytes, rate, run_all

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
VENV_STAMP = VENV / ".installed"
VENV_LOG = VENV / "pip.log"
ARCHIVE_STAMP = ROOT / ".jars" / ".archived"
ARCHIVE_LOG = ROOT / ".jars" / "archive.log"
LOCK = ROOT / ".jars" / ".lock"
# Of the operating system, in pip's output.
_NO_SPACE = "No space left on device"

# What a target needs beyond packages: configurations of jars, and the class archives of Spark and brokers.
LEVELS = {
    "packages": (),
    "jars": ("spark", "kafka", "agents"),
    "all-jars": ("spark", "kafka", "agents", "zookeeper", "remote-storage", "mirror"),
    "spark": ("spark", "kafka", "agents"),
    "tests": ("spark", "kafka", "agents", "zookeeper", "remote-storage", "mirror"),
}
_WITH_SPARK = ("spark", "tests")


def main() -> int:
    """Set up the checkout and return the exit code: 0 success, 1 failure with a one-line error, 130 interrupted.

    The argument names what is needed: packages (lint and types), jars (the default), spark (also class archives),
    all-jars and tests (the same with the jars that only tests need).
    """
    level = sys.argv[1] if len(sys.argv) > 1 else "jars"
    if level not in LEVELS:
        print("set-up: {}: is not one of {}".format(level, ", ".join(LEVELS)), file=sys.stderr)
        return 2
    preflight.use_utf8()
    try:
        preflight.check_python()
        java = preflight.check_java() if LEVELS[level] else ""
        if level in _WITH_SPARK:
            preflight.check_memory()
        _fetch(LEVELS[level])
        _tell_another_python()
        if level in _WITH_SPARK:
            _archive_classes(java)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except OSError as error:
        # A full or read-only disk, or the files of another user.
        print(f"set-up: {error}. Make room there, or make it writable, then run this again", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up: interrupted. Run it again to continue.", file=sys.stderr)
        return 130
    return 0


def _fetch(configurations: "tuple[str, ...]") -> None:
    """Install the packages and download the jars that are missing, side by side."""
    if PackagesStep().is_done and not jars.missing(ROOT, configurations):
        return
    with _alone():
        # Another one may have fetched them meanwhile.
        _fetch_missing(configurations)


def _tell_another_python() -> None:
    """Print which Python is used if .venv was made with another one than this, whose tests would not be run."""
    used, own = preflight.venv_python(VENV), "{}.{}".format(*sys.version_info[:2])
    if used is not None and used.split(".")[:2] != own.split("."):
        print(f"set-up: .venv has Python {used}, and this is {own}. To use {own}, run `make clean` first", flush=True)


@contextlib.contextmanager
def _alone() -> "Iterator[None]":
    """Let only one set-up of this checkout be in this block at a time."""
    LOCK.parent.mkdir(exist_ok=True)
    with LOCK.open("a") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            print("set-up: waiting for another set-up of this checkout", flush=True)
            fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def _fetch_missing(configurations: "tuple[str, ...]") -> None:
    packages = PackagesStep()
    steps: list[Step] = [] if packages.is_done else [packages]
    missing = jars.missing(ROOT, configurations)
    if missing:
        steps.append(jars.JarsStep(ROOT, missing, packages.pyspark_jars))
    if not steps:
        return
    preflight.check_disk(ROOT)
    sizes = ["packages into .venv (about 600 MB with Spark)"] if not packages.is_done else []
    sizes += [f"jars into .jars (about {megabytes(sum(jars.SIZES[c] for c in missing))})"] if missing else []
    print("set-up: fetching {}, once".format(" and ".join(sizes)), flush=True)
    began = time.monotonic()
    run_all(steps)
    print(f"set-up: all fetched in {time.monotonic() - began:.0f} s", flush=True)


def _venv_hash() -> str:
    """Return a hash of the environment's inputs; if it changes, the environment is installed again."""
    inputs = b"".join((ROOT / name).read_bytes() for name in ("requirements.lock", "pyproject.toml"))
    # An editable install and the scripts in .venv/bin contain the path, so a moved checkout is installed again.
    return hashlib.sha256(inputs + str(ROOT).encode()).hexdigest()


class PackagesStep(Step):
    """Creates .venv and installs the packages of requirements.lock, and this checkout.

    Attributes:
        is_done: whether that was done before, with the same inputs.
    """

    def __init__(self) -> None:
        super().__init__("packages")
        # The Python that it was made with may have been removed or replaced since.
        self.is_done = preflight.is_stamped(VENV_STAMP, _venv_hash()) and _usable_venv()
        self._began = time.monotonic()

    def work(self) -> None:
        """Install the packages; raises SetupError if one cannot be installed."""
        inputs_hash = _venv_hash()
        if not _usable_venv():
            preflight.check_venv_module()
            log = Path(tempfile.gettempdir()) / f"headroom-venv-{os.getpid()}.log"
            if self.command([sys.executable, "-m", "venv", "--clear", str(VENV)], ROOT, log) != 0:
                raise SetupError("python", "creating .venv failed: " + _last_line(log), "See " + str(log))
            log.unlink()
        VENV_STAMP.unlink(missing_ok=True)
        self._pip(VENV_LOG, "-r", "requirements.lock")
        self._pip(VENV / "pip-own.log", "--no-deps", "--no-build-isolation", "--no-index", "--editable", ".")
        VENV_STAMP.write_text(inputs_hash)

    def progress(self) -> str:
        """Return what pip does: bytes downloaded and their rate, or the installation that follows."""
        text = preflight.text_of(VENV_LOG)
        if "Installing collected packages" in text:
            return "installing"
        if "Building wheel for pyspark" in text:
            return "unpacking PySpark"
        return rate(downloaded_bytes(text), self._began) + " of about 600 MB"

    def pyspark_jars(self) -> Path:
        """Return PySpark's folder of jars, once the packages are installed."""
        while self.is_alive():
            self.join(0.1)
        if self.error is not None:
            raise self.error
        return _pyspark_jars()

    def _pip(self, log: Path, *arguments: str) -> None:
        command = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--progress-bar", "off"]
        command += ["--timeout", "60", "--retries", "3", *arguments]
        if self.command(command, ROOT, log) != 0:
            if self.is_stopped:
                raise SetupError("packages", "were not installed", "Run this again")
            output = preflight.text_of(log)
            remedy = "Check the network, and PIP_INDEX_URL and HTTPS_PROXY if used"
            if _NO_SPACE in output:
                # pip unpacks and builds in the folder for temporary files.
                remedy = f"Make room in {ROOT} and in {tempfile.gettempdir()}, or set TMPDIR to a larger disk"
            remedy += f", then run this again; see {log}"
            raise SetupError("packages", "cannot be installed: " + _failure_reason(output), remedy)


def downloaded_bytes(output: str) -> float:
    """Return the bytes of the packages that pip's output says it downloads."""
    units = {"kB": 1e3, "MB": 1e6, "GB": 1e9}
    sizes = re.findall(r"^\s*Downloading \S+ \(([\d.]+) (kB|MB|GB)\)", output, re.MULTILINE)
    return sum(float(number) * units[unit] for number, unit in sizes)


def _usable_venv() -> bool:
    """Return whether .venv is complete, belongs to this folder, and has a supported Python."""
    checks = "import sys, pip; assert sys.version_info >= (3, 10); print(sys.prefix)"
    try:
        completed = subprocess.run([str(VENV_PYTHON), "-c", checks], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return completed.returncode == 0 and Path(completed.stdout.decode().strip()).resolve() == VENV.resolve()


def _last_line(log: Path) -> str:
    lines = preflight.text_of(log).strip().splitlines()
    return lines[-1] if lines else "no output"


def _failure_reason(output: str) -> str:
    """Return the reason why pip failed; an unreachable registry appears only in its warnings, not in its errors."""
    if _NO_SPACE in output:
        return "there is no space left"
    if any(text in output for text in ("connection broken", "ConnectionError", "ProxyError", "timed out")):
        return "the package registry is out of reach"
    errors = [line.strip() for line in output.splitlines() if "ERROR" in line]
    return errors[-1] if errors else "pip failed"


def _pyspark_jars() -> Path:
    folders = sorted(VENV.glob("lib/python*/site-packages/pyspark/jars"))
    if not folders:
        raise SetupError(".venv", "has no PySpark", "Run `make clean`, then this again")
    return folders[-1]


class ArchiveStep(Step):
    """Writes the class archives.

    Attributes:
        exit_code: that of the program that writes them; None before its end.
    """

    def __init__(self) -> None:
        super().__init__("class archives")
        self.exit_code: int | None = None

    def work(self) -> None:
        """Write the archives."""
        words = [str(VENV_PYTHON), str(ROOT / "scripts" / "class_archive.py")]
        self.exit_code = self.command(words, ROOT, ARCHIVE_LOG)

    def progress(self) -> str:
        """Return what the program does, as the last line of its output says."""
        return _last_line(ARCHIVE_LOG)


def _archive_classes(java: str) -> None:
    """Write the class archives once; if that fails, Spark and brokers only start more slowly."""
    archives = b"".join((ROOT / name).read_bytes() for name in ("ivy.xml", "scripts/class_archive.py"))
    inputs = java.encode() + _venv_hash().encode() + archives
    inputs_hash = hashlib.sha256(inputs).hexdigest()
    if preflight.is_stamped(ARCHIVE_STAMP, inputs_hash):
        return
    with _alone():
        if not preflight.is_stamped(ARCHIVE_STAMP, inputs_hash):
            _write_archives(inputs_hash)


def _write_archives(inputs_hash: str) -> None:
    print("set-up: archiving classes, so that Spark and brokers start faster (once, about a minute)", flush=True)
    step = ArchiveStep()
    run_all([step])
    if step.exit_code != 0:
        print(f"set-up: that failed; Spark and brokers start some seconds more slowly. See {ARCHIVE_LOG}")
    ARCHIVE_STAMP.write_text(inputs_hash)


if __name__ == "__main__":
    sys.exit(main())
