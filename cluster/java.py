"""Where the JVM and the jars are that set-up fetched."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

from schemas.environment import JARS
from schemas.errors import HeadroomError

_IN_CHECKOUT = Path(__file__).resolve().parent.parent / ".jars"


def jar_folder(configuration: str) -> Path:
    """Return the folder of one configuration's jars, ``spark``, ``kafka`` or ``agents``.

    Raises:
        HeadroomError: set-up has not fetched them.
    """
    folder = Path(os.environ.get(JARS) or _IN_CHECKOUT) / configuration
    if not any(folder.glob("*.jar")):
        raise HeadroomError(
            str(folder), "holds no jars", f"Run `make setup` in the checkout, or let {JARS} name the folder"
        )
    return folder


def class_archive(configuration: str) -> Path:
    """Return where set-up archives the classes that the JVM of one configuration loads; it may not be there.

    Raises:
        HeadroomError: set-up has not fetched the jars.
    """
    return jar_folder(configuration).with_suffix(".jsa")


def java_command() -> str:
    """Return the path of the ``java`` to run: of JAVA_HOME if that is set, else the first on the PATH.

    Raises:
        HeadroomError: there is none.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise HeadroomError("java", f"not found in {where}", "Install a JDK or JRE 17, or set JAVA_HOME to one")
    return java
