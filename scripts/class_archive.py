"""Archives the classes that Spark and brokers load, so that they start sooner. Run by set-up, once.

A JVM maps such an archive into its memory instead of reading, parsing and verifying thousands of classes (Java's
class data sharing). It is written by a JVM that has run what is to start faster: here all of Headroom's jobs, over the
ticks of one real broker, and that broker. The archives fit this Java and these jars alone; another Java does without.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

from cli.common.child_process import ChildProcess, headroom_command
from cli.common.watch_process import VerdictProcess
from cluster.embedded import BrokerOptions, EmbeddedCluster, write_config
from cluster.java import class_archive
from schemas.tables import LEADER_IMBALANCE, MESSAGES, THROTTLE_HEADROOM
from streaming.session import CLASS_ARCHIVE

_PATIENCE_S = 240.0
# A broker that ends in good order writes its archive in seconds.
_BROKER_END_S = 60.0
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
    """Run collector and jobs until all tables have rows, and end them and the broker; JVMs write archives as they end.

    Args:
        folder: an empty one for all that is needed meanwhile.

    Raises:
        HeadroomError: the jobs ended early, or wrote no rows in time.
        RuntimeError: there was no archive.
    """
    spark, kafka = _Archive("Spark", CLASS_ARCHIVE), _Archive("the broker", class_archive("kafka"))
    broker = BrokerOptions(java_options={1: [*_QUIET.split(), kafka.option]})
    with EmbeddedCluster(folder / "cluster", brokers=1, options=broker) as cluster:
        config = write_config(cluster)
        with config.open("a", encoding="utf-8") as file:
            file.write(_CONFIG.format(options=f"{_QUICK} {_QUIET} {spark.option}"))
        tables = folder / "cluster" / "headroom-data"
        options = ["--format", "json", "--with-parent", "--config", str(config)]
        command = headroom_command("run", "alerts", "gold", "record", *options)
        collector = ChildProcess("collector", ["collect"], str(config))
        try:
            with VerdictProcess("headroom run", command, folder / "run.log") as jobs:
                written = [tables / table.path for table in (MESSAGES, THROTTLE_HEADROOM, LEADER_IMBALANCE)]
                jobs.wait(lambda: all(map(_has_rows, written)), _PATIENCE_S, "rows in the tables")
        finally:
            collector.stop()
        cluster.stop(_BROKER_END_S)
    spark.arrive()
    kafka.arrive()


class _Archive:
    """One archive, under another name until it is whole; the one before goes."""

    def __init__(self, owner: str, path: Path) -> None:
        self._owner, self._path, self._arriving = owner, path, path.with_suffix(".arriving")
        self._path.unlink(missing_ok=True)
        self._arriving.unlink(missing_ok=True)

    @property
    def option(self) -> str:
        """Return the option by which a JVM writes it."""
        return f"-XX:ArchiveClassesAtExit={self._arriving}"

    def arrive(self) -> None:
        """Give the archive its name.

        Raises:
            RuntimeError: there is none.
        """
        if not self._arriving.exists():
            raise RuntimeError(f"the JVM of {self._owner} wrote no archive")
        self._arriving.rename(self._path)


def _has_rows(table: Path) -> bool:
    # The first commit makes the table.
    return (table / "_delta_log" / f"{1:020}.json").exists()


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as temporary:
        try:
            archive(Path(temporary))
        except Exception as error:
            sys.exit(f"{type(error).__name__}: {error}")
