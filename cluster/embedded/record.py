"""State file of an embedded cluster in its folder, for ``down`` and for the next start."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from headroom.cluster.embedded.files import BrokerFiles
from headroom.cluster.embedded.layout import BrokerPorts
from headroom.cluster.embedded.processes import end, find
from headroom.schemas.errors import HeadroomError

_FILE = "cluster.json"


@dataclass(frozen=True)
class ClusterRecord:
    """State of a cluster at its last start.

    Attributes:
        cluster_id: Kafka's cluster id, as in every broker's data.
        ports: ports by broker id.
        pids: process id by broker id; empty after a stop.
    """

    cluster_id: str
    ports: Mapping[int, BrokerPorts]
    pids: Mapping[int, int]

    def write(self, folder: Path) -> None:
        """Write the record atomically to a folder."""
        content = {
            "cluster_id": self.cluster_id,
            "brokers": [{"id": i, "pid": self.pids.get(i), **asdict(ports)} for i, ports in self.ports.items()],
        }
        new = folder / f"{_FILE}.new"
        new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        os.replace(new, folder / _FILE)


def read_record(folder: Path) -> ClusterRecord | None:
    """Return the record of a folder; None if no cluster was ever started in it.

    Raises:
        HeadroomError: the file exists but is no record.
    """
    file = folder / _FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        brokers = content["brokers"]
        # Records of older versions have no ports of agents.
        ports = {
            int(b["id"]): BrokerPorts(b["client"], b["controller"], b["jmx"], b.get("jolokia"), b.get("exporter"))
            for b in brokers
        }
        return ClusterRecord(content["cluster_id"], ports, {int(b["id"]): b["pid"] for b in brokers if b["pid"]})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError, RecursionError) as error:
        raise HeadroomError(str(file), "is not a cluster's record", "Use another folder, or delete this one") from error


def running(folder: Path) -> dict[int, psutil.Process]:
    """Return the running brokers in a folder's record, by id."""
    record = read_record(folder)
    pids = record.pids if record else {}
    processes = {i: find(BrokerFiles(folder, i), pid) for i, pid in pids.items()}
    return {i: process for i, process in processes.items() if process is not None}


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Lock the folder against a concurrent start or stop.

    Raises:
        HeadroomError: another command has the lock.
    """
    folder.mkdir(parents=True, exist_ok=True)
    with (folder / ".lock").open("w", encoding="utf-8") as lock:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            rule = "is being started or stopped by another command"
            raise HeadroomError(str(folder), rule, "Wait for it to end, or use another --dir") from error
        yield


def stop_recorded(folder: Path, grace_s: float) -> list[int]:
    """Stop the brokers of a folder, keep their data, and return the ids of those that ran.

    Args:
        folder: folder of a cluster that this or another process started.
        grace_s: wait for a clean shutdown before the kill, seconds.

    Raises:
        HeadroomError: no cluster was ever started in the folder.
    """
    if read_record(folder) is None:
        raise HeadroomError(str(folder), "holds no cluster", "Name the --dir that `headroom cluster up` was given")
    with exclusive(folder):
        living = running(folder)
        end(living.values(), grace_s)
        record = read_record(folder)
        if record is not None:
            ClusterRecord(record.cluster_id, record.ports, {}).write(folder)
    return sorted(living)
