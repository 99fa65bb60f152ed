"""JVM options for a broker's metrics agents: Jolokia and jmx_exporter, as set-up fetched them."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from headroom.cluster.embedded.layout import HOST, BrokerPorts
from headroom.cluster.java import jar_folder
from headroom.schemas.errors import HeadroomError

# The embedded brokers use the same agent configurations that Headroom ships.
_SHIPPED = Path(__file__).resolve().parents[2] / "docker"
EXPORTER_CONFIG = _SHIPPED / "jmx_exporter.yml"
JOLOKIA_POLICY = _SHIPPED / "jolokia-access.xml"


def agent_options(ports: BrokerPorts, exporter_config: Path = EXPORTER_CONFIG) -> list[str]:
    """Return the options that start a broker's JVM with both agents, or none if it has no ports for them.

    Args:
        ports: ports of the broker.
        exporter_config: configuration of jmx_exporter.

    Raises:
        HeadroomError: set-up has not fetched the agents.
    """
    if ports.jolokia is None or ports.exporter is None:
        return []
    return [jolokia_option(ports.jolokia), exporter_option(ports.exporter, exporter_config)]


def jolokia_option(port: int, settings: Mapping[str, object] | None = None, policy: Path = JOLOKIA_POLICY) -> str:
    """Return the option that starts a JVM with Jolokia's agent.

    Args:
        port: listen port on 127.0.0.1.
        settings: further settings of the agent.
        policy: access policy with the MBeans that it exposes.

    Raises:
        HeadroomError: set-up has not fetched the agent.
    """
    own = {
        "host": HOST,
        "port": port,
        "discoveryEnabled": "false",
        "policyLocation": policy.as_uri(),
        **(settings or {}),
    }
    return f"-javaagent:{_jar('jolokia-agent-jvm')}={','.join(f'{key}={value}' for key, value in own.items())}"


def exporter_option(port: int, config: Path = EXPORTER_CONFIG) -> str:
    """Return the option that starts a JVM with jmx_exporter's agent, listening on a port of 127.0.0.1.

    Raises:
        HeadroomError: set-up has not fetched the agent.
    """
    return f"-javaagent:{_jar('jmx_prometheus_javaagent')}={HOST}:{port}:{config}"


def _jar(name: str) -> Path:
    folder = jar_folder("agents")
    jar = next(folder.glob(f"{name}-*.jar"), None)
    if jar is None:
        raise HeadroomError(str(folder), f"holds no {name}", "Run `make setup` in the checkout.")
    return jar
