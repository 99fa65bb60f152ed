"""Locations of the JVM and of the jars that set-up fetched."""

from __future__ import annotations

import glob
import importlib.util
import os
import shutil
from pathlib import Path

from headroom.schemas.environment import JARS
from headroom.schemas.errors import HeadroomError

_IN_CHECKOUT = Path(__file__).resolve().parent.parent / ".jars"


def jar_folder(configuration: str) -> Path:
    """Return the jar folder of one configuration: ``spark``, ``kafka`` or ``agents``.

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
    """Return the path of the class data archive (CDS) of one configuration; the file may not exist.

    Raises:
        HeadroomError: set-up has not fetched the jars.
    """
    return jar_folder(configuration).with_suffix(".jsa")


def gateway_jars() -> list[str]:
    """Return the jars of the gateway JVM, Py4J first; PySpark ships all of them.

    Raises:
        HeadroomError: PySpark, or one of the jars, is not installed.
    """
    spec = importlib.util.find_spec("pyspark")
    folders = list(spec.submodule_search_locations or []) if spec is not None else []
    jars = []
    for name in ("py4j", "janino", "commons-compiler"):
        matches = [path for folder in folders for path in glob.glob(os.path.join(folder, "jars", f"{name}-[0-9]*.jar"))]
        if not matches:
            raise HeadroomError(
                f"jar {name}", "is not among PySpark's jars", "Install pyspark as requirements.lock pins it."
            )
        jars.append(matches[0])
    return jars


def java_command() -> str:
    """Return the path of ``java``: from JAVA_HOME if it is set, otherwise the first on the PATH.

    Raises:
        HeadroomError: no ``java`` was found.
    """
    home = os.environ.get("JAVA_HOME")
    java = shutil.which("java", path=str(Path(home) / "bin")) if home else shutil.which("java")
    if java is None:
        where = f"JAVA_HOME={home}" if home else "PATH"
        raise HeadroomError("java", f"not found in {where}", "Install a JDK or JRE 17, or set JAVA_HOME to one")
    return java
