"""What a cluster's folder remembers of it, for ``down`` and for the next start."""

from __future__ import annotations

import fcntl
import json
import os
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import psutil

from cluster.embedded.files import BrokerFiles
from cluster.embedded.layout import BrokerPorts
from cluster.embedded.processes import end, find
from schemas.errors import HeadroomError

_FILE = "cluster.json"


@dataclass(frozen=True)
class ClusterRecord:
    """One cluster as it was last started.

    Attributes:
        cluster_id: Kafka's id of it, in every broker's data.
        ports: of each broker id.
        pids: process id of each broker that was started; empty after a stop.
    """

    cluster_id: str
    ports: Mapping[int, BrokerPorts]
    pids: Mapping[int, int]

    def write(self, folder: Path) -> None:
        """Write the record, whole or not at all."""
        content = {
            "cluster_id": self.cluster_id,
            "brokers": [{"id": i, "pid": self.pids.get(i), **asdict(ports)} for i, ports in self.ports.items()],
        }
        new = folder / f"{_FILE}.new"
        new.write_text(json.dumps(content, indent=2) + "\n", encoding="utf-8")
        os.replace(new, folder / _FILE)


def read_record(folder: Path) -> ClusterRecord | None:
    """Return the record of a folder, or None if no cluster was ever started in it.

    Raises:
        HeadroomError: the file is there and is not a record.
    """
    file = folder / _FILE
    try:
        content = json.loads(file.read_text(encoding="utf-8"))
        brokers = content["brokers"]
        # Without ports of agents: written before there were any.
        ports = {
            int(b["id"]): BrokerPorts(b["client"], b["controller"], b["jmx"], b.get("jolokia"), b.get("exporter"))
            for b in brokers
        }
        return ClusterRecord(content["cluster_id"], ports, {int(b["id"]): b["pid"] for b in brokers if b["pid"]})
    except FileNotFoundError:
        return None
    except (ValueError, KeyError, TypeError) as error:
        raise HeadroomError(str(file), "is not a cluster's record", "Use another folder, or delete this one") from error


def running(folder: Path) -> dict[int, psutil.Process]:
    """Return the living brokers of a folder by broker id, as far as its record names them."""
    record = read_record(folder)
    pids = record.pids if record else {}
    found = {i: find(BrokerFiles(folder, i), pid) for i, pid in pids.items()}
    return {i: process for i, process in found.items() if process is not None}


@contextmanager
def exclusive(folder: Path) -> Iterator[None]:
    """Hold the folder against a second start or stop at the same time.

    Raises:
        HeadroomError: somebody holds it.
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
    """Return the ids of the brokers that ran in a folder and have been ended; their data stay.

    Args:
        folder: of a cluster that this or another process started.
        grace_s: seconds to wait for an orderly end before the kill.

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
