"""Descriptions of a running cluster: JSON for commands, and a configuration file for ``headroom watch``."""

from __future__ import annotations

import json
from pathlib import Path

from headroom.cluster.embedded.cluster import EmbeddedCluster
from headroom.cluster.embedded.layout import BrokerProcess
from headroom.schemas.config import Source

# No [metrics] section, so that /metrics has its default address. Of several watch processes on one machine, only the
# first serves it; the others continue without it, because only a configured address must be free.
_CONFIG = """# Written by `headroom cluster up` for the cluster in this folder.
[cluster]
name = {name}
bootstrap_servers = {bootstrap_servers}

[collect]
interval_s = 1.0
source = {source}

[collect.endpoints]
{endpoints}

[store]
path = {store}
"""


def write_config(cluster: EmbeddedCluster, source: Source | None = None, name: str = "embedded") -> Path:
    """Return the path of the ``headroom.toml`` written to the cluster's folder, ready for ``headroom watch``.

    An existing file is kept with its edits if no port changed; otherwise it is overwritten.

    Args:
        cluster: the started cluster.
        source: metrics source; None: Jolokia if the brokers run with agents, otherwise JMX.
        name: name of the cluster in a new file.
    """
    path = cluster.folder / "headroom.toml"
    source = source or (Source.JOLOKIA if all(b.jolokia_port for b in cluster.brokers) else Source.JMX)
    endpoints = "\n".join(f'{b.broker_id} = "{endpoint(b, source)}"' for b in cluster.brokers)
    servers = json.dumps(cluster.bootstrap_servers)
    known = path.read_text(encoding="utf-8") if path.exists() else ""
    if servers not in known or endpoints not in known:
        store = json.dumps(str(cluster.folder / "headroom-data"))
        values = {"bootstrap_servers": servers, "source": json.dumps(source.value), "store": store}
        values["name"] = json.dumps(name)
        path.write_text(_CONFIG.format(endpoints=endpoints, **values), encoding="utf-8")
    return path


def endpoint(broker: BrokerProcess, source: Source) -> str:
    """Return ``host:port`` of a broker's metrics for one source."""
    ports = {Source.JMX: broker.jmx_port, Source.JOLOKIA: broker.jolokia_port, Source.PROMETHEUS: broker.exporter_port}
    return f"{broker.host}:{ports[source]}"


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
                "jolokia_port": broker.jolokia_port,
                "exporter_port": broker.exporter_port,
                "pid": broker.pid,
                "log": str(broker.log_file),
            }
            for broker in cluster.brokers
        ],
    }
