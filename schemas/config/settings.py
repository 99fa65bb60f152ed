"""All settings with their defaults, units and meanings. Defaults are defined here and nowhere else."""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum


class Source(str, Enum):
    """Interface through which a broker's metrics are read."""

    JMX = "jmx"
    JOLOKIA = "jolokia"
    PROMETHEUS = "prometheus"


# Of /metrics: this machine only, because the endpoint has neither TLS nor a password.
DEFAULT_LISTEN = "127.0.0.1:9644"

# Usual ports of remote JMX, the Jolokia agent and jmx_exporter.
_PORTS = {Source.JMX: 9999, Source.JOLOKIA: 8778, Source.PROMETHEUS: 9404}


class SecurityProtocol(str, Enum):
    """Security protocol of Headroom's Kafka clients."""

    PLAINTEXT = "PLAINTEXT"
    SSL = "SSL"
    SASL_PLAINTEXT = "SASL_PLAINTEXT"
    SASL_SSL = "SASL_SSL"


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
        replication_capacity: maximum replication traffic of one broker, in or out, in bytes per second (or "100MB");
            None: unknown, recommendations have no upper limit.
    """

    name: str = "kafka"
    replication_capacity: float | None = None


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

    def window_s(self) -> float:
        """Return the effective rate window in seconds."""
        return self.rate_window_s or max(10.0, 5 * self.interval_s)

    def timeout_s(self) -> float:
        """Return the effective timeout of one broker in seconds."""
        return self.broker_timeout_s or min(10.0, 0.8 * self.interval_s)


@dataclass(frozen=True)
class StoreSettings:
    """The Delta tables.

    Attributes:
        path: folder or Hadoop file system URL of all tables.
        checkpoint_path: folder or URL of the streaming checkpoints. Empty: ``_checkpoints`` under ``path``.
        bronze_keep_days: retention of the bronze tables, in days. 0: unlimited.
        silver_keep_days: retention of the silver tables, in days. 0: unlimited.
        gold_keep_days: retention of the gold tables, in days. 0: unlimited.
        maintain_every_s: interval between maintenance runs in the record job, in seconds. 0: never.
    """

    path: str = "headroom-data"
    checkpoint_path: str = ""
    bronze_keep_days: int = 3
    silver_keep_days: int = 30
    gold_keep_days: int = 90
    maintain_every_s: float = 3600.0

    def keep_days(self, table: str) -> int:
        """Return the retention of the table with this path in days; 0: unlimited."""
        layer = table.split("/")[0]
        days = {"bronze": self.bronze_keep_days, "silver": self.silver_keep_days, "gold": self.gold_keep_days}
        return days.get(layer, 0)

    def checkpoints(self) -> str:
        """Return the folder or URL of the streaming checkpoints."""
        return self.checkpoint_path or f"{self.path.rstrip('/')}/_checkpoints"


@dataclass(frozen=True)
class SparkSettings:
    """The Spark session and the triggers of its queries.

    Attributes:
        master: Spark master. Empty: ``local[*]``. With ``spark-submit``, the master given there applies.
        driver_memory: heap size of the driver, if Headroom starts it.
        driver_java_options: additional JVM options of the driver, separated by spaces, if Headroom starts it; for
            example ``-XX:+HeapDumpOnOutOfMemoryError``.
        shuffle_partitions: partitions of every shuffle. Few are enough, because the data of a tick is small.
        gold_trigger_s: minimum interval between two commits to the gold tables, in seconds.
        record_trigger_s: minimum interval between two commits to the bronze tables, in seconds. The silver tables
            follow each commit.
        jars: folder of the jars of the Kafka connector and Delta. Empty: the project's own, or those set by
            ``spark-submit``.
        conf: additional Spark settings. They override Headroom's settings; settings given to ``spark-submit`` override
            both.
    """

    master: str = ""
    driver_memory: str = "1g"
    driver_java_options: str = ""
    shuffle_partitions: int = 2
    gold_trigger_s: float = 5.0
    record_trigger_s: float = 30.0
    jars: str = ""
    conf: dict[str, str] = field(default_factory=dict, repr=False)


# Names of the weekdays in maintenance windows.
DAYS = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@dataclass(frozen=True)
class MaintenanceWindow:
    """A weekly maintenance window: matching alerts are not sent to receivers.

    Attributes:
        days: weekdays of its start, in UTC: mon, tue, wed, thu, fri, sat, sun.
        at: start time, ``HH:MM`` in UTC.
        lasts: duration in seconds (or "4h"), at most a week.
        clusters: names of the matching clusters. Empty: all.
        kinds: matching alert kinds. Empty: all.
        subjects: matching alert subjects, with ``*`` for any text. Empty: all.
    """

    days: tuple[str, ...]
    at: str
    lasts: float
    clusters: tuple[str, ...] = ()
    kinds: tuple[str, ...] = ()
    subjects: tuple[str, ...] = ()


@dataclass(frozen=True)
class AlertSettings:
    """Conditions of alerts and goals of recommendations.

    Attributes:
        hold_s: time for which a throttle must be too low before its alert fires, in seconds. After a leader switch the
            alert fires at once, because the write rates are known from before.
        resolve_s: time for which a throttle must be sufficient again before its alert resolves, in seconds.
        exit_ratio: hysteresis of alerts. A throttle is sufficient again from ``required x exit_ratio`` upwards; leaders
            are balanced again from ``threshold / exit_ratio`` downwards.
        stalled_s: time without progress of an adding replica before ``reassignment_stalled`` fires, in seconds.
        no_data_s: time without a verdict before ``no_data`` fires, in seconds. For missing ticks 5 s are added.
        under_replicated_s: time for which replicas that are not being added must be out of the ISR before
            ``under_replicated`` or ``isr_shrink_during_move`` fires, in seconds. A normal broker restart is shorter.
        left_behind_s: time for which rates or throttled replica lists must remain without a reassignment before
            ``throttle_left_behind`` fires, in seconds.
        leader_imbalance_percentage: threshold of ``leader_imbalance``: share of a broker's preferred partitions that it
            does not lead but an election would return, in percent. 0: any partition, 100: never. A broker's own
            ``leader.imbalance.per.broker.percentage`` takes precedence.
        imbalance_s: duration of an imbalance before ``leader_imbalance`` fires, and of a preferred leader being down or
            out of sync before ``preferred_leader_unavailable`` fires, in seconds. If brokers rebalance leaders
            automatically, ``leader_imbalance`` waits for two of their checks.
        slip_ratio: threshold of ``eta_slipping``: delay of the expected finish, as a ratio of the time that was left at
            the first estimate.
        margin_ratio: safety factor of recommended throttles above the smallest sufficient rate.
        finish_within: desired time to the end of a move, in seconds (or "30m"); None: no deadline.
        bootstrap_servers: bootstrap servers in the commands of alerts. Empty: ``cluster.bootstrap_servers``.
        maintenance: weekly maintenance windows, in which matching alerts are not sent to receivers.
    """

    hold_s: float = 3.0
    resolve_s: float = 5.0
    exit_ratio: float = 1.05
    stalled_s: float = 30.0
    no_data_s: float = 15.0
    under_replicated_s: float = 60.0
    left_behind_s: float = 300.0
    leader_imbalance_percentage: float = 10.0
    imbalance_s: float = 600.0
    slip_ratio: float = 0.5
    margin_ratio: float = 1.2
    finish_within: float | None = None
    bootstrap_servers: str = ""
    maintenance: tuple[MaintenanceWindow, ...] = ()


@dataclass(frozen=True)
class SlackSettings:
    """Slack: one message per alert, updated in place, with changes in its thread.

    Attributes:
        token: bot token (``xoxb-...``) with the scopes chat:write and channels:history, in a private channel
            groups:history. Set it with ``HEADROOM_NOTIFY__SLACK__TOKEN``. Slack is enabled by this token and
            ``channel``.
        token_file: file that contains only that token; None: not used.
        channel: channel id, such as ``C0123456789``. Slack shows it at the end of the channel's details.
        webhook_url: incoming webhook instead of a token, with one message per event. Set it with
            ``HEADROOM_NOTIFY__SLACK__WEBHOOK_URL``.
        webhook_url_file: file that contains only that URL; None: not used.
        api_url: URL of the Slack API.
        timeout_s: timeout of one request including its response, in seconds.
    """

    token: str | None = field(default=None, repr=False)
    token_file: str | None = None
    channel: str = ""
    webhook_url: str | None = field(default=None, repr=False)
    webhook_url_file: str | None = None
    api_url: str = "https://slack.com/api/"
    timeout_s: float = 10.0

    def by_token(self) -> bool:
        """Return whether a bot token sends alerts to Slack."""
        return bool(self.token or self.token_file)

    def by_webhook(self) -> bool:
        """Return whether an incoming webhook sends alerts to Slack."""
        return bool(self.webhook_url or self.webhook_url_file)


@dataclass(frozen=True)
class AlertmanagerSettings:
    """Alertmanager, through its API v2.

    Attributes:
        urls: comma-separated ``http://host:port`` of every Alertmanager instance. Empty: disabled.
        username: user of basic authentication; None: no authentication.
        password: password of that user. Set it with ``HEADROOM_NOTIFY__ALERTMANAGER__PASSWORD``.
        password_file: file that contains only that password; None: not used.
        ssl_cafile: PEM file of the trusted authorities; None: those of the system.
        resend_s: interval at which firing alerts are re-sent, in seconds. Alertmanager resolves an alert that was not
            re-sent for four intervals.
        timeout_s: timeout of one request including its response, in seconds.
    """

    urls: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    password_file: str | None = None
    ssl_cafile: str | None = None
    resend_s: float = 60.0
    timeout_s: float = 10.0

    def instances(self) -> list[str]:
        """Return the URL of each instance, without a trailing slash."""
        return [url.strip().rstrip("/") for url in self.urls.split(",") if url.strip()]


@dataclass(frozen=True)
class WebhookSettings:
    """A web server of yours that receives each event as JSON.

    Attributes:
        url: URL to which events are posted. Empty: disabled. A token in it never appears in tables or logs.
        secret: key of the HMAC-SHA256 signature of each post; None: no signature. Set it with
            ``HEADROOM_NOTIFY__WEBHOOK__SECRET``.
        secret_file: file that contains only that secret; None: not used.
        ssl_cafile: PEM file of the trusted authorities; None: those of the system.
        timeout_s: timeout of one request including its response, in seconds.
    """

    url: str = field(default="", repr=False)
    secret: str | None = field(default=None, repr=False)
    secret_file: str | None = None
    ssl_cafile: str | None = None
    timeout_s: float = 10.0


@dataclass(frozen=True)
class NotifySettings:
    """Alert receivers besides the terminal, and retries of their delivery.

    Attributes:
        log: output of every event in the log of the process.
        least_severity: lowest severity sent to receivers: info, warning or critical.
        retry_s: wait after the first failed attempt, in seconds. It doubles with every further attempt.
        retry_max_s: maximum wait between two attempts, in seconds.
        give_up_s: time after the resolution of an alert at which its undelivered events are dropped, in seconds.
        digest_after: number of alerts firing at once above which Slack gets a single message for all of them.
        dashboard_url: dashboard link in every message; ``{cluster}`` and ``{kind}`` are replaced. Empty: no link.
        runbook_url: runbook link in every message, with the same replacements. Empty: no link.
    """

    log: bool = False
    least_severity: str = "warning"
    retry_s: float = 1.0
    retry_max_s: float = 60.0
    give_up_s: float = 86_400.0
    digest_after: int = 10
    dashboard_url: str = ""
    runbook_url: str = ""
    slack: SlackSettings = field(default_factory=SlackSettings)
    alertmanager: AlertmanagerSettings = field(default_factory=AlertmanagerSettings)
    webhook: WebhookSettings = field(default_factory=WebhookSettings)

    def receivers(self) -> list[str]:
        """Return the names of the enabled receivers, as in ``alerts/deliveries``."""
        enabled = {
            "log": self.log,
            "slack": self.slack.by_token(),
            "slack_webhook": self.slack.by_webhook(),
            "alertmanager": bool(self.alertmanager.instances()),
            "webhook": bool(self.webhook.url),
        }
        return [name for name, is_enabled in enabled.items() if is_enabled]


@dataclass(frozen=True)
class MetricsSettings:
    """Headroom's own HTTP endpoints: /metrics for Prometheus and /health for probes.

    Attributes:
        listen: listen address as ``host:port``. Port 0: a free port, printed at start. ``off`` or empty: disabled;
            None: ``127.0.0.1:9644``, or disabled with a warning while another process uses that port.
        stale_after_s: age of a cluster's last tick, in seconds, at which its series disappear from /metrics and /health
            becomes unhealthy. 0: the greater of 30 s and 3 intervals. If set, it also limits the first tick after the
            start, which otherwise may take 90 s.
        top_n: maximum number of partitions per cluster with series of their own: the moving ones with the greatest
            write rate x followers, at most 20 per leading broker.
    """

    listen: str | None = None
    stale_after_s: float = 0.0
    top_n: int = 50

    def address(self) -> str:
        """Return the effective listen address as ``host:port``; empty: disabled."""
        listen = DEFAULT_LISTEN if self.listen is None else self.listen.strip()
        return "" if listen == "off" else listen

    def stale_s(self, interval_s: float) -> float:
        """Return the age in seconds at which a tick of a cluster with this interval is too old."""
        return self.stale_after_s or max(30.0, 3 * interval_s)

    def first_s(self, interval_s: float) -> float:
        """Return the maximum time to the first tick in seconds; it includes the start of the collector and of Spark."""
        return self.stale_after_s or max(90.0, self.stale_s(interval_s))


@dataclass(frozen=True)
class ElectionSettings:
    """Batches and times of preferred leader elections.

    Attributes:
        batch_partitions: maximum number of partitions per batch.
        batch_partitions_per_broker: maximum number of leaders that one broker gains or loses per batch.
        batch_write_bytes_per_s: maximum total write rate of the partitions of one batch, in bytes per second (or
            "20MB"); None: no limit.
        capacity_bytes_per_s: maximum write rate of the partitions that one broker leads, in bytes per second; None:
            unknown, elections are not limited by it.
        quiet_below: cluster write rate below which elections run, in bytes per second (or "50MB"). If ``window`` is set
            too, either condition is enough; None: elections run at any rate.
        window: time of day in which elections run, such as "01:00-05:00" in UTC or "22:00-02:00 Europe/Berlin". Empty:
            any time.
        settle_s: maximum time for the leaders of a batch to change and their followers to be in sync again, in seconds.
            After that, no further batch is elected.
        pause_s: wait between two batches, in seconds.
    """

    batch_partitions: int = 200
    batch_partitions_per_broker: int = 50
    batch_write_bytes_per_s: float | None = None
    capacity_bytes_per_s: float | None = None
    quiet_below: float | None = None
    window: str = ""
    settle_s: float = 60.0
    pause_s: float = 10.0


@dataclass(frozen=True)
class Settings:
    """All sections of ``headroom.toml``."""

    cluster: ClusterSettings = field(default_factory=ClusterSettings)
    ticks: TicksSettings = field(default_factory=TicksSettings)
    collect: CollectSettings = field(default_factory=CollectSettings)
    store: StoreSettings = field(default_factory=StoreSettings)
    spark: SparkSettings = field(default_factory=SparkSettings)
    alerts: AlertSettings = field(default_factory=AlertSettings)
    notify: NotifySettings = field(default_factory=NotifySettings)
    metrics: MetricsSettings = field(default_factory=MetricsSettings)
    elections: ElectionSettings = field(default_factory=ElectionSettings)
