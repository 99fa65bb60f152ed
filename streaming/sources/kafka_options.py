"""Options of Spark's Kafka connector, from the connection settings of a cluster."""

from __future__ import annotations

from pathlib import Path

from headroom.schemas.config import KafkaSettings, SecurityProtocol
from headroom.schemas.errors import HeadroomError

# How long Spark tries to read offsets before its query fails: longer than a cluster takes to restart its brokers.
_OFFSETS_MS = 180_000
# Short, because Spark also uses up all attempts when offsets have become lower: the topic was created again.
_BETWEEN_ATTEMPTS_MS = 20
# After each poll Spark asks for the end offset of the partition, on the connection of the next fetch. That fetch waits
# at the broker for new records, by default 500 ms per partition, and the question waits behind it.
_FETCH_WAIT_MS = 10
# Spark keeps all records of a poll, for each partition and query, until the last one is used. With the largest messages
# (10,000 rows) Kafka's default of 500 records is half a gigabyte.
_POLL_RECORDS = 20


def kafka_options(settings: KafkaSettings, password: str | None) -> dict[str, str]:
    """Return the options of Spark's Kafka connector for one cluster.

    Args:
        settings: connection settings of the cluster.
        password: SASL password; None unless SASL is used.
    """
    options = {
        "kafka.bootstrap.servers": settings.bootstrap_servers,
        "kafka.security.protocol": settings.security_protocol.value,
        "kafka.fetch.max.wait.ms": str(_FETCH_WAIT_MS),
        "kafka.max.poll.records": str(_POLL_RECORDS),
        # The collector creates the topic, with its own partitions and settings.
        "kafka.allow.auto.create.topics": "false",
        **offset_options(settings.request_timeout_ms, settings.request_timeout_ms),
    }
    if settings.security_protocol in (SecurityProtocol.SASL_SSL, SecurityProtocol.SASL_PLAINTEXT):
        options |= _sasl_options(settings, password or "")
    if settings.security_protocol in (SecurityProtocol.SASL_SSL, SecurityProtocol.SSL):
        options |= _ssl_options(settings)
    return options


def offset_options(attempt_ms: int, request_ms: int) -> dict[str, str]:
    """Return the options for Spark's reads of offsets: short attempts, for 3 minutes in all.

    Kafka's admin client waits for a dead leader until its API timeout, although there is a new one by then. Only
    Spark's next attempt asks the new leader.

    Args:
        attempt_ms: timeout of one attempt, milliseconds.
        request_ms: timeout of one request of an attempt, milliseconds.
    """
    return {
        "kafka.request.timeout.ms": str(request_ms),
        "kafka.default.api.timeout.ms": str(attempt_ms),
        "fetchOffset.numRetries": str(max(1, _OFFSETS_MS // attempt_ms)),
        "fetchOffset.retryIntervalMs": str(_BETWEEN_ATTEMPTS_MS),
    }


def _sasl_options(settings: KafkaSettings, password: str) -> dict[str, str]:
    mechanism = settings.sasl_mechanism or "PLAIN"
    module = "plain.PlainLoginModule" if mechanism == "PLAIN" else "scram.ScramLoginModule"
    user, secret = (_jaas_quoted(text) for text in (settings.sasl_username or "", password))
    jaas = f"org.apache.kafka.common.security.{module} required username={user} password={secret};"
    return {"kafka.sasl.mechanism": mechanism, "kafka.sasl.jaas.config": jaas}


def _jaas_quoted(text: str) -> str:
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'


def _ssl_options(settings: KafkaSettings) -> dict[str, str]:
    options: dict[str, str] = {}
    if not settings.ssl_check_hostname:
        options["kafka.ssl.endpoint.identification.algorithm"] = ""
    if settings.ssl_cafile:
        options |= {
            "kafka.ssl.truststore.type": "PEM",
            "kafka.ssl.truststore.certificates": _pem(settings.ssl_cafile),
        }
    if settings.ssl_certfile and settings.ssl_keyfile:
        key = _pem(settings.ssl_keyfile)
        options |= {
            "kafka.ssl.keystore.type": "PEM",
            "kafka.ssl.keystore.certificate.chain": _pem(settings.ssl_certfile),
            "kafka.ssl.keystore.key": key,
        }
        # With a password Java treats every key as an encrypted one (DefaultSslEngineFactory.PemStore.privateKey).
        if settings.ssl_key_password and "BEGIN ENCRYPTED" in key:
            options["kafka.ssl.key.password"] = settings.ssl_key_password
    return options


def _pem(file: str) -> str:
    try:
        # Such a file may hold other text next to the certificates, in any encoding.
        return Path(file).read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise HeadroomError(file, f"cannot be read: {error.strerror}", "Name a PEM file.") from None
