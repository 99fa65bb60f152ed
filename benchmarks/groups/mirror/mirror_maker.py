"""MirrorMaker 2 between two clusters of this machine, as a process that ends with this one."""

from __future__ import annotations

from pathlib import Path
from types import TracebackType
from typing import NamedTuple

import psutil

import headroom.cluster.embedded
from headroom.cluster.embedded.processes import Guardian, end, last_lines
from headroom.cluster.java import jar_folder, java_command
from headroom.schemas.errors import HeadroomError

_MAIN = "org.apache.kafka.connect.mirror.MirrorMaker"
_LOGGING = Path(headroom.cluster.embedded.__file__).with_name("log4j2.xml")
_JVM = ("-Xms96m", "-Xmx512m", "-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", f"-Dlog4j2.configurationFile={_LOGGING}")
# MirrorMaker commits the positions of its readers, and writes its last syncs, at this interval and at its end.
_FLUSH_MS = 5_000
_REFRESH_S = 5
# Each of its workers is given 5 s for its tasks.
_GRACE_S = 60.0


class MirroredCluster(NamedTuple):
    """A cluster as MirrorMaker knows it.

    Attributes:
        alias: its alias.
        bootstrap_servers: ``host:port`` of its brokers.
    """

    alias: str
    bootstrap_servers: str


class MirrorMaker:
    """Copies a topic of the origin to the target, with offset syncs and checkpoints of all groups.

    Args:
        folder: folder for its properties and its log.
        origin: cluster that it reads.
        target: cluster that it writes.
        topic: the topic, by its name on the origin.
    """

    def __init__(self, folder: Path, origin: MirroredCluster, target: MirroredCluster, topic: str) -> None:
        self.log = folder / "mirror-maker.log"
        self._properties = folder / "mirror-maker.properties"
        settings = _settings(origin, target, topic)
        self._properties.write_text("".join(f"{key}={value}\n" for key, value in settings.items()), encoding="utf-8")
        self._guardian = Guardian()
        self._pid: int | None = None

    def start(self) -> None:
        """Start it. It copies some ten seconds later.

        Raises:
            HeadroomError: it could not be started, or set-up has not fetched its jars.
        """
        jars = f"{jar_folder('mirror')}/*:{jar_folder('kafka')}/*"
        command = [java_command(), *_JVM, "-cp", jars, _MAIN, str(self._properties)]
        self._pid = self._guardian.spawn(command, self.log)

    def stop(self) -> None:
        """Let it end; it is killed if it has not ended within a minute."""
        self._end(_GRACE_S)

    def kill(self) -> None:
        """Kill it at once, as a crash would."""
        self._end(0)

    def require_alive(self) -> None:
        """Check that it runs.

        Raises:
            HeadroomError: it has ended; with the last lines of its log.
        """
        if self._pid is None or not psutil.pid_exists(self._pid):
            raise HeadroomError("MirrorMaker", f"has ended: {last_lines(self.log)}", f"See {self.log}")

    def __enter__(self) -> MirrorMaker:
        """Start it, and return this object."""
        self.start()
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        """Kill it."""
        self._guardian.kill_all()

    def _end(self, grace_s: float) -> None:
        if self._pid is not None and psutil.pid_exists(self._pid):
            end([psutil.Process(self._pid)], grace_s)
        self._pid = None


def _settings(origin: MirroredCluster, target: MirroredCluster, topic: str) -> dict[str, str]:
    flow = f"{origin.alias}->{target.alias}"
    replicated = ("", "checkpoints.topic.", "heartbeats.topic.", "offset-syncs.topic.")
    stored = (f"{of}.storage." for of in ("offset", "status", "config"))
    return {
        "clusters": f"{origin.alias}, {target.alias}",
        **{f"{alias}.bootstrap.servers": servers for alias, servers in (origin, target)},
        f"{flow}.enabled": "true",
        f"{target.alias}->{origin.alias}.enabled": "false",
        f"{flow}.topics": topic,
        f"{flow}.groups": ".*",
        **{f"{of}replication.factor": "1" for of in (*replicated, *stored)},
        "emit.checkpoints.enabled": "true",
        "emit.heartbeats.enabled": "false",
        "sync.topic.acls.enabled": "false",
        **{
            f"{of}.interval.seconds": str(_REFRESH_S) for of in ("refresh.topics", "refresh.groups", "emit.checkpoints")
        },
        f"{target.alias}.offset.flush.interval.ms": str(_FLUSH_MS),
    }
