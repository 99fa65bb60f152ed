"""Writes class archives for the JVMs of Spark and of brokers, so that they start sooner. Run once by set-up.

A JVM maps such an archive into memory instead of reading, parsing and verifying thousands of classes (Java's class data
sharing). A JVM writes the archive when it ends, with the classes that it has loaded. Here these are the JVM of all of
Headroom's jobs, over the ticks of one real broker, and that broker. An archive is valid only for this Java and these
jars; another Java ignores it.
"""

from __future__ import annotations

import shlex
import signal
import sys
import tempfile
from pathlib import Path

from headroom.cli.common.child_process import ChildProcess, headroom_command
from headroom.cli.common.watch_process import VerdictProcess
from headroom.cluster.embedded import BrokerOptions, EmbeddedCluster, write_config
from headroom.cluster.java import class_archive
from headroom.schemas.environment import without_settings
from headroom.schemas.tables import LEADER_IMBALANCE, MESSAGES, THROTTLE_HEADROOM
from headroom.streaming.session import CLASS_ARCHIVE
from headroom.streaming.session_profile import QUICK_COMPILER

_TIMEOUT_S = 240.0
# A JVM that is stopped cleanly writes its archive in seconds; on a slow machine in a minute.
_STOP_S = 180.0
_HEADER_BYTES = 64
# Suppress the warnings about classes that cannot be archived: there are always some, and they need no action.
_QUIET = "-Xlog:cds=off -Xlog:cds+dynamic=off"
_CONFIG = """
[spark]
gold_trigger_s = 1.0
record_trigger_s = 1.0
driver_java_options = "{options}"
"""


def archive(folder: Path) -> None:
    """Run collector and jobs until all tables have rows, then stop them and the broker, which writes the archives.

    Args:
        folder: an empty folder for temporary files.

    Raises:
        HeadroomError: the jobs ended early, or wrote no rows in time.
        RuntimeError: a JVM wrote no archive.
    """
    spark, kafka = _Archive("Spark", CLASS_ARCHIVE), _Archive("the broker", class_archive("kafka"))
    broker = BrokerOptions(java_options={1: [*_QUIET.split(), kafka.option]})
    print("starting a broker", flush=True)
    with EmbeddedCluster(folder / "cluster", brokers=1, options=broker) as cluster:
        config = write_config(cluster)
        with config.open("a", encoding="utf-8") as file:
            file.write(_CONFIG.format(options=f"{QUICK_COMPILER} {_QUIET} {shlex.quote(spark.option)}"))
        tables = folder / "cluster" / "headroom-data"
        options = ["--format", "json", "--with-parent", "--config", str(config)]
        command = headroom_command("run", "alerts", "gold", "record", *options)
        collector = ChildProcess("collector", ["collect"], str(config))
        print("running all jobs over its ticks", flush=True)
        try:
            with VerdictProcess("headroom run", command, folder / "run.log") as jobs:
                written = [tables / table.path for table in (MESSAGES, THROTTLE_HEADROOM, LEADER_IMBALANCE)]
                jobs.wait(lambda: all(map(_has_rows, written)), _TIMEOUT_S, "rows in the tables")
                print("writing the archive of Spark", flush=True)
                jobs.stop(_STOP_S)
        finally:
            collector.stop()
        print("writing the archive of the broker", flush=True)
        cluster.stop(_STOP_S)
    spark.publish()
    kafka.publish()


class _Archive:
    """One archive, written under a temporary name; an earlier archive is deleted."""

    def __init__(self, owner: str, path: Path) -> None:
        self._owner, self._path, self._temporary = owner, path, path.with_suffix(".arriving")
        self._path.unlink(missing_ok=True)
        self._temporary.unlink(missing_ok=True)

    @property
    def option(self) -> str:
        """Return the option that makes a JVM write the archive."""
        return f"-XX:ArchiveClassesAtExit={self._temporary}"

    def publish(self) -> None:
        """Rename the temporary file to the archive's name.

        Raises:
            RuntimeError: the JVM wrote no archive, or only a part of one.
        """
        if not self._temporary.exists():
            raise RuntimeError(f"the JVM of {self._owner} wrote no archive")
        # A JVM writes the header last; until then there are zeros in its place.
        with self._temporary.open("rb") as file:
            if not any(file.read(_HEADER_BYTES)):
                raise RuntimeError(f"the JVM of {self._owner} ended before its archive was complete")
        self._temporary.rename(self._path)


def _has_rows(table: Path) -> bool:
    # Commit 0 creates the table; commit 1 is the first with rows.
    return (table / "_delta_log" / f"{1:020}.json").exists()


if __name__ == "__main__":
    # Set-up that is killed ends this script by SIGTERM. The JVMs must not stay.
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    # Those of the environment win over the file of the cluster that is started here.
    with tempfile.TemporaryDirectory() as temporary, without_settings():
        try:
            archive(Path(temporary))
        except Exception as error:
            sys.exit(f"{type(error).__name__}: {error}")
