"""Builds the package for ``spark-submit``: Headroom as a zip, the file to start, and the jars. Run by make.

The first argument is the folder; the default is ``build/submit``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def package(folder: Path) -> None:
    """Replace a folder by one with ``headroom.zip``, ``submit.py`` and ``jars/``.

    Raises:
        subprocess.CalledProcessError: the wheel could not be built.
    """
    shutil.rmtree(folder, ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    offline = ["--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    with tempfile.TemporaryDirectory(prefix="headroom-package-") as sources:
        _copy_sources(Path(sources))
        subprocess.run([*pip, *offline, sources], check=True)
    # A wheel is a zip, and spark-submit recognizes one by its suffix.
    next(folder.glob("headroom-*.whl")).rename(folder / "headroom.zip")
    shutil.copy(ROOT / "scripts" / "submit.py", folder)
    shutil.copytree(ROOT / ".jars" / "spark", folder / "jars")


def _copy_sources(to: Path) -> None:
    """Copy what the wheel is built from.

    Setuptools builds in the folder of the sources: two builds in the checkout would remove each other's files, and the
    wheel would have files of an earlier one.
    """
    for name in ("pyproject.toml", "LICENSE"):
        shutil.copy(ROOT / name, to)
    # Links become folders.
    shutil.copytree(ROOT / "headroom", to / "headroom", ignore=shutil.ignore_patterns("__pycache__"))


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "submit"
    package(target)
    print(f"{target}: headroom.zip, submit.py and jars; see docs/deployment.md")
