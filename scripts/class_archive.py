"""Archives the classes that Spark loads, so that it starts in two thirds of the time. Run by set-up, once.

A JVM maps such an archive into its memory instead of reading, parsing and verifying some fifteen thousand classes
(Java's class data sharing). It is written by a JVM that has run what is to start faster: here all of Headroom's jobs,
over the ticks of one real broker. The archive fits this Java, this Spark and these jars alone; another Java does
without.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import psutil

from cli.children import headroom_command
from cluster.embedded import EmbeddedCluster
from cluster.embedded.description import write_config
from schemas.tables import MESSAGES, THROTTLE_HEADROOM
from streaming.session import CLASS_ARCHIVE

_PATIENCE_S = 240.0
# Nothing runs for long enough here to be worth compiling well.
_QUICK = "-XX:TieredStopAtLevel=1 -XX:ReservedCodeCacheSize=240m"
# Which classes cannot be archived, and there are always some, is of no use to anybody.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_CONFIG = """
[spark]
gold_trigger_s = 1.0
record_trigger_s = 1.0
driver_java_options = "{options}"
"""


def archive(folder: Path) -> None:
    """Run collector and jobs until all tables have rows, and end them; the JVM writes the archive as it ends.

    Args:
        folder: an empty one for all that is needed meanwhile.

    Raises:
        RuntimeError: a process ended early, or there was no archive in time.
    """
    CLASS_ARCHIVE.unlink(missing_ok=True)
    arriving = CLASS_ARCHIVE.with_suffix(".arriving")
    arriving.unlink(missing_ok=True)
    with EmbeddedCluster(folder / "cluster", brokers=1) as cluster:
        config = write_config(cluster)
        with config.open("a", encoding="utf-8") as file:
            file.write(_CONFIG.format(options=f"{_QUICK} {_QUIET} -XX:ArchiveClassesAtExit={arriving}"))
        tables = folder / "cluster" / "headroom-data"
        commands = [["collect"], ["run", "alerts", "gold", "record"]]
        children = [
            subprocess.Popen(headroom_command(*command, "--with-parent", "--config", str(config)))
            for command in commands
        ]
        try:
            _wait(lambda: all(_has_rows(tables / table.path) for table in (MESSAGES, THROTTLE_HEADROOM)), children)
            written = psutil.Process(children[1].pid).children()
        finally:
            for child in children:
                child.terminate()
                child.wait()
    _, left = psutil.wait_procs(written, timeout=_PATIENCE_S)
    if left or not arriving.exists():
        raise RuntimeError("Spark's JVM wrote no archive")
    arriving.rename(CLASS_ARCHIVE)


def _wait(done: Callable[[], bool], children: Sequence[subprocess.Popen[bytes]]) -> None:
    give_up = time.monotonic() + _PATIENCE_S
    while not done():
        if any(child.poll() is not None for child in children):
            raise RuntimeError("a process ended early")
        if time.monotonic() > give_up:
            raise RuntimeError(f"no rows in {_PATIENCE_S:.0f} s")
        time.sleep(0.2)


def _has_rows(table: Path) -> bool:
    # The first commit makes the table.
    return (table / "_delta_log" / f"{1:020}.json").exists()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        try:
            archive(Path(temporary))
        except Exception as error:
            sys.exit(f"{type(error).__name__}: {error}")
