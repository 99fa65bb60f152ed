"""Connections to Kafka: the watched cluster, and the topic of the ticks."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class SecurityProtocol(str, Enum):
    """Security protocol of Headroom's Kafka clients."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


class LogDirVolumes(str, Enum):
    """Whether the log directories of a broker share a volume.

    Attributes:
        ASSUMED: those whose sizes and free bytes agree do.
        SEPARATE: none do.
        SHARED: all do.
    """

    ASSUMED = "assumed"
    SEPARATE = "separate"
    SHARED = "shared"


@dataclass(frozen=True)
class KafkaSettings:
    """Connection to one Kafka cluster.

    Attributes:
        bootstrap_servers: comma-separated ``host:port`` list.
        security_protocol: PLAINTEXT, SSL, SASL_PLAINTEXT or SASL_SSL.
        sasl_mechanism: PLAIN, SCRAM-SHA-256 or SCRAM-SHA-512; None: no SASL.
        sasl_username: SASL user; None: no SASL.
        sasl_password: SASL password. Set it with ``HEADROOM_CLUSTER__SASL_PASSWORD``, not in the file.
        sasl_password_file: file that contains only the SASL password; None: not used.
        ssl_cafile: PEM file of the trusted authorities; None: those of the system.
        ssl_certfile: PEM file of the client certificate; None: no client certificate.
        ssl_keyfile: PEM file of the client key (PKCS 8); None: no client certificate.
        ssl_key_password: password of the key file. Set it in the environment.
        ssl_check_hostname: check of the host name in the broker's certificate.
        request_timeout_ms: timeout of one request to a broker, in milliseconds.
    """

    bootstrap_servers: str = ""
    security_protocol: SecurityProtocol = SecurityProtocol.PLAINTEXT
    sasl_mechanism: str | None = None
    sasl_username: str | None = None
    sasl_password: str | None = field(default=None, repr=False)
    sasl_password_file: str | None = None
    ssl_cafile: str | None = None
    ssl_certfile: str | None = None
    ssl_keyfile: str | None = None
    ssl_key_password: str | None = field(default=None, repr=False)
    ssl_check_hostname: bool = True
    request_timeout_ms: int = 10_000


@dataclass(frozen=True)
class ClusterSettings(KafkaSettings):
    """The watched cluster.

    Attributes:
        name: name of the cluster in every table and alert.
        replication_capacity: maximum replication traffic of one broker, in or out, in bytes per second (or "100MB"),
            at least 1 kB and at most 1 EB; None: unknown, recommendations have no upper limit.
        log_dir_volumes: whether the log directories of a broker share a volume, which brokers do not report.
            "separate": each has its own. "shared": all are on one. "assumed": those that report the same size and about
            the same free bytes count as one, unless their logs take more than is used.
    """

    name: str = "kafka"
    replication_capacity: float | None = None
    log_dir_volumes: LogDirVolumes = LogDirVolumes.ASSUMED


@dataclass(frozen=True)
class TicksSettings(KafkaSettings):
    """The topic that carries ticks from the collector to Spark.

    Attributes:
        bootstrap_servers: comma-separated ``host:port`` list of the cluster with the topic. Empty: the watched cluster,
            with its security settings.
        topic: name of the topic.
        partitions: number of partitions at creation. Partition 0 is the alert partition, the others carry history.
        replication_factor: replication factor at creation. 0: 3, or the number of brokers if that is lower.
        retention_ms: retention at creation, in milliseconds.
    """

    topic: str = "headroom.ticks"
    partitions: int = 4
    replication_factor: int = 0
    retention_ms: int = 86_400_000
