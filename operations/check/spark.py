"""Check of Spark's Kafka client: Java's client, with Spark's options, but without a Spark session."""

from __future__ import annotations

from pathlib import Path

from headroom.cluster.connection.java_client import JavaClientError, connect
from headroom.cluster.java import jar_folder
from headroom.cluster.secrets import sasl_password, section_of
from headroom.operations.check.result import Check, failure, ok, unknown
from headroom.schemas.config import Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.sources.kafka_options import kafka_options

_NAME = "Spark's Kafka client"
_KAFKA_PREFIX = "kafka."


def spark_checks(settings: Settings) -> list[Check]:
    """Return whether Spark's Kafka client connects to the cluster of the ticks topic.

    It can fail where Python's client connects: it reads fewer key formats, and trusts Java's own authorities if
    ``ssl_cafile`` is not set.

    Raises:
        HeadroomError: a file of the settings cannot be read.
    """
    kafka = settings.ticks_cluster()
    section = section_of(kafka)
    password = sasl_password(kafka)
    spark_options = kafka_options(kafka, password)
    options = {
        name.removeprefix(_KAFKA_PREFIX): text for name, text in spark_options.items() if name.startswith(_KAFKA_PREFIX)
    }
    try:
        folder = Path(settings.spark.jars) if settings.spark.jars else jar_folder("spark")
        brokers = connect(folder, options, kafka.request_timeout_ms / 1000 + 1)
    except JavaClientError as error:
        reason = str(error).replace(password or "\0", "***")
        return [failure(_NAME, f"{kafka.bootstrap_servers}: {reason}", _remedy(reason, section))]
    except HeadroomError as error:
        return [unknown(_NAME, f"{error.subject}: {error.rule}", error.remedy)]
    return [ok(_NAME, f"{kafka.bootstrap_servers} by {kafka.security_protocol.value}: {brokers} broker(s)")]


def _remedy(reason: str, section: str) -> str:
    if "certification path" in reason or "CertPath" in reason:
        return f"Set {section}.ssl_cafile: without it Java trusts its own authorities, which may differ from Python's."
    return f"Python's client connects, so compare what only Java reads: {section}.ssl_*, and the network."
