"""Temporary folder of Spark's JVM: a folder in memory where the usual one cannot be written, as on a full disk."""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
from collections.abc import Mapping

from headroom.streaming.delta.locations import trouble_of

log = logging.getLogger(__name__)

LOCAL_DIR = "spark.local.dir"
_USUAL = "/tmp"
# A file system in memory.
_IN_MEMORY = "/dev/shm"


def scratch_trouble(conf: Mapping[str, str]) -> str | None:
    """Return why Spark, its JVM or Python cannot write temporary files, in a few words; None if they can.

    Args:
        conf: settings of the session.
    """
    try:
        folders = [tempfile.gettempdir(), _USUAL]
    except FileNotFoundError as error:
        return str(error.strerror)
    spark = os.environ.get("SPARK_LOCAL_DIRS") or conf.get(LOCAL_DIR) or _USUAL
    return next(
        (trouble for folder in dict.fromkeys([*folders, *spark.split(",")]) if (trouble := trouble_of(folder))), None
    )


def use_memory(trouble: str) -> str | None:
    """Let this process and its children keep temporary files in memory, and return the folder; None if it has no room.

    Args:
        trouble: why the usual folder is not used, for the log.
    """
    if trouble_of(_IN_MEMORY) is not None:
        return None
    # Of an earlier Spark of this process, if there was one.
    folder = tempfile.tempdir if tempfile.tempdir and tempfile.tempdir.startswith(_IN_MEMORY) else None
    if folder is None:
        folder = tempfile.mkdtemp(prefix="headroom-", dir=_IN_MEMORY)
        atexit.register(shutil.rmtree, folder, ignore_errors=True)
        log.error("%s: temporary files are kept in %s", trouble, folder)
    tempfile.tempdir = os.environ["TMPDIR"] = folder
    os.environ.pop("SPARK_LOCAL_DIRS", None)
    return folder
