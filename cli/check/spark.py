"""Whether Spark's Kafka client connects: Java's, with the options that Spark will be given, and without a session."""

from __future__ import annotations

from pathlib import Path

from cli.check.result import Check, no, ok, unknown
from cluster.connection.java_client import JavaClientError, connect
from cluster.java import jar_folder
from cluster.secrets import secret
from schemas.config import Settings
from schemas.errors import HeadroomError
from streaming.sources.ticks_topic import kafka_options

_NAME = "Spark's Kafka client"
_OF_KAFKA = "kafka."


def spark_checks(settings: Settings) -> list[Check]:
    """Return whether the client that Spark reads ticks by reaches their cluster.

    It reads other files than Python's: keys in fewer forms, and Java's own authorities where ``ssl_cafile`` names none.

    Raises:
        HeadroomError: a file of the settings cannot be read.
    """
    section = "ticks" if settings.ticks.bootstrap_servers.strip() else "cluster"
    kafka = settings.ticks if section == "ticks" else settings.cluster
    password = secret(kafka.sasl_password, kafka.sasl_password_file, f"{section}.sasl_password_file")
    given = kafka_options(kafka, password)
    options = {name.removeprefix(_OF_KAFKA): text for name, text in given.items() if name.startswith(_OF_KAFKA)}
    try:
        folder = Path(settings.spark.jars) if settings.spark.jars else jar_folder("spark")
        brokers = connect(folder, options, kafka.request_timeout_ms / 1000 + 1)
    except JavaClientError as error:
        reason = str(error).replace(password or "\0", "***")
        return [no(_NAME, f"{kafka.bootstrap_servers}: {reason}", _remedy(reason, section))]
    except HeadroomError as error:
        return [unknown(_NAME, f"{error.subject}: {error.rule}", error.remedy)]
    return [ok(_NAME, f"{kafka.bootstrap_servers} by {kafka.security_protocol.value}: {brokers} broker(s)")]


def _remedy(reason: str, section: str) -> str:
    if "certification path" in reason or "CertPath" in reason:
        return f"Set {section}.ssl_cafile: without it Java trusts its own authorities, which may differ from Python's."
    return f"Python's client connects, so compare what only Java reads: {section}.ssl_*, and the network."
