"""The ticks topic as a source of Spark queries: as a stream, or a range of offsets."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from pathlib import Path

from pyspark.sql import DataFrame, SparkSession

from schemas.config import KafkaSettings, SecurityProtocol
from schemas.errors import HeadroomError
from schemas.tick_messages import ALERT_PARTITION
from streaming.sources.trust import ANY, Trust

# How long Spark tries to read offsets before its query fails: longer than a cluster takes to restart its brokers.
_OFFSETS_MS = 180_000
_BETWEEN_ATTEMPTS_MS = 200
# For the alert partition: a cluster elects new leaders for a dead broker's partitions within some ten seconds. The
# first tick after that must be read before missing ticks raise an alert.
_ALERT_ATTEMPT_MS = 3_000
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
        **_offset_options(settings.request_timeout_ms),
    }
    if settings.security_protocol in (SecurityProtocol.SASL_SSL, SecurityProtocol.SASL_PLAINTEXT):
        options |= _sasl_options(settings, password or "")
    if settings.security_protocol in (SecurityProtocol.SASL_SSL, SecurityProtocol.SSL):
        options |= _ssl_options(settings)
    return options


def _offset_options(attempt_ms: int) -> dict[str, str]:
    """Return the options for Spark's reads of offsets: short attempts, for 3 minutes in all.

    Kafka's admin client waits for a dead leader until its API timeout, although there is a new one by then. Only
    Spark's next attempt asks the new leader.

    Args:
        attempt_ms: timeout of one attempt, milliseconds.
    """
    return {
        "kafka.request.timeout.ms": str(attempt_ms),
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


class TicksTopic:
    """Reader of the ticks topic.

    Args:
        spark: session.
        topic: name of the topic.
        options: result of ``kafka_options``.
        trust: conditions of trusted ticks.

    Attributes:
        trust: conditions of trusted ticks. The reader does not apply them.
    """

    def __init__(self, spark: SparkSession, topic: str, options: dict[str, str], trust: Trust = ANY) -> None:
        self.trust = trust
        self._spark = spark
        self._topic = topic
        self._options = options
        # By default Spark invents a group name per range, and keeps the consumers of a group for minutes with all
        # fetched records. Nothing joins a group of this name.
        self._range_group = f"headroom-ranges-{uuid.uuid4()}"
        self._alert_options = options | _offset_options(
            min(_ALERT_ATTEMPT_MS, int(options["kafka.request.timeout.ms"]))
        )

    def alert_stream(self, starting: str, max_offsets: int | None = None) -> DataFrame:
        """Return the alert partition as a stream of Kafka records.

        Args:
            starting: start of a new checkpoint: latest or earliest.
            max_offsets: most records in one micro-batch; None if there is no limit.
        """
        reader = self._spark.readStream.format("kafka").options(**self._alert_options)
        reader = reader.option("assign", json.dumps({self._topic: [ALERT_PARTITION]})).option(
            "startingOffsets", starting
        )
        # Alerts are about the present: records that retention deleted meanwhile must not stop the query.
        reader = reader.option("failOnDataLoss", "false")
        if max_offsets:
            reader = reader.option("maxOffsetsPerTrigger", max_offsets)
        return reader.load()

    def stream(self, max_offsets: int) -> DataFrame:
        """Return the whole topic as a stream of Kafka records, from its beginning; lost records fail the query.

        Args:
            max_offsets: most records in one micro-batch.
        """
        reader = self._spark.readStream.format("kafka").options(**self._options)
        reader = reader.option("subscribe", self._topic).option("maxOffsetsPerTrigger", max_offsets)
        return reader.option("startingOffsets", "earliest").load()

    def alert_messages_since(self, first: int) -> DataFrame:
        """Return the present records of the alert partition from offset ``first`` on."""
        return self._from({ALERT_PARTITION: first}, "latest")

    def alert_range(self, first: int, end: int) -> DataFrame:
        """Return the records of the alert partition from offset ``first`` up to, not including, ``end``."""
        return self.ranges({ALERT_PARTITION: (first, end)})

    def ranges(self, offsets: Mapping[int, tuple[int, int]]) -> DataFrame:
        """Return the records of some partitions, each from its first offset up to, not including, its end.

        Args:
            offsets: partition to first offset and end (exclusive); at least one.
        """
        first, end = ({partition: span[n] for partition, span in offsets.items()} for n in (0, 1))
        return self._from(first, json.dumps({self._topic: end}))

    def _from(self, first: Mapping[int, int], end: str) -> DataFrame:
        """Return the records of some partitions, each from its first offset on.

        Args:
            first: partition to first offset.
            end: Spark's option endingOffsets: latest, or JSON.
        """
        reader = self._spark.read.format("kafka").options(**self._alert_options)
        return (
            reader.option("assign", json.dumps({self._topic: list(first)}))
            .option("startingOffsets", json.dumps({self._topic: first}))
            .option("endingOffsets", end)
            .option("failOnDataLoss", "false")
            .option("kafka.group.id", self._range_group)
            .load()
        )
