"""Finds Prometheus' programs: on the PATH, or in Debian's packages, unpacked into ``.tools``."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOOLS = ROOT / ".tools"
# Program -> Debian's package.
_PACKAGES = {"prometheus": "prometheus", "promtool": "prometheus", "amtool": "prometheus-alertmanager"}
_ALERTMANAGER = "prometheus-alertmanager"
# Debian's looks for its templates in /usr/share, so an unpacked one gets its own in a namespace of its own.
_IN_NAMESPACE = (
    "unshare",
    "--map-root-user",
    "--mount",
    "sh",
    "-c",
    'mount --bind "$1" /usr/share && shift && exec "$@"',
)
_PATIENCE_S = 120


class NotThere(Exception):
    """A program that is neither installed nor to be had: why."""


def tool(name: str) -> Path:
    """Return the path of a program.

    Args:
        name: ``prometheus``, ``promtool`` or ``amtool``.

    Raises:
        NotThere: it is not on the PATH, and Debian's package cannot be fetched.
    """
    on_path = shutil.which(name)
    if on_path:
        return Path(on_path)
    package = _PACKAGES[name]
    unpacked = TOOLS / package / "usr" / "bin" / name
    if not unpacked.exists():
        _fetch(package)
    return unpacked


def alertmanager() -> list[str]:
    """Return the words that start Alertmanager, to be followed by its options.

    Raises:
        NotThere: it is not on the PATH, and Debian's package cannot be fetched, or not be run unpacked.
    """
    for name in ("alertmanager", _ALERTMANAGER):
        if on_path := shutil.which(name):
            return [on_path]
    unpacked = TOOLS / _ALERTMANAGER / "usr"
    program = unpacked / "bin" / _ALERTMANAGER
    if not program.exists():
        _fetch(_ALERTMANAGER)
    words = [*_IN_NAMESPACE, "sh", str(unpacked / "share")]
    failed = "there is no unshare" if not shutil.which("unshare") else _run([*words, str(program), "--version"], TOOLS)
    if failed:
        raise NotThere(f"alertmanager is not on the PATH, and an unpacked one cannot be run: {failed}")
    return [*words, str(program)]


def _fetch(package: str) -> None:
    if not (shutil.which("apt-get") and shutil.which("dpkg-deb")):
        raise NotThere(f"{package} is not on the PATH, and there is no apt-get to fetch its package with")
    arriving = TOOLS / f".{package}"
    shutil.rmtree(arriving, ignore_errors=True)
    arriving.mkdir(parents=True)
    # Lists of packages of our own where the machine has none, as most containers: that needs no root.
    state = [f"-oDir::State={TOOLS / '.apt' / 'state'}", f"-oDir::Cache={TOOLS / '.apt' / 'cache'}"]
    download = ["download", package]
    if _run(["apt-get", *download], arriving):
        for folder in ("state/lists/partial", "cache/archives/partial"):
            (TOOLS / ".apt" / folder).mkdir(parents=True, exist_ok=True)
        failed = _run(["apt-get", *state, "update"], arriving) or _run(["apt-get", *state, *download], arriving)
        if failed:
            raise NotThere(f"{package} is not on the PATH, and apt-get cannot fetch its package: {failed}")
    failed = _run(["dpkg-deb", "-x", *map(str, arriving.glob("*.deb")), "unpacked"], arriving)
    if failed:
        raise NotThere(f"the package {package} cannot be unpacked: {failed}")
    shutil.rmtree(TOOLS / package, ignore_errors=True)
    # Last, so that half a package never counts.
    (arriving / "unpacked").rename(TOOLS / package)
    shutil.rmtree(arriving)


def _run(command: list[str], folder: Path) -> str:
    """Return the last line of what a command said if it failed; empty: it did not."""
    try:
        done = subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=_PATIENCE_S, check=False)
    except subprocess.TimeoutExpired:
        return f"{command[0]} took longer than {_PATIENCE_S} s"
    said = [line for line in (done.stdout + done.stderr).splitlines() if line.strip()]
    return "" if done.returncode == 0 else (said or [f"exit code {done.returncode}"])[-1]
