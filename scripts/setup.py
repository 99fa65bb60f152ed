"""Sets up the checkout once: virtual environment, packages, jars. Run by make; later runs do nothing.

It runs before the virtual environment exists, so it uses only the standard library. Its syntax is valid for Python 3.6,
so that an old Python prints a clear error instead of a syntax error.
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
    """Set up the checkout and return the exit code: 0 success, 1 failure with a one-line error, 130 interrupted.

    ``--spark`` is for targets that run Spark: it also checks the memory and writes the class archives.
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
        print("set-up: interrupted. Run it again to continue.", file=sys.stderr)
        return 130
    return 0


def _is_done() -> bool:
    return preflight.is_stamped(VENV_STAMP, _venv_hash()) and jars.are_fetched(ROOT)


def _venv_hash() -> str:
    """Return a hash of the environment's inputs; if it changes, the environment is installed again."""
    inputs = b"".join((ROOT / name).read_bytes() for name in ("requirements.lock", "pyproject.toml"))
    # An editable install and the scripts in .venv/bin contain the path, so a moved checkout is installed again.
    return hashlib.sha256(inputs + str(ROOT).encode()).hexdigest()


def _install_packages() -> None:
    inputs_hash = _venv_hash()
    if preflight.is_stamped(VENV_STAMP, inputs_hash):
        return
    if not _usable_venv():
        print("set-up: creating .venv", flush=True)
        preflight.check_venv_module()
        _run([sys.executable, "-m", "venv", "--clear", str(VENV)], "creating .venv failed", "See the lines above")
    VENV_STAMP.unlink(missing_ok=True)
    print("set-up: installing packages into .venv (once, about 600 MB with Spark)", flush=True)
    _pip("-r", "requirements.lock")
    _pip("--no-deps", "--no-build-isolation", "--no-index", "--editable", ".")
    VENV_STAMP.write_text(inputs_hash)


def _usable_venv() -> bool:
    """Return whether .venv is complete, belongs to this folder, and has a supported Python."""
    checks = "import sys, pip; assert sys.version_info >= (3, 10); print(sys.prefix)"
    try:
        found = subprocess.run([str(VENV_PYTHON), "-c", checks], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    except OSError:
        return False
    return found.returncode == 0 and Path(found.stdout.decode().strip()).resolve() == VENV.resolve()


def _pip(*arguments: str) -> None:
    command = [str(VENV_PYTHON), "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
    network_options = ["--timeout", "60", "--retries", "3", "--log", str(VENV_LOG)]
    result = subprocess.run(
        command + network_options + list(arguments), cwd=str(ROOT), stdout=subprocess.PIPE, stderr=subprocess.STDOUT
    )
    if result.returncode != 0:
        remedy = f"Check the network, and PIP_INDEX_URL and HTTPS_PROXY if used, then run this again; see {VENV_LOG}"
        raise SetupError(
            "packages", "cannot be installed: " + _failure_reason(result.stdout.decode(errors="replace")), remedy
        )


def _failure_reason(output: str) -> str:
    """Return the reason why pip failed; an unreachable registry appears only in its warnings, not in its errors."""
    if any(text in output for text in ("connection broken", "ConnectionError", "ProxyError", "timed out")):
        return "the package registry is out of reach"
    errors = [line.strip() for line in output.splitlines() if "ERROR" in line]
    return errors[-1] if errors else "pip failed"


def _pyspark_jars() -> Path:
    found = sorted(VENV.glob("lib/python*/site-packages/pyspark/jars"))
    if not found:
        raise SetupError(".venv", "has no PySpark", "Run `make clean`, then this again")
    return found[-1]


def _archive_classes(java: str) -> None:
    """Write the class archives once; if that fails, Spark and brokers only start more slowly."""
    archives = b"".join((ROOT / name).read_bytes() for name in ("ivy.xml", "scripts/class_archive.py"))
    inputs = java.encode() + _venv_hash().encode() + archives
    inputs_hash = hashlib.sha256(inputs).hexdigest()
    if preflight.is_stamped(ARCHIVE_STAMP, inputs_hash):
        return
    print("set-up: archiving classes, so that Spark and brokers start faster (once, about a minute)", flush=True)
    with ARCHIVE_LOG.open("wb") as log:
        command = [str(VENV_PYTHON), str(ROOT / "scripts" / "class_archive.py")]
        code = subprocess.run(command, cwd=str(ROOT), stdout=log, stderr=subprocess.STDOUT).returncode
    if code != 0:
        print(f"set-up: that failed; Spark and brokers start some seconds more slowly. See {ARCHIVE_LOG}")
    ARCHIVE_STAMP.write_text(inputs_hash)


def _run(command: "list[str]", failure: str, remedy: str) -> None:
    if subprocess.run(command, cwd=str(ROOT)).returncode != 0:
        raise SetupError("python", failure, remedy)


if __name__ == "__main__":
    sys.exit(main())
