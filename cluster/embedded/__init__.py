"""A real Kafka cluster of one to five KRaft brokers on this machine, as child processes."""

from headroom.cluster.embedded.brokers import BrokerOptions
from headroom.cluster.embedded.cluster import EmbeddedCluster
from headroom.cluster.embedded.description import describe, endpoint, write_config
from headroom.cluster.embedded.layout import BrokerProcess
from headroom.cluster.embedded.record import stop_recorded

__all__ = [
    "BrokerOptions",
    "BrokerProcess",
    "EmbeddedCluster",
    "describe",
    "endpoint",
    "stop_recorded",
    "write_config",
]
