"""Reader of the agreement topic of a cluster, which is the target of migrations."""

from __future__ import annotations

from kafka import KafkaConsumer
from kafka.errors import KafkaError

from headroom.cluster.connection.admin_connection import connection_options
from headroom.cluster.connection.new_client import create_no_topics, new_client
from headroom.routing.agreement import AgreementReader, reader_options
from headroom.schemas.config import ClusterSettings
from headroom.schemas.errors import HeadroomError

UNREACHED = "See that its brokers are up, then run it again."


def new_agreement_reader(cluster: ClusterSettings) -> AgreementReader:
    """Return a reader of the agreement topic, which creates no topic.

    Raises:
        HeadroomError: no broker could be reached.
    """
    try:
        consumer = new_client(KafkaConsumer, **reader_options(connection_options(cluster)))
    except (KafkaError, OSError) as error:
        rule = f"no broker could be reached ({type(error).__name__})"
        raise HeadroomError(f"cluster {cluster.name}", rule, UNREACHED) from None
    create_no_topics(consumer._client.cluster)
    return AgreementReader(consumer)
