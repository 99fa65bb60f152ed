"""The collector, and the source of the brokers' metrics."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Source(str, Enum):
    """Interface through which a broker's metrics are read."""

    JMX = "jmx"
    JOLOKIA = "jolokia"
    PROMETHEUS = "prometheus"


# Usual ports of remote JMX, the Jolokia agent and jmx_exporter.
_PORTS = {Source.JMX: 9999, Source.JOLOKIA: 8778, Source.PROMETHEUS: 9404}


@dataclass(frozen=True)
class CollectSettings:
    """The collector, which reads metadata and metrics and writes ticks.

    Attributes:
        interval_s: interval between ticks, in seconds.
        source: metric source: jmx (RMI, nothing to install on brokers), jolokia (its agent, cheapest for large brokers)
            or prometheus (jmx_exporter).
        port: port of the metrics of brokers without an entry in ``endpoints``; None: 9999 for jmx, 8778 for jolokia,
            9404 for prometheus.
        endpoints: metrics address ``host:port`` by broker id. Brokers without an entry are read at their advertised
            host and ``port``.
        rate_window_s: minimum time over which rates are measured, in seconds. 0: the greater of 10 s and 5 intervals.
        broker_timeout_s: timeout of one broker in a tick, in seconds. 0: 0.8 of the interval, at most 10 s.
        topic_config_max_age_s: maximum age of a topic's throttled replica lists, in seconds. Topics in a reassignment,
            or with lists at the last read, are read every tick.
        metadata_max_age_s: maximum age of leaders and in-sync replicas, in seconds. Up to 5,000 partitions are read
            every tick. In larger clusters, every tick reads topics in a reassignment, with lists, or with recent or
            suspected changes, and some of the others in turn. 0: as soon as possible.
        load_interval_s: interval between readings of a broker's requests, request times, log flush times and idle
            handlers, in seconds. No tick waits for them. 0: never.
        log_dirs_interval_s: interval between readings of a broker's log directories and of the sizes of its replicas,
            in seconds. No tick waits for them. 0: never.
        measure_s: time over which commands measure write rates, in seconds. They do so if no watch can tell them, and
            before and after elections. The shorter, the rougher.
        jmx_username: JMX user; None: no authentication.
        jmx_password: JMX password. Set it with ``HEADROOM_COLLECT__JMX_PASSWORD``.
        jmx_password_file: file that contains only the JMX password; None: not used.
        jmx_ssl: TLS for JMX.
        jmx_truststore: Java trust store (PKCS 12 or JKS) with the authority of the brokers' JMX; None: Java's default.
        jmx_truststore_password: password of the trust store. Set it in the environment.
        http_path: path of jolokia or prometheus on the broker. Empty: ``/jolokia/`` or ``/metrics``.
        http_username: user of jolokia or prometheus; None: no authentication.
        http_password: password of that user. Set it with ``HEADROOM_COLLECT__HTTP_PASSWORD``.
        http_password_file: file that contains only that password; None: not used.
        http_token: bearer token instead of a user. Set it with ``HEADROOM_COLLECT__HTTP_TOKEN``.
        http_token_file: file that contains only that token; None: not used.
        http_ssl: TLS for jolokia or prometheus.
        http_cafile: PEM file of the trusted authorities; None: those of the system.
        http_certfile: PEM file of the client certificate; None: no client certificate.
        http_keyfile: PEM file of the client key; None: no client certificate.
        http_key_password: password of the key file. Set it in the environment.
        http_check_hostname: check of the host name in the certificate of jolokia or prometheus.
    """

    interval_s: float = 5.0
    source: Source = Source.JMX
    port: int | None = None
    endpoints: dict[str, str] = field(default_factory=dict)
    rate_window_s: float = 0.0
    broker_timeout_s: float = 0.0
    topic_config_max_age_s: float = 30.0
    metadata_max_age_s: float = 60.0
    load_interval_s: float = 30.0
    log_dirs_interval_s: float = 300.0
    measure_s: float = 5.0
    jmx_username: str | None = None
    jmx_password: str | None = field(default=None, repr=False)
    jmx_password_file: str | None = None
    jmx_ssl: bool = False
    jmx_truststore: str | None = None
    jmx_truststore_password: str | None = field(default=None, repr=False)
    http_path: str = ""
    http_username: str | None = None
    http_password: str | None = field(default=None, repr=False)
    http_password_file: str | None = None
    http_token: str | None = field(default=None, repr=False)
    http_token_file: str | None = None
    http_ssl: bool = False
    http_cafile: str | None = None
    http_certfile: str | None = None
    http_keyfile: str | None = None
    http_key_password: str | None = field(default=None, repr=False)
    http_check_hostname: bool = True

    def metrics_port(self) -> int:
        """Return the metrics port of brokers without an entry in ``endpoints``."""
        return self.port or _PORTS[self.source]

    def endpoint(self, broker: int, host: str | None) -> str | None:
        """Return ``host:port`` of a broker's metrics; None if it has no entry in ``endpoints`` and no known host.

        Args:
            broker: id of the broker.
            host: host that the broker advertises; None if unknown.
        """
        if own := self.endpoints.get(str(broker)):
            return own
        # Brackets keep the colons of an IPv6 address apart from that of the port.
        name = f"[{host}]" if host and ":" in host else host
        return f"{name}:{self.metrics_port()}" if name else None

    def window_s(self) -> float:
        """Return the effective rate window in seconds."""
        return self.rate_window_s or max(10.0, 5 * self.interval_s)

    def timeout_s(self) -> float:
        """Return the effective timeout of one broker in seconds."""
        return self.broker_timeout_s or min(10.0, 0.8 * self.interval_s)
