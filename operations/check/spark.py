"""Check of Spark's Kafka client: Java's client, with Spark's options, but without a Spark session."""

from __future__ import annotations

from pathlib import Path

from headroom.cluster.connection.admin_connection import connection_options
from headroom.cluster.connection.java_client import JavaClientError, connect
from headroom.cluster.connection.refusal import HANGS, find_refusals
from headroom.cluster.java import jar_folder
from headroom.cluster.secrets import sasl_password, section_of
from headroom.operations.check.result import Check, failure, ok, unknown
from headroom.schemas.config import KafkaSettings, SecurityProtocol, Settings
from headroom.schemas.errors import HeadroomError
from headroom.streaming.sources.kafka_options import kafka_options

_NAME = "Spark's Kafka client"
_KAFKA_PREFIX = "kafka."
# Java's client cancels a request that got no answer in time. A failure of TLS or SASL has a name of its own.
_NO_ANSWER = ("TimeoutException", "DisconnectException")
_TLS = (SecurityProtocol.SSL, SecurityProtocol.SASL_SSL)


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
    timeout_s = kafka.request_timeout_ms / 1000 + 1
    try:
        folder = Path(settings.spark.jars) if settings.spark.jars else jar_folder("spark")
        brokers = connect(folder, options, timeout_s)
    except JavaClientError as error:
        reason = str(error).replace(password or "\0", "***")
        if reason.startswith(_NO_ANSWER):
            return [_silent(kafka, section, f"no answer within {timeout_s:g} s ({reason})")]
        return [failure(_NAME, f"{kafka.bootstrap_servers}: {reason}", _remedy(kafka, section, reason))]
    except HeadroomError as error:
        return [unknown(_NAME, f"{error.subject}: {error.rule}", error.remedy)]
    return [ok(_NAME, f"{kafka.bootstrap_servers} by {kafka.security_protocol.value}: {brokers} broker(s)")]


def _silent(kafka: KafkaSettings, section: str, finding: str) -> Check:
    """Return the check of a client that got no answer, with the servers that take no connection of Python's either."""
    options = connection_options(kafka, section)
    refusals = find_refusals(kafka, options, options["bootstrap_servers"], section)
    answers = "; ".join([f"{kafka.bootstrap_servers}: {finding}", *(refusal.rule for refusal in refusals)])
    remedies = dict.fromkeys([*(refusal.remedy for refusal in refusals), HANGS])
    return failure(_NAME, answers, " ".join(remedies))


def _remedy(kafka: KafkaSettings, section: str, reason: str) -> str:
    if "certification path" in reason or "CertPath" in reason:
        return f"Set {section}.ssl_cafile: without it Java trusts its own authorities, which may differ from Python's."
    read = f"{section}.ssl_*, and the network" if kafka.security_protocol in _TLS else "the network"
    return f"Python's client connects, so compare what only Java reads: {read}."
