"""Builds the package for ``spark-submit``: Headroom as a zip, the file to start, and the jars. Run by make.

The first argument is the folder; the default is ``build/submit``.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent


def package(folder: Path) -> None:
    """Replace a folder by one with ``headroom.zip``, ``submit.py`` and ``jars/``.

    Raises:
        subprocess.CalledProcessError: the wheel could not be built.
    """
    shutil.rmtree(folder, ignore_errors=True)
    # Setuptools would add files of an earlier build to the wheel.
    shutil.rmtree(ROOT / "build" / "lib", ignore_errors=True)
    pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--quiet", "--no-deps"]
    offline = ["--no-build-isolation", "--no-index", "--wheel-dir", str(folder)]
    subprocess.run([*pip, *offline, str(ROOT)], check=True)
    # A wheel is a zip, and spark-submit recognizes one by its suffix.
    next(folder.glob("headroom-*.whl")).rename(folder / "headroom.zip")
    shutil.copy(ROOT / "scripts" / "submit.py", folder)
    shutil.copytree(ROOT / ".jars" / "spark", folder / "jars")


if __name__ == "__main__":
    target = Path(sys.argv[1]) if len(sys.argv) > 1 else ROOT / "build" / "submit"
    package(target)
    print(f"{target}: headroom.zip, submit.py and jars; see docs/deployment.md")
