"""A real Kafka cluster of one to five KRaft brokers on this machine, as child processes."""

from cluster.embedded.brokers import BrokerOptions
from cluster.embedded.cluster import EmbeddedCluster
from cluster.embedded.description import describe, endpoint, write_config
from cluster.embedded.layout import BrokerProcess
from cluster.embedded.record import stop_recorded

__all__ = [
    "BrokerOptions",
    "BrokerProcess",
    "EmbeddedCluster",
    "describe",
    "endpoint",
    "stop_recorded",
    "write_config",
]
