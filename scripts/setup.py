"""Sets up the checkout, once: virtual environment, packages, jars. Run by make; later runs do nothing.

Runs before the virtual environment exists, so it uses the standard library only, and it can be read by every Python
since 3.6, so that one that is too old is told so in a sentence.
"""

import hashlib
import subprocess
import sys
from pathlib import Path

import jars
import preflight
from preflight import SetupError

ROOT = Path(__file__).resolve().parent.parent
VENV = ROOT / ".venv"
VENV_PYTHON = VENV / "bin" / "python"
VENV_STAMP = VENV / ".installed"
VENV_LOG = VENV / "pip.log"
ARCHIVE_STAMP = ROOT / ".jars" / ".archived"
ARCHIVE_LOG = ROOT / ".jars" / "archive.log"


def main() -> int:
    """Return 0 when all is set up, 1 if it cannot be, having said why in one line.

    ``--spark`` is for what runs Spark: it asks for the memory too, and archives the classes of its JVM and of brokers.
    """
    try:
        preflight.check_python()
        java = preflight.check_java()
        spark = "--spark" in sys.argv[1:]
        if spark:
            preflight.check_memory()
        if not _is_done():
            preflight.check_disk(ROOT)
            _install_packages()
            jars.fetch(ROOT, _pyspark_jars())
        if spark:
            _archive_classes(java)
    except SetupError as error:
        print(f"set-up: {error}", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("set-up: interrupted. Run it again to go on.", file=sys.stderr)
        return 130
    return 0


def _is_done() -> bool:
    return preflight.is_stamped(VENV_STAMP, _venv_mark()) and jars.are_fetched(ROOT)


def _venv_mark() -> str:
    """Return what an installed environment depends on: a change of it means to install again."""
    inputs = b"".join((ROOT / name).read_bytes() for name in ("requirements.lock", "pyproject.toml"))
    # An editable install and the scripts in .venv/bin name the folder, so a moved checkout installs again.
    return hashlib.sha256(inputs + str(ROOT).encode()).hexdigest()


def _install_packages() -> None:
    mark = _venv_mark()
    if preflight.is_stamped(VENV_STAMP, mark):
        return
    if not _usable_venv():
        print("set-up: creating .venv", flush=True)
        preflight.check_venv_module()
        _run([sys.executable, "-m", "venv", "--clear", str(VENV)], "creating .venv failed", "See the lines above")
    VENV_STAMP.unlink(missing_ok=True)
    print("set-up: installing packages into .venv (once, about 600 MB with Spark)", flush=True)
    _pip("-r", "requirements.lock")
    _pip("--no-deps", "--no-build-isolation", "--no-index", "--editable", ".")
    VENV_STAMP.write_text(mark)


def _usable_venv() -> bool:
    """Return whether .venv runs from here on a fitting Python; one that was half made, moved or outdated does not."""
    checks = "import sys, pip; assert sys.version_info >= (3, 10); print(sys.prefix)"
    try:
        found = subprocess.run([str(VENV_PYTHON), "-c", checks], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return found.returncode == 0 and Path(found.stdout.decode().strip()).resolve() == VENV.resolve()


def _pip(*arguments: str) -> None:
    command = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    patience = ["--timeout", "60", "--retries", "3", "--log", str(VENV_LOG)]
    result = subprocess.run(
        command + patience + list(arguments), cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        remedy = f"Check the network, and PIP_INDEX_URL and HTTPS_PROXY if used, then run this again; see {VENV_LOG}"
        raise SetupError("packages", "cannot be installed: " + _why(result.stdout.decode(errors="replace")), remedy)


def _why(said: str) -> str:
    """Return why pip failed; it tells of a registry out of reach in warnings, and of its consequences in errors."""
    if any(sign in said for sign in ("connection broken", "ConnectionError", "ProxyError", "timed out")):
        return "the package registry is out of reach"
    errors = [line.strip() for line in said.splitlines() if "ERROR" in line]
    return errors[-1] if errors else "pip failed"


def _pyspark_jars() -> Path:
    found = sorted(VENV.glob("lib/python*/site-packages/pyspark/jars"))
    if not found:
        raise SetupError(".venv", "holds no PySpark", "Run `make clean`, then this again")
    return found[-1]


def _archive_classes(java: str) -> None:
    """Let Spark and brokers start faster, once; where that cannot be had all else is the same."""
    archives = b"".join((ROOT / name).read_bytes() for name in ("ivy.xml", "scripts/class_archive.py"))
    inputs = java.encode() + _venv_mark().encode() + archives
    mark = hashlib.sha256(inputs).hexdigest()
    if preflight.is_stamped(ARCHIVE_STAMP, mark):
        return
    print("set-up: archiving classes, so that Spark and brokers start faster (once, about a minute)", flush=True)
    with ARCHIVE_LOG.open("wb") as log:
        command = [str(VENV_PYTHON), str(ROOT / "scripts" / "class_archive.py")]
        code = subprocess.run(command, cwd=str(ROOT), stdout=log, stderr=subprocess.STDOUT).returncode
    if code != 0:
        print(f"set-up: that failed; Spark and brokers start some seconds slower, else all is well. See {ARCHIVE_LOG}")
    ARCHIVE_STAMP.write_text(mark)


def _run(command: "list[str]", failure: str, remedy: str) -> None:
    if subprocess.run(command, cwd=str(ROOT)).returncode != 0:
        raise SetupError("python", failure, remedy)


if __name__ == "__main__":
    sys.exit(main())
