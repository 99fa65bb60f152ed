"""What is told of a running cluster: as JSON, and as a config that watches it."""

from __future__ import annotations

import json
from pathlib import Path

from cluster.embedded.cluster import EmbeddedCluster

_CONFIG = """# Written by `headroom cluster up` for the cluster in this folder.
[cluster]
name = "embedded"
bootstrap_servers = {bootstrap_servers}

[collect]
interval_s = 1.0

[collect.endpoints]
{endpoints}

[store]
path = {store}
"""


def write_config(cluster: EmbeddedCluster) -> Path:
    """Return the path of the ``headroom.toml`` written to the cluster's folder, ready for ``headroom watch``.

    A file that is there already keeps what its owner added only if no port changed; it is written anew otherwise.
    """
    path = cluster.folder / "headroom.toml"
    endpoints = "\n".join(f'{b.broker_id} = "{b.host}:{b.jmx_port}"' for b in cluster.brokers)
    servers = json.dumps(cluster.bootstrap_servers)
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    if servers not in known or endpoints not in known:
        store = json.dumps(str(cluster.folder / "headroom-data"))
        path.write_text(_CONFIG.format(bootstrap_servers=servers, endpoints=endpoints, store=store), encoding="utf-8")
    return path


def describe(cluster: EmbeddedCluster, config: Path) -> dict[str, object]:
    """Return the cluster as ``headroom cluster up`` prints it."""
    return {
        "dir": str(cluster.folder),
        "bootstrap_servers": cluster.bootstrap_servers,
        "config": str(config),
        "brokers": [
            {
                "id": broker.broker_id,
                "host": broker.host,
                "port": broker.port,
                "jmx_port": broker.jmx_port,
                "pid": broker.pid,
                "log": str(broker.log_file),
            }
            for broker in cluster.brokers
        ],
    }
