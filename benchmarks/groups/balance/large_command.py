"""``python -m benchmarks.groups.balance.large_command FOLDER PARTITIONS [CASE]``: times of ``headroom balance``.

The cluster is ``large_cluster`` with its 24 hours in ``gold/partition_load``. The time contains everything that the
command does after it has read the brokers: reading the table, the proposal, its price and batches, the files of
``--dir``, and the text. It is printed in seconds.

With a case the time is that of a process from a saved state. ``explain`` is ``headroom balance explain 1`` for the same
cluster with its 24 hours, whose proposal was saved with the state; ``published`` is ``headroom balance propose --dir``
for AutoMQ's case with its network goals.
"""

from __future__ import annotations

import gc
import io
import subprocess
import sys
import time
from contextlib import redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

import numpy as np
from deltalake import DeltaTable

from benchmarks.groups.balance.clusters import large_cluster, published_case
from benchmarks.results import CHECKOUT
from headroom.cli.balance.proposal.files import write_files
from headroom.cli.balance.proposal.options import ProposalOptions
from headroom.cli.balance.proposal.text_view import print_proposal
from headroom.cli.common.child_process import headroom_command
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.proposal_result import proposal_result
from headroom.operations.balance.saved_state import write_loads
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.observation.cluster import observed_cluster
from headroom.planning.balance.observation.loads import ObservedLoads, observed_loads
from headroom.planning.reassignments.cluster_state import BrokerState, ClusterState, LogDirectory, PartitionPlacement
from headroom.schemas.config import ClusterSettings, Settings, StoreSettings
from headroom.schemas.tables import PARTITION_LOAD
from headroom.streaming.delta.append import append_columns, create
from headroom.streaming.tables.load_history import read_load_history
from headroom.streaming.tables.partition_load import HOUR_MS

_CLUSTER = "large"
_NO_OPTIONS = ProposalOptions(None, None, None, None, None, elections_only=False, throttle=None, state_file=None)


def main() -> None:
    """Write the table, and print the time of the command."""
    folder, partitions = Path(sys.argv[1]), int(sys.argv[2])
    if len(sys.argv) > 3:
        print(_saved_s(folder, partitions, sys.argv[3]))
        return
    model = large_cluster(partitions).model
    now_ms = int(time.time() * 1000)
    settings = Settings(cluster=ClusterSettings(name=_CLUSTER), store=StoreSettings(path=str(folder / "tables")))
    _write_history(model, settings.store.path, now_ms)
    state = _state(model, now_ms)
    gc.collect()
    # As the command does.
    gc.disable()
    began_s = time.monotonic()
    loads = observed_loads(state, read_load_history(settings, now_ms), {})
    cluster = BalanceCluster(settings, state, loads, observed_cluster(state, loads, settings.balance), live=True)
    result = proposal_result(cluster, _NO_OPTIONS)
    files = write_files(folder / "proposal", result)
    with redirect_stdout(io.StringIO()):
        print_proposal(result, files, None)
    print(time.monotonic() - began_s)


def _saved_s(folder: Path, partitions: int, case: str) -> float:
    """Return the time of a command from a saved state, seconds."""
    model = published_case() if case == "published" else large_cluster(partitions).model
    state, file, hours = _state(model, int(time.time() * 1000)), folder / "state.json", model.write.shape[1]
    write, read, requests = (rates.T.astype(np.float64) for rates in (model.write, model.read, model.requests))
    hours_ms = tuple(hour * HOUR_MS for hour in range(hours))
    loads = ObservedLoads(hours, hours_ms, write, read[0], requests[0], "a benchmark", read, requests)
    write_loads(file, state, loads)
    if case == "published":
        return _run_s("propose", "--goals", "network_in,network_out", "--dir", str(folder / "proposal"), state=file)
    proposed = folder / "proposed.json"
    _run_s("propose", "--save-state", str(proposed), state=file)
    return _run_s("explain", "1", state=proposed)


def _run_s(*words: str, state: Path) -> float:
    """Return the time of a command of ``headroom balance`` with a saved state, seconds."""
    command = headroom_command("balance", *words, "--state", str(state))
    began_s = time.monotonic()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True, cwd=CHECKOUT)
    return time.monotonic() - began_s


def _write_history(model: ClusterModel, store: str, now_ms: int) -> None:
    """Write the hours of the model as the last complete ones before now."""
    location = f"{store}/{PARTITION_LOAD.path}"
    create(location, PARTITION_LOAD)
    opened, hours = DeltaTable(location), model.write.shape[1]
    names = [model.name(index) for index in range(model.partitions)]
    for hour in range(hours):
        hour_ms = (now_ms // HOUR_MS - hours + hour) * HOUR_MS
        write = model.write[:, hour].tolist()
        columns: dict[str, list[Any]] = {
            "cluster": [_CLUSTER] * len(names),
            "hour_ms": [hour_ms] * len(names),
            "date": [datetime.fromtimestamp(hour_ms / 1000, timezone.utc).date()] * len(names),
            "topic": [name.topic for name in names],
            "partition": [name.partition for name in names],
            "mean_write_bytes_per_s": write,
            "p95_write_bytes_per_s": write,
            "peak_write_bytes_per_s": write,
            "size_bytes": [int(size) for size in model.size],
            "observed_ratio": [1.0] * len(names),
            "hour_messages": [1] * len(names),
            "mean_read_bytes_per_s": model.read[:, hour].tolist(),
            "mean_requests_per_s": model.requests[:, hour].tolist(),
        }
        append_columns(opened, columns)


def _state(model: ClusterModel, now_ms: int) -> ClusterState:
    """Return the brokers and partitions of the model, as they are read from a cluster."""
    brokers = {}
    for own in model.brokers:
        size = int(own.capacity.of(Resource.DISK) or 0)
        log_dir = LogDirectory("/data", size, size)
        brokers[own.broker] = BrokerState(own.broker, rack=own.rack, log_dirs=(log_dir,))
    partitions = {}
    for index in range(model.partitions):
        name, replicas = model.name(index), model.broker_ids(model.replicas[index])
        partitions[name] = PartitionPlacement(
            name.topic,
            name.partition,
            replicas[0],
            replicas,
            replicas,
            size_bytes=int(model.size[index]),
            write_bytes_per_s=float(model.write[index, -1]),
        )
    return ClusterState(_CLUSTER, now_ms, brokers, partitions)


if __name__ == "__main__":
    main()
