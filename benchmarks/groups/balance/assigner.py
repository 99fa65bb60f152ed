"""LinkedIn's ``kafka-assigner`` on a synthetic cluster, in an environment of its own.

kafka-tools 0.1.9 brings a package named ``kafka``, like the client that Headroom uses. Its balance modules run in a
child process with their own cluster model: brokers, replicas, sizes in KiB, and the retention of each topic, from which
``rate`` derives the rates. They know no racks.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from benchmarks.fixtures.bench_cluster import failure
from benchmarks.groups.balance.clusters import RETENTIONS_S
from headroom.planning.balance.arrays import AnyArray, FloatArray, IntArray
from headroom.planning.balance.goals.bands import LoadBounds, band_bounds
from headroom.planning.balance.goals.goal import BrokerUsage
from headroom.planning.balance.goals.resource_goals import ResourceBand
from headroom.planning.balance.model import ClusterModel, Resource

_PACKAGES = ("setuptools<81", "wheel", "kazoo", "six"), ("kafka-tools==0.1.9",)
_CHILD = """
import json, sys
from argparse import Namespace
from kafka.tools.assigner.actions.balancemodules.rate import ActionBalanceRate
from kafka.tools.assigner.actions.balancemodules.size import ActionBalanceSize
from kafka.tools.models.broker import Broker
from kafka.tools.models.cluster import Cluster
from kafka.tools.models.topic import Topic

given = json.load(sys.stdin)
# Kafka's default of 7 days, as rates are scaled to it.
cluster = Cluster(retention=604800000)
for broker in range(given["brokers"]):
    cluster.add_broker(Broker("broker-%d" % broker, id=broker))
for name, retention in enumerate(given["retentions"]):
    topic = Topic("%06d" % name, 0)
    topic.retention = retention
    cluster.add_topic(topic)
    topic.assure_has_partitions(given["counts"][name])
for name, number, size, replicas in given["partitions"]:
    partition = cluster.topics["%06d" % name].partitions[number]
    for replica in replicas:
        partition.add_replica(cluster.brokers[replica])
    partition.set_size(size)
module = {"rate": ActionBalanceRate, "size": ActionBalanceSize}[given["module"]]
module(Namespace(exclude_topics=[]), cluster).process_cluster()
json.dump(
    [[b.id for b in cluster.topics["%06d" % name].partitions[number].replicas]
     for name, number, _, _ in given["partitions"]],
    sys.stdout,
)
"""


@dataclass(frozen=True)
class SpreadBand(ResourceBand):
    """Band with another width than 10 % of the mean, for a comparison at the spread that another planner reached.

    Attributes:
        ratio: distance of the edges from the mean, as a share of it.
    """

    ratio: float = 0.1

    def bounds(self, model: ClusterModel, usage: BrokerUsage) -> LoadBounds:
        """Return the band of every broker."""
        band = band_bounds(model, self.resource, usage.load(self.resource), self.detect_below)
        lower, upper = band.mean * (1 - self.ratio), band.mean * (1 + self.ratio)
        return LoadBounds(lower, upper, band.mean, band.length, lower, upper)


def assigner_python(place: str | None) -> Path:
    """Return the interpreter of the environment with kafka-tools, which is made the first time.

    Args:
        place: folder of the environment; None: one in the folder for temporary files.

    Raises:
        HeadroomError: the environment cannot be made.
    """
    folder = Path(place or Path(tempfile.gettempdir()) / "headroom-kafka-assigner")
    python = folder / "bin" / "python"
    if not (folder / "complete").exists():
        _run([sys.executable, "-m", "venv", "--clear", str(folder)])
        for number, packages in enumerate(_PACKAGES):
            # Its build asks for test runners, and its dependencies for a JVM: neither is needed here.
            alone = ["--no-deps", "--no-build-isolation"] if number else []
            _run([str(python), "-m", "pip", "install", "--quiet", *alone, *packages])
        (folder / "complete").touch()
    return python


def assigner_replicas(model: ClusterModel, module: str, python: Path) -> IntArray:
    """Return the replicas that ``kafka-assigner balance`` would assign, (P, R) as indices of brokers.

    Args:
        model: the cluster; all partitions have the same number of replicas.
        module: "rate" or "size".
        python: interpreter of its environment.

    Raises:
        HeadroomError: it failed.
    """
    given = {
        "module": module,
        "brokers": len(model.brokers),
        "retentions": _retentions_ms(model).tolist(),
        "counts": np.bincount(model.topic, minlength=len(model.topics)).tolist(),
        "partitions": [
            [topic, number, int(size // 1024), replicas]
            for topic, number, size, replicas in zip(
                model.topic.tolist(),
                model.partition.tolist(),
                model.size.tolist(),
                model.replicas.tolist(),
                strict=True,
            )
        ],
    }
    return np.array(json.loads(_run([str(python), "-c", _CHILD], json.dumps(given))), dtype=np.int64)


def copied_bytes(model: ClusterModel, replicas: IntArray) -> float:
    """Return the bytes that another assignment copies."""
    new = ~(replicas[:, :, None] == model.replicas[:, None, :]).any(axis=2)
    return float((new * model.size[:, None]).sum())


def disk_spread(model: ClusterModel, replicas: AnyArray) -> float:
    """Return the largest distance of a broker's disk from its share under an assignment, as a ratio of the share."""
    sizes = np.repeat(model.size, replicas.shape[1])
    disk: FloatArray = np.bincount(replicas.ravel(), sizes, len(model.brokers)).astype(np.float64)
    mean = band_bounds(model, Resource.DISK, disk, 0.0).mean
    return float(np.abs(disk / mean - 1).max())


def _retentions_ms(model: ClusterModel) -> FloatArray:
    """Return the retention of each topic, (T,): the one of the synthetic clusters that its size and rate show."""
    sizes = np.bincount(model.topic, model.size)
    rates = np.bincount(model.topic, model.write.mean(axis=1))
    known = np.array(RETENTIONS_S)
    nearest = np.abs(np.log(known[:, None]) - np.log(sizes / rates)[None, :]).argmin(axis=0)
    retentions: FloatArray = known[nearest] * 1000.0
    return retentions


def _run(command: list[str], given: str | None = None) -> str:
    done = subprocess.run(command, input=given, capture_output=True, text=True, check=False)
    if done.returncode:
        raise failure(f"{' '.join(command[:4])} failed: {done.stderr[-300:]}")
    return done.stdout
