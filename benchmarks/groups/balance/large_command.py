"""``python -m benchmarks.groups.balance.large_command FOLDER PARTITIONS``: time of ``headroom balance propose``.

The cluster is ``large_cluster`` with its 24 hours in ``gold/partition_load``. The time contains everything that the
command does after it has read the brokers: reading the table, the proposal, its price and batches, the files of
``--dir``, and the text. It is printed in seconds.
"""

from __future__ import annotations

import gc
import io
import sys
import time
from contextlib import redirect_stdout
from datetime import datetime, timezone
from pathlib import Path
from typing import Any

from deltalake import DeltaTable

from benchmarks.groups.balance.clusters import large_cluster
from headroom.cli.balance.proposal.files import write_files
from headroom.cli.balance.proposal.options import ProposalOptions
from headroom.cli.balance.proposal.text_view import print_proposal
from headroom.operations.balance.cluster import BalanceCluster
from headroom.operations.balance.proposal_result import proposal_result
from headroom.planning.balance.model import ClusterModel, Resource
from headroom.planning.balance.observation.cluster import observed_cluster
from headroom.planning.balance.observation.loads import observed_loads
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
